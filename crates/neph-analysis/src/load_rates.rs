//! Rates of the generated traffic, by load, end and block.

use std::collections::BTreeMap;

use neph_model::{CpuUse, LoadEnd, LoadSpec, Scenario, SeriesName};
use neph_stats::Level;

use crate::quantities::{QuantitySummary, summary_of};
use crate::{CampaignData, ExperimentData, PlotSettings};

/// The rate of a scenario's load at one of its ends, over at least one block.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadCourse {
    /// The load as in the plan: `vm1 flow 10.0.0.1:8080 max`.
    pub load: String,
    /// The end.
    pub end: LoadEnd,
    /// Mean over the seconds of each block, bits per second; blocks count from 1.
    pub by_block: BTreeMap<u32, Level>,
    /// CPU utilisation of the guest at that end, percent; empty if it is no guest.
    pub cpu_by_block: BTreeMap<u32, Level>,
}

impl LoadCourse {
    /// Summary over the experiments; `None` without one.
    pub fn summary(&self) -> Option<QuantitySummary> {
        summary_of(&self.by_block)
    }
}

impl CampaignData {
    /// Rates of a scenario's loads, in the order of the plan, sent before received.
    pub fn load_courses(&self, scenario: usize, settings: &PlotSettings) -> Vec<LoadCourse> {
        let loads = traffic(&self.scenarios[scenario]);
        let courses = loads
            .iter()
            .flat_map(|load| LoadEnd::ALL.map(|end| (load, end)));
        let courses = courses.map(|((number, text), end)| LoadCourse {
            load: text.clone(),
            end,
            by_block: self.load_by_block(scenario, settings, SeriesName::Load(*number, end)),
            cpu_by_block: self.load_by_block(scenario, settings, SeriesName::LoadCpu(*number, end)),
        });
        courses
            .filter(|course| !course.by_block.is_empty())
            .collect()
    }

    /// CPU utilisation of the measuring host during a scenario, percent, by block.
    pub fn cpu_by_block(&self, scenario: usize, settings: &PlotSettings) -> BTreeMap<u32, Level> {
        self.load_by_block(scenario, settings, SeriesName::Cpu(CpuUse::Busy))
    }

    pub(crate) fn load_by_block(
        &self,
        scenario: usize,
        settings: &PlotSettings,
        series: SeriesName,
    ) -> BTreeMap<u32, Level> {
        let experiments = self.experiments_of(scenario, settings);
        let means = experiments
            .filter_map(|experiment| Some((experiment.block(), mean(experiment, series)?)));
        means.collect()
    }
}

/// The loads of a scenario that are traffic, each with its number in series.
pub(crate) fn traffic(scenario: &Scenario) -> Vec<(u16, String)> {
    let Some(stress) = scenario.parameters.stress() else {
        return Vec::new();
    };
    let numbered = (1..).zip(stress.loads());
    let traffic = numbered.filter(|(_, load)| !matches!(load.load, LoadSpec::Cpu(_)));
    traffic
        .map(|(number, load)| (number, load.to_string()))
        .collect()
}

/// Mean over time. Each value covers the time since the previous one, which exceeds a second after a late
/// reading.
fn mean(experiment: &ExperimentData, series: SeriesName) -> Option<Level> {
    let samples = experiment
        .samples
        .iter()
        .filter(|sample| sample.series == series);
    let samples: Vec<(i64, f64)> = samples.map(|sample| (sample.at, sample.value)).collect();
    over_time(&samples).map(Level::At)
}

/// Mean of values, weighted by the time that each covers; the first covers a second.
#[expect(
    clippy::cast_precision_loss,
    reason = "an experiment has far less than 2^53 ns"
)]
fn over_time(values: &[(i64, f64)]) -> Option<f64> {
    const SECOND: i64 = 1_000_000_000;
    let (first, _) = values.first()?;
    let mut before = first.saturating_sub(SECOND);
    let (mut sum, mut total) = (0.0, 0.0);
    for (at, value) in values {
        let length = at.saturating_sub(before).max(0) as f64;
        sum += value * length;
        total += length;
        before = *at;
    }
    (total > 0.0).then(|| sum / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_reading_is_weighted_by_the_time_it_covers() {
        const SECOND: i64 = 1_000_000_000;
        let mean = over_time(&[(SECOND, 10.0), (3_500_000_000, 1.0)]).expect("two values");
        assert!((mean - 12.5 / 3.5).abs() < 1e-12, "{mean}");
        assert_eq!(over_time(&[(5 * SECOND, 7.0)]), Some(7.0));
        assert_eq!(over_time(&[]), None);
    }
}
