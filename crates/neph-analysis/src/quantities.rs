//! Quantities of scenarios, block by block: what transfers came to, and the same sort of numbers of messages.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{Quantities, Quantity, Span};
use neph_stats::{Level, Sorted, quantile};

use crate::latencies::Latencies;
use crate::{CampaignData, ExperimentData, PlotSettings};

/// The quantities of messages, by the response times of the main flow.
const MESSAGE_QUANTITIES: [Quantity; 4] = [
    Quantity::ResponseP50,
    Quantity::ResponseP99,
    Quantity::ResponseJitter,
    Quantity::MessageLoss,
];

/// One quantity of a scenario over its blocks. At least one.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantityCourse {
    /// Which.
    pub quantity: Quantity,
    /// Its value in each block, in its unit; blocks count from 1. Without a number where messages without an
    /// answer decide.
    pub by_block: BTreeMap<u32, Level>,
    /// Whether any of its experiments has a warning.
    pub is_flagged: bool,
}

/// A quantity over its experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantitySummary {
    /// How many experiments.
    pub experiments: usize,
    /// Their median.
    pub median: Level,
    /// Its 95 % confidence interval by order statistics, both ends; absent below six experiments.
    pub interval: Option<(Level, Level)>,
    /// The smallest value.
    pub min: Level,
    /// The largest value.
    pub max: Level,
}

impl QuantityCourse {
    /// Its experiments in numbers; `None` where there is none.
    pub fn summary(&self) -> Option<QuantitySummary> {
        summary_of(&self.by_block)
    }
}

/// Values of blocks in numbers; `None` where there is none.
pub(crate) fn summary_of(by_block: &BTreeMap<u32, Level>) -> Option<QuantitySummary> {
    let numbers = by_block.values().filter_map(|level| level.number());
    let mut values: Vec<f64> = numbers.collect();
    let censored = by_block.len() - values.len();
    let sorted = Sorted::sort(&mut values).ok()?;
    let median = quantile(sorted, censored, 0.5).ok();
    let end = |value: Option<&f64>| value.map_or(Level::Censored, |value| Level::At(*value));
    Some(QuantitySummary {
        experiments: by_block.len(),
        median: neph_stats::median(sorted, censored).ok()?,
        interval: median.map(|median| (median.low(), median.high())),
        min: end(sorted.values().first()),
        max: if censored > 0 {
            Level::Censored
        } else {
            end(sorted.values().last())
        },
    })
}

impl CampaignData {
    /// Indices of the scenarios of transfers that have something to show.
    pub fn transfers(&self, settings: &PlotSettings) -> Vec<usize> {
        let is_shown = |index: &usize| self.quantities(*index, settings).next().is_some();
        (0..self.scenarios.len()).filter(is_shown).collect()
    }

    /// What the transfers of a scenario came to, each with its block (from 1).
    pub fn quantities<'a>(
        &'a self,
        scenario: usize,
        settings: &'a PlotSettings,
    ) -> impl Iterator<Item = (u32, &'a Quantities)> + 'a {
        let experiments = self.experiments_of(scenario, settings);
        experiments.filter_map(|experiment| {
            Some((
                experiment.block(),
                experiment.experiment.quantities.as_ref()?,
            ))
        })
    }

    /// Each quantity of a scenario that was measured, in their order.
    pub fn courses(&self, scenario: usize, settings: &PlotSettings) -> Vec<QuantityCourse> {
        let measured: BTreeSet<Quantity> = if self.is_transfer(scenario) {
            let quantities = self.quantities(scenario, settings);
            quantities
                .flat_map(|(_, quantities)| quantities.values.keys().copied())
                .collect()
        } else {
            MESSAGE_QUANTITIES.into()
        };
        let is_flagged = !self.flags(scenario, settings).is_empty();
        let courses = measured.into_iter().map(|quantity| QuantityCourse {
            quantity,
            by_block: self.by_block(scenario, settings, quantity),
            is_flagged,
        });
        courses
            .filter(|course| !course.by_block.is_empty())
            .collect()
    }

    /// A quantity of a scenario in each block (from 1) in which it was measured.
    pub fn by_block(
        &self,
        scenario: usize,
        settings: &PlotSettings,
        quantity: Quantity,
    ) -> BTreeMap<u32, Level> {
        let experiments = self.experiments_of(scenario, settings);
        let levels = experiments.filter_map(|experiment| {
            Some((experiment.block(), level(experiment, settings, quantity)?))
        });
        levels.collect()
    }

    /// What limits the transfers of a scenario most often, in words, with how often it does.
    pub fn usual_limit(&self, scenario: usize, settings: &PlotSettings) -> Option<(String, usize)> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (_, quantities) in self.quantities(scenario, settings) {
            for sentence in &quantities.limits {
                let clause = sentence.split([':', '.']).next().unwrap_or_default();
                *counts.entry(clause.trim().to_owned()).or_default() += 1;
            }
        }
        counts.into_iter().max_by_key(|(_, count)| *count)
    }
}

