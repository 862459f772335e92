//! The difference of two scenarios that were measured in the same blocks. One procedure gives p values
//! against any limit and intervals of any level, so they never contradict each other.
//!
//! It is Wilcoxon's signed-rank test by counts of Walsh averages (Tukey 1949). Without ties its statistic is
//! the number of averages above the limit. Averages equal to the limit count for neither side, which is
//! conservative with ties. It assumes differences that are independent and symmetric around their centre. The
//! estimate is the centre (Hodges-Lehmann): of a skewed distribution the pseudo-median, not the median.

use crate::casts::usize_to_f64;
use crate::error::StatsError;
use crate::interval::ConfidenceInterval;
use crate::level_shift::{difference, undone};
use crate::pairs::Pairs;
use crate::quantile::Level;
use crate::shift::{Approximation, Arrangements, EXACT_UP_TO, triangle, untied};
use crate::sorted::{Sorted, refuse_fewer};

/// Differences, candidate minus baseline, and the null distribution of their signed ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedShift {
    /// In ascending order.
    differences: Vec<f64>,
    null: Null,
}

/// The distribution of the signed-rank statistic where nothing differs.
#[derive(Debug, Clone, PartialEq)]
enum Null {
    /// The share of arrangements with at most this sum, by sum.
    Exact(Vec<f64>),
    Normal(Approximation),
}

impl PairedShift {
    /// From blocks, each with the candidate's level and the baseline's. Blocks in which neither has a number
    /// do not count ([`crate::distinguishes`]).
    ///
    /// # Errors
    /// [`StatsError::TooFew`] where no block counts; [`StatsError::NotFinite`].
    pub fn of_blocks(blocks: &[(Level, Level)]) -> Result<Self, StatsError> {
        let differences = blocks.iter().copied().filter_map(difference).collect();
        Self::of_differences(differences)
    }

    /// From differences, in any order.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] without any; [`StatsError::NotFinite`].
    pub fn of_differences(mut differences: Vec<f64>) -> Result<Self, StatsError> {
        refuse_fewer("signed-rank test", 1, differences.len())?;
        Sorted::sort(&mut differences)?;
        let n = differences.len();
        let null = if n <= EXACT_UP_TO {
            Null::Exact(Arrangements::of_subsets(&untied(n)).up_to_each())
        } else {
            Null::Normal(approximation(n))
        };
        Ok(Self { differences, null })
    }

    /// Number of blocks used.
    pub fn n(&self) -> usize {
        self.differences.len()
    }

    /// The centre of the differences: the median of all Walsh averages. Infinite where levels without a
    /// number decide it.
    pub fn estimate(&self) -> f64 {
        undone(self.averages().median())
    }

    /// One-sided p value of "the shift is at most `limit`": small if it lies above.
    pub fn p_above(&self, limit: f64) -> f64 {
        self.up_to(self.averages().count_up_to(limit))
    }

    /// One-sided p value of "the shift is at least `limit`": small if it lies below.
    pub fn p_below(&self, limit: f64) -> f64 {
        let averages = self.averages();
        self.up_to(averages.count() - averages.count_up_to(limit.next_down()))
    }

    /// All shifts that neither one-sided test rejects at half of `alpha`: an interval of confidence 1 -
    /// `alpha`. `None` with too few blocks.
    pub fn interval(&self, alpha: f64) -> Option<ConfidenceInterval> {
        let averages = self.averages();
        let (mut rank, mut above) = (0, averages.count());
        // The most averages that may lie beyond an end.
        while rank < above {
            let middle = rank + (above - rank).div_ceil(2);
            if self.up_to(middle - 1) <= 0.5 * alpha {
                rank = middle;
            } else {
                above = middle - 1;
            }
        }
        (rank > 0).then(|| {
            let interval = averages.interval(rank);
            ConfidenceInterval {
                low: undone(interval.low),
                high: undone(interval.high),
            }
        })
    }

    /// The probability of at most this many averages on one side.
    fn up_to(&self, count: usize) -> f64 {
        match &self.null {
            Null::Exact(shares) => shares.get(count).copied().unwrap_or(1.0),
            Null::Normal(normal) => normal.up_to(count),
        }
    }

    fn averages(&self) -> Pairs<'_> {
        Pairs::Means(Sorted::check(&self.differences).expect("they were sorted"))
    }
}

/// The sum of the positive ranks of this many differences.
fn approximation(n: usize) -> Approximation {
    let mean = 0.5 * triangle(n);
    Approximation {
        mean,
        sd: (mean * (2.0 * usize_to_f64(n) + 1.0) / 6.0).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::interval::ALPHA;

    fn of(differences: &[f64]) -> PairedShift {
        PairedShift::of_differences(differences.to_vec()).unwrap()
    }

    /// Six differences of one sign: one arrangement of 64 is as extreme.
    #[test]
    fn six_blocks_are_the_smallest_significant_number() {
        let six = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!((six.p_above(0.0), six.p_below(0.0)), (1.0 / 64.0, 1.0));
        assert_eq!(six.estimate(), 3.5);
        let ends = six
            .interval(ALPHA)
            .map(|interval| (interval.low, interval.high));
        assert_eq!(ends, Some((1.0, 6.0)));
        assert_eq!(six.interval(0.01), None);
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0]).interval(ALPHA), None);
        assert!(PairedShift::of_differences(Vec::new()).is_err());
    }

    /// Against 2.5 the averages above it are those of 3 to 6 and (1,4)?, counted by hand: of 21 averages
    /// (1,1) 1, (1,2) 1.5, (1,3) 2, (1,4) 2.5, (2,2) 2, (2,3) 2.5 are not above it.
    #[test]
    fn a_test_against_a_limit_equals_a_test_of_shifted_values_against_zero() {
        let six = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        // P(W <= 6) of 64 arrangements: sums 0, 1, 2, 3 (2 ways), 4 (2), 5 (3), 6 (4).
        assert_eq!(six.p_above(2.5), 14.0 / 64.0);
        let moved = of(&[-1.5, -0.5, 0.5, 1.5, 2.5, 3.5]);
        assert_eq!(moved.p_above(0.0), six.p_above(2.5));
    }

    #[test]
    fn differences_equal_to_the_limit_count_for_neither_side() {
        let ties = of(&[0.0; 8]);
        assert_eq!((ties.p_above(0.0), ties.p_below(0.0)), (1.0, 1.0));
        assert!(ties.p_above(-1.0) < 0.01 && ties.p_below(1.0) < 0.01);
    }

    proptest! {
        /// With ties, and beyond the exact distribution too.
        #[test]
        fn p_values_and_intervals_never_contradict(
            differences in prop::collection::vec((-20..20_i32).prop_map(f64::from), 6..70),
            limit in -10..10_i32,
            alpha in prop::sample::select(vec![0.05, 0.01, 0.002]),
        ) {
            let (shift, limit) = (of(&differences), f64::from(limit));
            let Some(interval) = shift.interval(alpha) else { return Ok(()) };
            prop_assert_eq!(shift.p_above(limit) <= 0.5 * alpha, interval.low > limit);
            prop_assert_eq!(shift.p_below(limit) <= 0.5 * alpha, interval.high < limit);
            prop_assert!(interval.contains(shift.estimate()));
        }

        #[test]
        fn negating_the_differences_swaps_the_sides(
            differences in prop::collection::vec(-9.0..9.0_f64, 1..60), limit in -5.0..5.0_f64,
        ) {
            let negated: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            prop_assert_eq!(of(&differences).p_above(limit), of(&negated).p_below(-limit));
        }
    }
}
