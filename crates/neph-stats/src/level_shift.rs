//! The difference of two sets of levels, some of which may be above every number: lost messages have a place
//! in the order too.
//!
//! Owns the number that replaces a lost level in tests, and the meaning of their results. Does not own the
//! tests: [`mann_whitney()`] and, for blocks, [`crate::PairedShift`].

use crate::error::StatsError;
use crate::interval::ConfidenceInterval;
use crate::mannwhitney::mann_whitney;
use crate::quantile::{Level, median};
use crate::shift::{Shift, ShiftTest};
use crate::sorted::Sorted;

/// Replaces a level above every number, and the difference to one: more than any measured value, in any unit.
const ENDLESS_LEVEL: f64 = 1e12;

/// How far a candidate's levels lie above a baseline's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelShift {
    /// In the unit of the levels. The estimate and the ends of the interval are infinite where levels without
    /// a number decide them.
    pub shift: Shift,
    /// Two-sided p value.
    pub p: f64,
    /// Number of levels used: the candidate's and the baseline's.
    pub n: (usize, usize),
}

impl LevelShift {
    fn of(test: ShiftTest, n: (usize, usize)) -> Self {
        Self {
            shift: Shift {
                estimate: undone(test.shift.estimate),
                interval: test.shift.interval.map(|interval| ConfidenceInterval {
                    low: undone(interval.low),
                    high: undone(interval.high),
                }),
            },
            p: test.p,
            n,
        }
    }
}

/// Whether a block shows a difference of its two levels: at least one has a number.
pub fn distinguishes((candidate, baseline): (Level, Level)) -> bool {
    difference((candidate, baseline)).is_some()
}

/// How far the candidate lies above the baseline, for levels that are not paired and in any order, by the
/// test of Mann and Whitney. For paired ones use [`crate::PairedShift`].
///
/// # Errors
/// [`StatsError::TooFew`] when a side is empty; [`StatsError::NotFinite`].
pub fn shift_of_levels(candidate: &[Level], baseline: &[Level]) -> Result<LevelShift, StatsError> {
    let test = mann_whitney(&numbers(candidate), &numbers(baseline))?;
    Ok(LevelShift::of(test, (candidate.len(), baseline.len())))
}

/// The median of levels (type 7): censored where those without a number decide it.
///
/// # Errors
/// [`StatsError::TooFew`] without levels; [`StatsError::NotFinite`].
pub fn median_of_levels(levels: impl IntoIterator<Item = Level>) -> Result<Level, StatsError> {
    let (mut known, mut lost) = (Vec::new(), 0);
    for level in levels {
        match level {
            Level::At(value) => known.push(value),
            Level::Censored => lost += 1,
        }
    }
    median(Sorted::sort(&mut known)?, lost)
}

/// Candidate minus baseline; `None` where neither has a number.
pub(crate) fn difference(block: (Level, Level)) -> Option<f64> {
    match block {
        (Level::At(candidate), Level::At(baseline)) => Some(candidate - baseline),
        (Level::Censored, Level::At(_)) => Some(ENDLESS_LEVEL),
        (Level::At(_), Level::Censored) => Some(-ENDLESS_LEVEL),
        (Level::Censored, Level::Censored) => None,
    }
}

fn numbers(levels: &[Level]) -> Vec<f64> {
    let number = |level: &Level| level.number().unwrap_or(ENDLESS_LEVEL);
    levels.iter().map(number).collect()
}

