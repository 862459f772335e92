//! Two seasons compared: a time of low load against one of high load, or any two sets of
//! experiments.
//!
//! The unit is the experiment, not the flow and not the message: flows of one experiment share the
//! network's mood. Where both seasons were measured in the same blocks the test is paired.

use neph_stats::{
    Interval, Level, Sorted, StatsError, mann_whitney, median, quantile_needs, wilcoxon,
};

use crate::latency::Latency;
use crate::view::{Fairness, FleetView};

/// What stands for the difference to something lost in a test, which wants numbers.
const ENDLESS: f64 = 1e12;
/// The quantile over flows that is held against their median.
const SLOW: f64 = 0.95;

/// What is compared between seasons: one number of an experiment and pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Path changes per flow and hour, of the time in which they could be told.
    Changes,
    /// Highest over lowest latency class.
    Inflation,
    /// p95 over flows above p50 over flows, as a share of p50: the median over bins.
    Unfairness,
}

/// Why an experiment has no value of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoValue {
    /// It has not so many flows in any bin of time.
    TooFewFlows {
        /// How many it takes.
        needs: usize,
    },
    /// Nothing that could be compared was seen.
    Unseen,
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

    /// Its value in one experiment for one endpoint.
    ///
    /// # Errors
    /// Why it has none.
    pub fn of(self, view: &FleetView, endpoint: usize) -> Result<Level, NoValue> {
        let pair = view.pairs.get(endpoint).ok_or(NoValue::Unseen)?;
        let value = match self {
            Self::Changes => pair.changes_per_flow_hour(),
            Self::Inflation => pair.inflation.map(|inflation| inflation.ratio),
            Self::Unfairness => {
                let bins = view.fairness.get(endpoint).ok_or(NoValue::Unseen)?;
                return unfairness(bins);
            }
        };
        value.map(Level::At).ok_or(NoValue::Unseen)
    }
}

/// Of the bins that have flows enough; one whose p95 falls on a lost flow is above all others.
fn unfairness(bins: &[Fairness]) -> Result<Level, NoValue> {
    let needs = quantile_needs(SLOW).map_err(|_| NoValue::Unseen)?;
    let enough = || bins.iter().filter(|bin| bin.flows as usize >= needs);
    if enough().next().is_none() {
        return Err(NoValue::TooFewFlows { needs });
    }
    let lost = enough().filter(|bin| bin.latency[2] == Latency::Lost);
    let gap = |bin: &Fairness| {
        let (middle, slow) = (bin.latency[1].took()?, bin.latency[2].took()?);
        (middle.nanos() > 0).then(|| slow.secs_f64() / middle.secs_f64() - 1.0)
    };
    let mut gaps: Vec<f64> = enough().filter_map(gap).collect();
    let lost = lost.count();
    let sorted = Sorted::sort(&mut gaps).map_err(|_| NoValue::Unseen)?;
    median(sorted, lost).map_err(|_| NoValue::Unseen)
}

/// Values of a measure: one an experiment. Censored ones are above every number.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Of blocks in which both seasons were measured: first season's and second's.
    Paired(&'a [(Level, Level)]),
    /// Of experiments that have nothing to do with each other: first season's, second's.
    Apart(&'a [Level], &'a [Level]),
}

/// How a measure differs between two seasons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeasonShift {
    /// Second season minus first: the Hodges-Lehmann estimate; infinite where what was lost decides.
    pub shift: f64,
    /// Its 95 % interval, where there are experiments enough for one; ends may be infinite.
    pub interval: Option<Interval>,
    /// The test's p value.
    pub p: f64,
    /// Experiments, first season's and second's.
    pub n: (usize, usize),
}

/// Compares two seasons. Blocks in which neither season has a number say nothing.
///
/// # Errors
/// [`StatsError::TooFew`] where the test cannot be made of so few experiments, and what the tests
/// refuse otherwise.
pub fn compare_seasons(values: Values<'_>) -> Result<SeasonShift, StatsError> {
    let (test, n) = match values {
        Values::Paired(blocks) => {
            let differences: Vec<f64> = blocks.iter().filter_map(difference).collect();
            let n = differences.len();
            (wilcoxon(&differences, &vec![0.0; n])?, (n, n))
        }
        Values::Apart(first, second) => {
            let n = (first.len(), second.len());
            (mann_whitney(&numbers(second), &numbers(first))?, n)
        }
    };
    Ok(SeasonShift {
        shift: endless(test.shift.estimate),
        interval: test.shift.interval.map(|interval| Interval {
            low: endless(interval.low),
            high: endless(interval.high),
        }),
        p: test.p,
        n,
    })
}

