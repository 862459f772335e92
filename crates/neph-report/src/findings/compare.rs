//! Comparing two scenarios block by block: medians of experiments, paired by block, and the verdict.
//!
//! A message without an answer lies above every reply, so that a block of which half went
//! unanswered has a median above every number; a difference to it is infinite.

use std::collections::BTreeMap;

use neph_stats::{
    Interval, Level, Shift, Sorted, Verdict, Wanted, Yardstick, friedman, holm, verdict, wilcoxon,
};

use crate::axis::millis;
use crate::figure::Latencies;
use crate::{CampaignData, Layer, PlotSettings};

/// The level of significance of every sentence.
pub(super) const ALPHA: f64 = 0.05;
/// What stands for an infinite difference in a test, which wants numbers, in milliseconds: 30 years.
const INFINITE: f64 = 1e12;

/// The smallest difference that is worth a verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeastEffect {
    /// As a share of the baseline's median.
    pub(super) share: f64,
    /// And at least so many milliseconds.
    pub(super) millis: f64,
}

impl LeastEffect {
    fn beside(self, baseline: f64) -> f64 {
        if baseline.is_finite() {
            self.millis.max(self.share * baseline)
        } else {
            self.millis
        }
    }
}

/// One scenario against another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparison {
    /// Candidate minus baseline in milliseconds: Hodges-Lehmann over blocks, or the one block's
    /// difference.
    pub(super) shift: f64,
    /// Its 95 % interval; exists from 6 blocks on.
    pub(super) interval: Option<Interval>,
    /// Two-sided p of Wilcoxon's signed-rank test; not below that of the test over several scenarios
    /// that it follows up.
    pub(super) p: f64,
    /// How many blocks both have.
    pub(super) blocks: usize,
    /// The baseline's median over blocks in milliseconds.
    pub(super) baseline: f64,
    /// The smallest difference in milliseconds that matters here.
    pub(super) least: f64,
}

impl Comparison {
    /// As the follow-up of a test over several scenarios: two of them differ only if any do.
    pub(super) fn following(mut self, any_differs: Option<f64>) -> Self {
        self.p = any_differs.map_or(self.p, |p| p.max(self.p));
        self
    }

    /// The other one against this one.
    pub(super) fn turned(mut self) -> Self {
        self.baseline += self.shift;
        self.shift = -self.shift;
        self.interval = self.interval.map(|interval| Interval {
            low: -interval.high,
            high: -interval.low,
        });
        self
    }

    /// What may be said, given p after Holm's correction.
    fn verdict(&self, p: f64) -> Verdict {
        let shift = Shift {
            estimate: self.shift,
            interval: self.interval,
        };
        let yardstick = Yardstick {
            minimum_effect: self.least,
            alpha: ALPHA,
            wanted: Wanted::Lower,
        };
        verdict(shift, p, yardstick).unwrap_or(Verdict::Inconclusive)
    }

    /// How far apart the two are: `12.0 ms (95 % interval 11.8 ms to 12.3 ms)`, without the
    /// interval where there is none.
    fn size_in_words(&self) -> String {
        if self.shift.is_infinite() {
            return "immeasurably".to_owned();
        }
        let turned = self.shift < 0.0;
        let interval = self.interval.map_or_else(String::new, |interval| {
            let (low, high) = if turned {
                (-interval.high, -interval.low)
            } else {
                (interval.low, interval.high)
            };
            format!(" (95 % interval {} to {})", told(low), told(high))
        });
        format!("{}{interval}", told(self.shift.abs()))
    }

    /// What may be said of the two by their names; `slower` and `faster` only with a verdict.
    pub(super) fn in_words(&self, verdict: Verdict, name: &str, other: &str) -> String {
        let size = self.size_in_words();
        match verdict {
            Verdict::Worse => format!("{name} is {size} slower than {other}"),
            Verdict::Better => format!("{name} is {size} faster than {other}"),
            Verdict::Equivalent => {
                let least = millis(self.least);
                format!("{name} and {other} differ by {size}, less than the {least} that matter,")
            }
            Verdict::Inconclusive if self.shift > 0.0 => {
                format!("{name} lies {size} above {other}")
            }
            Verdict::Inconclusive => format!("{name} lies {size} below {other}"),
        }
    }
}

/// Milliseconds, or that there is no end to them.
pub(super) fn told(value: f64) -> String {
    match value {
        f64::INFINITY => "∞".to_owned(),
        f64::NEG_INFINITY => "−∞".to_owned(),
        value => millis(value),
    }
}