/// Converts a test's result for differences: infinite where infinite ones decided it. The mean of two values,
/// one of them itself the mean of an infinite and another one, is about a quarter of [`ENDLESS_LEVEL`].
pub(crate) fn undone(value: f64) -> f64 {
    if value.abs() > ENDLESS_LEVEL / 8.0 {
        f64::INFINITY.copysign(value)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::interval::ALPHA;
    use crate::paired::PairedShift;

    /// The test of blocks in the form of that of levels, against zero and two-sided.
    fn shift_of_blocks(blocks: &[(Level, Level)]) -> Result<LevelShift, StatsError> {
        let test = PairedShift::of_blocks(blocks)?;
        Ok(LevelShift {
            shift: Shift {
                estimate: test.estimate(),
                interval: test.interval(ALPHA),
            },
            p: (2.0 * test.p_above(0.0).min(test.p_below(0.0))).min(1.0),
            n: (test.n(), test.n()),
        })
    }

    const ONE_TO_SIX: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    fn at(values: &[f64]) -> Vec<Level> {
        values.iter().copied().map(Level::At).collect()
    }

    fn paired(candidate: &[Level], baseline: &[Level]) -> Vec<(Level, Level)> {
        let pairs = candidate.iter().zip(baseline);
        pairs
            .map(|(candidate, baseline)| (*candidate, *baseline))
            .collect()
    }

    /// Both ends of the interval.
    fn ends(result: &LevelShift) -> Option<(f64, f64)> {
        result
            .shift
            .interval
            .map(|interval| (interval.low, interval.high))
    }

    /// Differences of 1 to 6: twice one of 64 arrangements of signs, and the 11th of 21 means.
    #[test]
    fn blocks_are_compared_by_paired_differences() {
        let mut blocks = paired(&at(&[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]), &at(&ONE_TO_SIX));
        let result = shift_of_blocks(&blocks).unwrap();
        assert_eq!((result.shift.estimate, result.p), (3.5, 0.03125));
        assert_eq!((ends(&result), result.n), (Some((1.0, 6.0)), (6, 6)));
        // A block in which neither has a number changes nothing.
        blocks.insert(2, (Level::Censored, Level::Censored));
        assert_eq!(shift_of_blocks(&blocks), Ok(result));
        assert_eq!(
            blocks.iter().filter(|block| distinguishes(**block)).count(),
            6
        );
    }

    /// The largest of six differences is infinite, and so is its mean with each: the 11th of 21 means is one
    /// of the other differences, 1 to 5.
    #[test]
    fn a_lost_level_ranks_highest_and_the_shift_stays_finite_if_it_does_not_decide() {
        let mut candidate = at(&[2.0, 4.0, 6.0, 8.0, 10.0]);
        candidate.push(Level::Censored);
        let result = shift_of_blocks(&paired(&candidate, &at(&ONE_TO_SIX))).unwrap();
        assert_eq!((result.shift.estimate, result.p), (3.5, 0.03125));
        assert_eq!(ends(&result), Some((1.0, f64::INFINITY)));
        let reversed = shift_of_blocks(&paired(&at(&ONE_TO_SIX), &candidate)).unwrap();
        assert_eq!(ends(&reversed), Some((f64::NEG_INFINITY, -1.0)));
    }

    /// Differences of -3, -1 and an infinite one: of six means the third is -1 and the fourth that of -3 and
    /// the infinite one.
    #[test]
    fn a_midpoint_with_an_infinite_difference_is_infinite() {
        let candidate = [Level::At(1.0), Level::At(3.0), Level::Censored];
        let result = shift_of_blocks(&paired(&candidate, &at(&[4.0; 3]))).unwrap();
        assert_eq!(result.shift.estimate, f64::INFINITY);
    }

    /// 5, 6, 7 and a lost one against 1 to 4: of 16 differences the 8th and 9th are 4, the least is 1. One of
    /// 70 arrangements is as extreme, at either end.
    #[test]
    fn unpaired_levels_are_compared_by_all_pairwise_differences() {
        let mut candidate = at(&[5.0, 6.0, 7.0]);
        candidate.push(Level::Censored);
        let result = shift_of_levels(&candidate, &at(&[1.0, 2.0, 3.0, 4.0])).unwrap();
        assert_eq!((result.shift.estimate, result.n), (4.0, (4, 4)));
        assert!((result.p - 2.0 / 70.0).abs() < 1e-15);
        assert_eq!(ends(&result), Some((1.0, f64::INFINITY)));
    }

    #[test]
    fn seasons_that_differ_have_a_significant_shift() {
        let low = [10.0, 12.0, 11.0, 9.0, 13.0, 10.5, 11.5, 12.5];
        let high = at(&low.map(|value| value + 6.0));
        let low = at(&low);
        let result = shift_of_blocks(&paired(&high, &low)).unwrap();
        for result in [result, shift_of_levels(&high, &low).unwrap()] {
            let shift = result.shift.estimate;
            assert!((shift - 6.0).abs() < 1e-9 && result.p < 0.01, "{result:?}");
            assert_eq!(result.n, (8, 8));
        }
    }

    #[test]
    fn three_experiments_are_not_significant() {
        let (low, high) = (at(&[1.0, 2.0, 3.0]), at(&[7.0, 8.0, 9.0]));
        let result = shift_of_levels(&high, &low);
        assert!(result.is_err() || result.is_ok_and(|result| result.p > 0.05));
    }

    #[test]
    fn a_season_with_a_lost_level_is_worse_than_any_with_a_value() {
        let low = at(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]);
        let lost = vec![Level::Censored; 8];
        let result = shift_of_blocks(&paired(&lost, &low)).unwrap();
        for result in [result, shift_of_levels(&lost, &low).unwrap()] {
            let shift = result.shift.estimate;
            assert!(shift == f64::INFINITY && result.p < 0.01, "{result:?}");
        }
        assert!(shift_of_blocks(&paired(&lost, &lost)).is_err());
    }

    #[test]
    fn the_median_of_levels_includes_lost_levels() {
        let of = |lost: usize| {
            let lost = std::iter::repeat_n(Level::Censored, lost);
            median_of_levels(lost.chain(at(&[3.0, 1.0, 2.0])))
        };
        assert_eq!(of(0), Ok(Level::At(2.0)));
        assert_eq!(of(1), Ok(Level::At(2.5)));
        assert_eq!(of(2), Ok(Level::At(3.0)));
        assert_eq!(of(3), Ok(Level::Censored));
        assert!(median_of_levels([]).is_err());
    }

    proptest! {
        #[test]
        fn swapping_the_samples_negates_the_shift(
            pairs in prop::collection::vec((-9..9_i32, -9..9_i32), 1..40),
        ) {
            // About one in six was lost.
            let level = |number: i32| if number > 5 { Level::Censored } else { Level::At(number.into()) };
            let there: Vec<_> = pairs.iter().map(|(a, b)| (level(*a), level(*b))).collect();
            let back: Vec<_> = there.iter().map(|(a, b)| (*b, *a)).collect();
            let reversed = |result: LevelShift| (result.p, -result.shift.estimate);
            match (shift_of_blocks(&there), shift_of_blocks(&back)) {
                (Ok(there), Ok(back)) => {
                    let (p, estimate) = reversed(back);
                    prop_assert!((there.p - p).abs() < 1e-12);
                    prop_assert_eq!(there.shift.estimate, estimate);
                }
                (there, back) => prop_assert!(there.is_err() && back.is_err()),
            }
        }
    }
}