/// A quantity of one experiment.
fn level(data: &ExperimentData, settings: &PlotSettings, quantity: Quantity) -> Option<Level> {
    if let Some(quantities) = &data.experiment.quantities {
        let value = quantities.values.get(&quantity).copied().map(Level::At);
        return value.or_else(|| censored_quantile(quantities, quantity));
    }
    let main = data.main()?;
    let latencies = Latencies::of([main], settings.basis);
    if latencies.count() == 0 {
        return None;
    }
    let nanos = |level: Level| match level {
        Level::At(millis) => Level::At(millis * 1e6),
        Level::Censored => Level::Censored,
    };
    match quantity {
        Quantity::ResponseP50 => latencies.median().map(nanos),
        Quantity::ResponseP99 => latencies.quantile(0.99).map(nanos),
        Quantity::ResponseJitter => {
            let times = main
                .exchanges
                .iter()
                .filter_map(|exchange| exchange.response);
            jitter(times.map(Span::nanos)).map(Level::At)
        }
        Quantity::MessageLoss => Some(Level::At(latencies.loss() * 100.0)),
        _ => None,
    }
}

/// A quantile of round-trip times that falls among lost transactions: they count as slower than every reply.
fn censored_quantile(quantities: &Quantities, quantity: Quantity) -> Option<Level> {
    let above = match quantity {
        Quantity::RttP50 => 50.0,
        Quantity::RttP99 => 1.0,
        _ => return None,
    };
    let loss = quantities.values.get(&Quantity::TransactionLoss)?;
    (*loss > above).then_some(Level::Censored)
}

/// The mean difference between times that follow each other, without sign; `None` of fewer than two.
#[expect(clippy::cast_precision_loss, reason = "differences of times")]
fn jitter(times: impl Iterator<Item = i64>) -> Option<f64> {
    let mut before = None;
    let (mut sum, mut count) = (0.0, 0_u32);
    for time in times {
        if let Some(before) = before.replace(time) {
            sum += time.abs_diff(before) as f64;
            count += 1;
        }
    }
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_the_median_needs_six_experiments() {
        let course = |count: u32| QuantityCourse {
            quantity: Quantity::UpGoodput,
            by_block: (1..=count)
                .map(|block| (block, Level::At(f64::from(block))))
                .collect(),
            is_flagged: false,
        };
        let five = course(5).summary().expect("values");
        assert_eq!((five.median, five.interval), (Level::At(3.0), None));
        let six = course(6).summary().expect("values");
        assert_eq!(six.interval, Some((Level::At(1.0), Level::At(6.0))));
        let ends = (six.min, six.max, six.median);
        assert_eq!(ends, (Level::At(1.0), Level::At(6.0), Level::At(3.5)));
        assert_eq!(course(0).summary(), None);
    }

    #[test]
    fn censored_levels_lie_above_all_numbers() {
        let levels = [Level::At(1.0), Level::Censored, Level::Censored];
        let course = QuantityCourse {
            quantity: Quantity::ResponseP99,
            by_block: (1..).zip(levels).collect(),
            is_flagged: false,
        };
        let summary = course.summary().expect("experiments");
        let ends = (summary.min, summary.median, summary.max);
        assert_eq!(ends, (Level::At(1.0), Level::Censored, Level::Censored));
    }

    #[test]
    fn a_quantile_among_lost_transactions_is_censored() {
        let with_loss = |loss: f64| Quantities {
            peer: ([192, 0, 2, 1], 7420).into(),
            values: [(Quantity::TransactionLoss, loss)].into(),
            limits: Vec::new(),
        };
        let level = |loss, quantity| censored_quantile(&with_loss(loss), quantity);
        assert_eq!(level(1.5, Quantity::RttP99), Some(Level::Censored));
        assert_eq!(level(1.5, Quantity::RttP50), None);
        assert_eq!(level(0.5, Quantity::RttP99), None);
        assert_eq!(level(60.0, Quantity::RttMin), None);
    }

    #[test]
    fn jitter_is_the_mean_difference_between_consecutive_times() {
        assert_eq!(jitter([10, 14, 8].into_iter()), Some(5.0));
        assert_eq!(jitter([10].into_iter()), None);
    }
}