/// A sentence about what has no number; nothing if everything has one.
pub(super) fn why_infinite(comparisons: &[Comparison]) -> &'static str {
    if comparisons.iter().any(|c| c.shift.is_infinite()) {
        " Half or more of the slower one's messages went unanswered, so that there is no median to subtract."
    } else {
        ""
    }
}

/// The middle value; `None` without values.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    let sample = Sorted::sort(values).ok()?;
    neph_stats::median(sample, 0).ok()?.number()
}

/// Each block's median.
pub(super) type Medians = BTreeMap<u32, Level>;

/// A scenario's; an experiment without messages has none.
pub(super) fn medians(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Medians {
    data.experiments_of(scenario, settings)
        .filter_map(|experiment| {
            let latencies = Latencies::of(experiment.main(), settings.basis);
            Some((experiment.block(), latencies.median()?))
        })
        .collect()
}

/// A scenario's in one layer. Below the response time an experiment has none in which no message
/// has that layer: kernel stamps may be missing, which says nothing of the network.
pub(super) fn medians_of_layer(
    data: &CampaignData,
    settings: &PlotSettings,
    scenario: usize,
    layer: &Layer,
) -> Medians {
    if *layer == Layer::Response {
        return medians(data, settings, scenario);
    }
    data.experiments_of(scenario, settings)
        .filter_map(|experiment| {
            let latencies = Latencies::of_layer(layer.flow(experiment)?, layer);
            let is_seen = !latencies.sorted().values().is_empty();
            Some((experiment.block(), latencies.median().filter(|_| is_seen)?))
        })
        .collect()
}

/// Candidate minus baseline; `None` if neither has a number.
fn difference(candidate: Level, baseline: Level) -> Option<f64> {
    match (candidate, baseline) {
        (Level::At(one), Level::At(other)) => Some(one - other),
        (Level::Censored, Level::At(_)) => Some(INFINITE),
        (Level::At(_), Level::Censored) => Some(-INFINITE),
        (Level::Censored, Level::Censored) => None,
    }
}

/// A number that a test made of differences; infinite if infinite ones decided it: half of
/// [`INFINITE`] is the least that a mean of two can then be.
fn undone(value: f64) -> f64 {
    if value.abs() > INFINITE / 4.0 {
        f64::INFINITY.copysign(value)
    } else {
        value
    }
}

/// Compares the blocks that both scenarios have; `None` without one in which either has a median.
pub(super) fn compare(
    candidate: &Medians,
    baseline: &Medians,
    least: LeastEffect,
) -> Option<Comparison> {
    let pairs: Vec<(f64, Level)> = candidate
        .iter()
        .filter_map(|(block, one)| {
            let other = *baseline.get(block)?;
            Some((difference(*one, other)?, other))
        })
        .collect();
    let differences: Vec<f64> = pairs.iter().map(|(difference, _)| *difference).collect();
    let test = wilcoxon(&differences, &vec![0.0; pairs.len()]).ok()?;
    let baseline = middle(pairs.iter().map(|(_, baseline)| *baseline))?;
    Some(Comparison {
        shift: undone(test.shift.estimate),
        interval: test.shift.interval.map(|interval| Interval {
            low: undone(interval.low),
            high: undone(interval.high),
        }),
        p: test.p,
        blocks: pairs.len(),
        baseline,
        least: least.beside(baseline),
    })
}

/// Friedman's p over several scenarios, in the blocks that all of them have: whether any differs
/// from the others. `None` for fewer than three, for which [`compare`] is the test.
pub(super) fn any_differs<'m>(scenarios: impl Iterator<Item = &'m Medians>) -> Option<f64> {
    let columns: Vec<&Medians> = scenarios.filter(|medians| !medians.is_empty()).collect();
    let row = |block: &u32| -> Option<Vec<f64>> {
        let levels = columns.iter().map(|medians| medians.get(block));
        levels
            .map(|level| Some(level?.number().unwrap_or(INFINITE)))
            .collect()
    };
    let rows: Vec<Vec<f64>> = columns.first()?.keys().filter_map(row).collect();
    friedman(&rows).ok().map(|test| test.p)
}

