//! Two seasons compared: a time of low load against one of high load, or any two sets of
//! experiments.
//!
//! The unit is the experiment, not the flow and not the message: flows of one experiment share the
//! network's mood. Where both seasons were measured in the same blocks the test is paired.

use neph_stats::{
    Interval, Sorted, StatsError, Verdict, Wanted, Yardstick, mann_whitney, median, verdict,
    wilcoxon,
};

use crate::view::FleetView;

/// What is compared between seasons: one number of an experiment and pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Path changes per flow and hour.
    Changes,
    /// Highest over lowest latency class.
    Inflation,
    /// p95 over flows above p50 over flows, as a share of p50: the median over bins.
    Unfairness,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Changes, Self::Inflation, Self::Unfairness];

    /// Its name on screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changes => "path changes per flow and hour",
            Self::Inflation => "latency inflation",
            Self::Unfairness => "unfairness (p95 over p50)",
        }
    }

    /// Its value in one experiment for one endpoint; `None` where it has none.
    pub fn of(self, view: &FleetView, endpoint: usize) -> Option<f64> {
        let pair = view.pairs.get(endpoint)?;
        match self {
            Self::Changes => pair.changes_per_flow_hour(),
            Self::Inflation => pair.inflation.map(|inflation| inflation.ratio),
            Self::Unfairness => {
                let bins = view.fairness.get(endpoint)?.iter();
                let mut gaps: Vec<f64> = bins
                    .filter(|bin| bin.latency[1].nanos() > 0)
                    .map(|bin| bin.latency[2].secs_f64() / bin.latency[1].secs_f64() - 1.0)
                    .collect();
                median(Sorted::sort(&mut gaps).ok()?, 0).ok()?.number()
            }
        }
    }
}

/// One season's values of a measure: one an experiment.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Of blocks in which both seasons were measured: first season's, second's.
    Paired(&'a [f64], &'a [f64]),
    /// Of experiments that have nothing to do with each other.
    Apart(&'a [f64], &'a [f64]),
}

/// How a measure differs between two seasons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeasonShift {
    /// Second season minus first: the Hodges-Lehmann estimate.
    pub shift: f64,
    /// Its 95 % interval, where there are experiments enough for one.
    pub interval: Option<Interval>,
    /// The test's p value.
    pub p: f64,
    /// Whether the second season is worse (higher), better, equivalent, or nothing can be said.
    pub verdict: Verdict,
    /// Experiments, first season's and second's.
    pub n: (usize, usize),
}

/// Compares two seasons. `minimum_effect` is the smallest difference that matters, in the unit of
/// the values, 0 or more.
///
/// # Errors
/// [`StatsError::TooFew`] where the test cannot be made of so few experiments, and what the tests
/// refuse otherwise.
pub fn compare_seasons(values: Values<'_>, minimum_effect: f64) -> Result<SeasonShift, StatsError> {
    let (test, n) = match values {
        Values::Paired(first, second) => (wilcoxon(second, first)?, (first.len(), second.len())),
        Values::Apart(first, second) => (mann_whitney(second, first)?, (first.len(), second.len())),
    };
    let yardstick = Yardstick {
        minimum_effect,
        alpha: 0.05,
        wanted: Wanted::Lower,
    };
    Ok(SeasonShift {
        shift: test.shift.estimate,
        interval: test.shift.interval,
        p: test.p,
        verdict: verdict(test.shift, test.p, yardstick)?,
        n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restless_season_is_told_from_a_quiet_one_by_its_experiments() {
        let low = [10.0, 12.0, 11.0, 9.0, 13.0, 10.5, 11.5, 12.5];
        let high: Vec<f64> = low.iter().map(|value| value + 6.0).collect();
        for values in [Values::Paired(&low, &high), Values::Apart(&low, &high)] {
            let told = compare_seasons(values, 1.0).unwrap();
            assert_eq!(told.verdict, Verdict::Worse);
            assert!((told.shift - 6.0).abs() < 1e-9 && told.p < 0.01, "{told:?}");
            assert_eq!(told.n, (8, 8));
        }
    }

    #[test]
    fn three_experiments_prove_nothing() {
        let told = compare_seasons(Values::Apart(&[1.0, 2.0, 3.0], &[7.0, 8.0, 9.0]), 1.0);
        assert!(told.is_err() || told.is_ok_and(|told| told.verdict == Verdict::Inconclusive));
    }
}
