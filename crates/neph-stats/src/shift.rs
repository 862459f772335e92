//! The result of a test of two scenarios, and the exact null distribution of a rank sum that both tests
//! share.

use crate::casts::usize_to_f64;
use crate::interval::{ALPHA, ConfidenceInterval};

/// Up to this many ranks the null distribution is counted exactly. All counts stay below 2^53, so floats
/// represent them exactly.
pub(crate) const EXACT_UP_TO: usize = 50;

/// How a p value was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Counted over all arrangements of the given ranks, including ties.
    Exact,
    /// Normal approximation, corrected for ties and continuity.
    Normal,
}

/// How far one scenario lies above the other, in the unit of the values (Hodges-Lehmann).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The estimate; negative when the first argument of the test was the smaller one.
    pub estimate: f64,
    /// Its 95 % confidence interval; absent with too few experiments.
    pub interval: Option<ConfidenceInterval>,
}

/// Result of a test of two scenarios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShiftTest {
    /// Number of values in the test statistic (for pairs: those that differ).
    pub n: usize,
    /// The test statistic, see the function that made it.
    pub statistic: f64,
    /// Two-sided p value.
    pub p: f64,
    /// How p was computed.
    pub basis: Basis,
    /// The difference of the two.
    pub shift: Shift,
}

/// The number of arrangements for each value of a sum.
#[derive(Debug)]
pub(crate) struct Arrangements(Vec<f64>);

impl Arrangements {
    /// Sums over all subsets of `weights`, of every size.
    pub(crate) fn of_subsets(weights: &[usize]) -> Self {
        let mut counts = vec![0.0; weights.iter().sum::<usize>() + 1];
        counts[0] = 1.0;
        for &weight in weights {
            for sum in (weight..counts.len()).rev() {
                counts[sum] += counts[sum - weight];
            }
        }
        Self(counts)
    }

    /// Sums over the subsets of `weights` that have `size` members.
    pub(crate) fn of_subsets_sized(weights: &[usize], size: usize) -> Self {
        let sums = weights.iter().sum::<usize>() + 1;
        let mut counts = vec![vec![0.0; sums]; size + 1];
        counts[0][0] = 1.0;
        for &weight in weights {
            for members in (1..=size).rev() {
                let (smaller, rest) = counts.split_at_mut(members);
                let smaller = &smaller[members - 1];
                for sum in weight..sums {
                    rest[0][sum] += smaller[sum - weight];
                }
            }
        }
        Self(counts.swap_remove(size))
    }

    /// For each sum, the share of arrangements that have it or a smaller one.
    pub(crate) fn up_to_each(&self) -> Vec<f64> {
        let total: f64 = self.0.iter().sum();
        let mut so_far = 0.0;
        let reached = |count: &f64| {
            so_far += count;
            so_far / total
        };
        self.0.iter().map(reached).collect()
    }

    /// Twice the smaller tail that begins at `sum`, at most 1.
    pub(crate) fn two_sided(&self, sum: usize) -> f64 {
        let total: f64 = self.0.iter().sum();
        let below: f64 = self.0[..=sum].iter().sum();
        let above: f64 = self.0[sum..].iter().sum();
        (2.0 * below.min(above) / total).min(1.0)
    }

    /// How many of the smallest sums have together at most `tail`. That is the rank, from 1, of the pair that
    /// ends the interval; 0 if even the smallest sum is too likely.
    pub(crate) fn interval_rank(&self, tail: f64) -> usize {
        let total: f64 = self.0.iter().sum();
        let reached = |so_far: &mut f64, count: &f64| {
            *so_far += count;
            Some(*so_far)
        };
        let possible = self.0.iter().skip_while(|&&count| count <= 0.0);
        possible
            .scan(0.0, reached)
            .take_while(|&so_far| so_far <= tail * total)
            .count()
    }
}

/// Whole weights with the order and ties of `ranks`: ranks are multiples of 1/2.
pub(crate) fn doubled(ranks: &[f64]) -> Vec<usize> {
    ranks
        .iter()
        .map(|r| crate::casts::to_usize((2.0 * r).round()))
        .collect()
}

/// The p value and the interval's rank under a normal approximation of a statistic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Approximation {
    pub(crate) mean: f64,
    pub(crate) sd: f64,
}

impl Approximation {
    /// Two-sided, corrected for continuity by 1/2; 1 where nothing varies.
    pub(crate) fn two_sided(self, statistic: f64) -> f64 {
        let distance = ((statistic - self.mean).abs() - 0.5).max(0.0);
        if distance <= 0.0 || self.sd <= 0.0 {
            return 1.0;
        }
        (2.0 * crate::distribution::normal_above(distance / self.sd)).min(1.0)
    }

    /// The probability of a statistic up to `count`, corrected for continuity by 1/2.
    pub(crate) fn up_to(self, count: usize) -> f64 {
        crate::distribution::normal_above((self.mean - usize_to_f64(count) - 0.5) / self.sd)
    }

    /// As [`Arrangements::interval_rank`].
    pub(crate) fn interval_rank(self) -> usize {
        let z = crate::distribution::normal_quantile(1.0 - 0.5 * ALPHA);
        crate::casts::to_usize((self.mean - z * self.sd + 0.5).max(0.0))
    }
}

/// The weights 1..=n: ranks without ties.
pub(crate) fn untied(n: usize) -> Vec<usize> {
    (1..=n).collect()
}

/// n (n + 1) / 2.
pub(crate) fn triangle(n: usize) -> f64 {
    0.5 * usize_to_f64(n) * (usize_to_f64(n) + 1.0)
}