/// The median of medians, infinite where those without a number decide it.
fn middle(medians: impl Iterator<Item = Level> + Clone) -> Option<f64> {
    let mut known: Vec<f64> = medians.clone().filter_map(Level::number).collect();
    let censored = medians.count() - known.len();
    let sample = Sorted::sort(&mut known).ok()?;
    let level = neph_stats::median(sample, censored).ok()?;
    Some(level.number().unwrap_or(f64::INFINITY))
}

/// The p values after Holm's correction.
fn corrected(comparisons: &[Comparison]) -> Vec<f64> {
    let p_values: Vec<f64> = comparisons.iter().map(|c| c.p).collect();
    holm(&p_values).expect("a test's p values lie between 0 and 1")
}

/// What may be said of each, after Holm's correction.
pub(super) fn verdicts(comparisons: &[Comparison]) -> Vec<Verdict> {
    let judged = comparisons.iter().zip(corrected(comparisons));
    judged.map(|(c, p)| c.verdict(p)).collect()
}

/// How sure a set of comparisons is, after Holm's correction: a clause to end a sentence with.
pub(super) fn sureness(comparisons: &[Comparison]) -> String {
    let corrected = corrected(comparisons);
    let sure = corrected.iter().filter(|p| **p < ALPHA).count();
    let blocks = comparisons.iter().map(|c| c.blocks).min().unwrap_or(0);
    let needed = blocks_needed(comparisons.len());
    let counted = super::plural(blocks, "block");
    if blocks < needed {
        let verb = if blocks == 1 { "is" } else { "are" };
        return format!("{counted} {verb} too few to tell this from chance; it takes {needed}");
    }
    match (sure, comparisons) {
        (0, _) => "not significant over the blocks".to_owned(),
        (1, [one]) => {
            let undecided = one.verdict(corrected[0]) == Verdict::Inconclusive;
            let small = if undecided {
                format!(", but less than the {} that matter", millis(one.least))
            } else {
                String::new()
            };
            format!("significant over {counted} (p {:.3}){small}", corrected[0])
        }
        (sure, all) if sure == all.len() => {
            format!("significant over {counted} in each, after Holm's correction")
        }
        (sure, all) => {
            let all = all.len();
            format!("significant in {sure} of {all}, after Holm's correction")
        }
    }
}

/// The least number of blocks for which the signed-rank test can be significant at all, with so
/// many comparisons: the smallest p over n pairs is 2 / 2^n.
pub(super) fn blocks_needed(comparisons: usize) -> usize {
    let mut blocks = 1;
    let mut p = 1.0;
    while p * super::real(comparisons.max(1)) >= ALPHA {
        blocks += 1;
        p /= 2.0;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(p: f64, blocks: usize) -> Comparison {
        Comparison {
            shift: 1.0,
            interval: None,
            p,
            blocks,
            baseline: 4.0,
            least: 0.2,
        }
    }

    #[test]
    fn a_verdict_needs_enough_blocks() {
        assert_eq!((blocks_needed(1), blocks_needed(8)), (6, 9));
        assert_eq!(
            sureness(&[one(0.5, 2)]),
            "2 blocks are too few to tell this from chance; it takes 6"
        );
        assert_eq!(
            sureness(&[one(0.031, 6)]),
            "significant over 6 blocks (p 0.031)"
        );
        assert_eq!(sureness(&[one(0.4, 6)]), "not significant over the blocks");
        assert_eq!(
            sureness(&[one(0.002, 10), one(0.6, 10)]),
            "significant in 1 of 2, after Holm's correction"
        );
    }

    #[test]
    fn slower_is_a_verdict_and_needs_significance_and_effect() {
        let said = |comparison: Comparison| {
            let verdict = verdicts(&[comparison])[0];
            comparison.in_words(verdict, "a", "b")
        };
        assert_eq!(said(one(0.031, 6)), "a is 1.00 ms slower than b");
        assert_eq!(said(one(0.4, 6)), "a lies 1.00 ms above b");
        let narrow = Interval {
            low: 0.01,
            high: 0.1,
        };
        let small = Comparison {
            shift: -0.05,
            interval: Some(narrow),
            ..one(0.031, 6)
        };
        assert_eq!(
            said(small),
            "a and b differ by 50.0 µs (95 % interval −100 µs to −10.0 µs), less than the 200 µs that matter,"
        );
        let unsure = Comparison {
            interval: None,
            ..small
        };
        assert_eq!(said(unsure), "a lies 50.0 µs below b");
        assert_eq!(
            sureness(&[unsure]),
            "significant over 6 blocks (p 0.031), but less than the 200 µs that matter"
        );
    }
}