/// Second minus first; `None` where neither has a number.
fn difference((first, second): &(Level, Level)) -> Option<f64> {
    match (first, second) {
        (Level::At(first), Level::At(second)) => Some(second - first),
        (Level::At(_), Level::Censored) => Some(ENDLESS),
        (Level::Censored, Level::At(_)) => Some(-ENDLESS),
        (Level::Censored, Level::Censored) => None,
    }
}

fn numbers(levels: &[Level]) -> Vec<f64> {
    let number = |level: &Level| level.number().unwrap_or(ENDLESS);
    levels.iter().map(number).collect()
}

/// What a test made of differences; half of [`ENDLESS`] is the least that a mean of two can be of
/// which one was endless.
fn endless(value: f64) -> f64 {
    if value.abs() > ENDLESS / 4.0 {
        f64::INFINITY.copysign(value)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{Instant, Span};

    use super::*;

    fn at(values: &[f64]) -> Vec<Level> {
        values.iter().copied().map(Level::At).collect()
    }

    fn paired(first: &[Level], second: &[Level]) -> Vec<(Level, Level)> {
        first.iter().copied().zip(second.iter().copied()).collect()
    }

    #[test]
    fn a_restless_season_is_told_from_a_quiet_one_by_its_experiments() {
        let low = [10.0, 12.0, 11.0, 9.0, 13.0, 10.5, 11.5, 12.5];
        let high = at(&low.map(|value| value + 6.0));
        let low = at(&low);
        let both = paired(&low, &high);
        for values in [Values::Paired(&both), Values::Apart(&low, &high)] {
            let told = compare_seasons(values).unwrap();
            assert!((told.shift - 6.0).abs() < 1e-9 && told.p < 0.01, "{told:?}");
            assert_eq!(told.n, (8, 8));
        }
    }

    #[test]
    fn three_experiments_prove_nothing() {
        let (low, high) = (at(&[1.0, 2.0, 3.0]), at(&[7.0, 8.0, 9.0]));
        let told = compare_seasons(Values::Apart(&low, &high));
        assert!(told.is_err() || told.is_ok_and(|told| told.p > 0.05));
    }

    #[test]
    fn a_season_that_lost_too_much_for_a_number_is_worse_than_any_that_has_one() {
        let low = at(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]);
        let lost = vec![Level::Censored; 8];
        let both = paired(&low, &lost);
        for values in [Values::Paired(&both), Values::Apart(&low, &lost)] {
            let told = compare_seasons(values).unwrap();
            assert!(told.shift == f64::INFINITY && told.p < 0.01, "{told:?}");
        }
        let neither = paired(&lost, &lost);
        assert!(compare_seasons(Values::Paired(&neither)).is_err());
    }

    fn bin(flows: u32, latency: [i64; 3]) -> Fairness {
        let [p50, p95, p99] = latency.map(|millis| Latency::Took(Span::from_millis(millis)));
        Fairness {
            from: Instant::from_nanos(0),
            flows,
            lost: 0,
            latency: [p50, p50, p95, p99, p99],
            changes: Some(0),
            base: None,
        }
    }

    #[test]
    fn unfairness_takes_the_flows_that_p95_takes_and_counts_what_is_lost() {
        let few = [bin(58, [10, 30, 30])];
        assert_eq!(unfairness(&few), Err(NoValue::TooFewFlows { needs: 59 }));
        let mut bins = [10, 12, 14].map(|p95| bin(59, [10, p95, 30])).to_vec();
        // Bins with too few flows, as when a measurement ends, do not count.
        bins.push(bin(5, [10, 90, 90]));
        assert_eq!(unfairness(&bins), Ok(Level::At(12.0 / 10.0 - 1.0)));
        let mut lost = bin(59, [10, 10, 10]);
        lost.latency[2] = Latency::Lost;
        bins.extend([lost; 2]);
        assert_eq!(unfairness(&bins), Ok(Level::At(14.0 / 10.0 - 1.0)));
        bins.extend([lost; 2]);
        assert_eq!(unfairness(&bins), Ok(Level::Censored));
    }
}
