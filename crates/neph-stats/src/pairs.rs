//! Order statistics over all pairs of two samples, for Hodges-Lehmann estimates, without storing
//! the pairs: a million pairs cost what a sort of the two samples does.

use crate::interval::ConfidenceInterval;
use crate::sorted::Sorted;

/// All pairs that a Hodges-Lehmann estimate is the median of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pairs<'a> {
    /// Means of each value with itself and with each later one (Walsh averages).
    Means(Sorted<'a>),
    /// Each value of the first minus each of the second.
    Differences(Sorted<'a>, Sorted<'a>),
}

impl Pairs<'_> {
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Means(d) => d.len() * (d.len() + 1) / 2,
            Self::Differences(a, b) => a.len() * b.len(),
        }
    }

    /// The median over all pairs; there must be one.
    pub(crate) fn median(self) -> f64 {
        let count = self.count();
        let high = self.at_rank(count / 2 + 1);
        if count % 2 == 1 {
            high
        } else {
            0.5 * (self.at_rank(count / 2) + high)
        }
    }

    /// From the `rank`-th smallest to the `rank`-th largest.
    pub(crate) fn interval(self, rank: usize) -> ConfidenceInterval {
        ConfidenceInterval {
            low: self.at_rank(rank),
            high: self.at_rank(self.count() + 1 - rank),
        }
    }

    /// The value of a rank from 1 on: the smallest float that at least `rank` pairs do not exceed.
    /// Halves the range of all floats, in their order, which ends after 64 steps.
    fn at_rank(self, rank: usize) -> f64 {
        let (mut low, mut high) = (order_key(f64::MIN), order_key(f64::MAX));
        while low < high {
            // The mean rounded down: i64::midpoint rounds towards 0 and would stand still below it.
            let middle = (low & high) + ((low ^ high) >> 1);
            if self.count_up_to(from_order_key(middle)) < rank {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        from_order_key(low) + 0.0 // -0 becomes 0
    }

    /// How many pairs are at most `limit`. Rounded sums and differences are monotone, so both ends
    /// move in one direction only.
    pub(crate) fn count_up_to(self, limit: f64) -> usize {
        match self {
            Self::Means(d) => {
                let d = d.values();
                let mut end = d.len();
                let pairs_of = |(i, &v): (usize, &f64)| {
                    while end > i && 0.5 * (v + d[end - 1]) > limit {
                        end -= 1;
                    }
                    end.saturating_sub(i)
                };
                d.iter().enumerate().map(pairs_of).sum()
            }
            Self::Differences(a, b) => {
                let b = b.values();
                let mut start = 0;
                let pairs_of = |&v: &f64| {
                    while start < b.len() && v - b[start] > limit {
                        start += 1;
                    }
                    b.len() - start
                };
                a.values().iter().map(pairs_of).sum()
            }
        }
    }
}

/// Where a float stands among all floats: the order of the results is that of the floats.
fn order_key(x: f64) -> i64 {
    flip(x.to_bits().cast_signed())
}

fn from_order_key(order_key: i64) -> f64 {
    f64::from_bits(flip(order_key).cast_unsigned())
}

/// Reverses the order of the negative half; its own inverse.
fn flip(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranks_are_those_of_the_sorted_pairs(
            mut a in prop::collection::vec(-100.0..100.0_f64, 1..20),
            mut b in prop::collection::vec(-9..9_i32, 1..20),
        ) {
            b.sort_unstable();
            let b: Vec<f64> = b.into_iter().map(f64::from).collect();
            let (a, b) = (Sorted::sort(&mut a).unwrap(), Sorted::check(&b).unwrap());
            let mut means = Vec::new();
            for i in 0..a.len() {
                means.extend((i..a.len()).map(|j| 0.5 * (a.values()[i] + a.values()[j])));
            }
            let mut differences: Vec<f64> = Vec::new();
            for x in a.values() {
                differences.extend(b.values().iter().map(|y| x - y));
            }
            for (pairs, sorted) in
                [(Pairs::Means(a), &mut means), (Pairs::Differences(a, b), &mut differences)]
            {
                sorted.sort_unstable_by(f64::total_cmp);
                prop_assert_eq!(pairs.count(), sorted.len());
                for rank in 1..=sorted.len() {
                    prop_assert_eq!(pairs.at_rank(rank), sorted[rank - 1]);
                }
            }
        }
    }
}
