//! Whole numbers counted by their size: quantiles of samples that do not fit into memory.
//!
//! Owns the buckets: exact below 512, then 256 for each doubling, so that what is told is off by
//! one part in 512 at most.

/// Buckets for each doubling, as a power of two.
const FINE: u32 = 8;

/// How many numbers of which size there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    n: u64,
    most: u64,
}

impl Histogram {
    /// Counts a number.
    pub fn add(&mut self, number: u64) {
        let bucket = bucket(number);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.n += 1;
        self.most = self.most.max(number);
    }

    /// How many numbers there were.
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// The largest, exactly; none where there was none.
    pub fn most(&self) -> Option<u64> {
        (self.n > 0).then_some(self.most)
    }

    /// The number below which, itself included, at least `permille` of a thousand lie (nearest
    /// rank), to one part in 512; none where there was none.
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        let rank = u128::from(self.n) * u128::from(permille.min(1_000));
        self.of_rank(rank.div_ceil(1_000).max(1))
    }

    /// The number of this rank, from 1, in ascending order, to one part in 512; none beyond the last.
    pub(crate) fn of_rank(&self, rank: u128) -> Option<u64> {
        let mut up_to = 0;
        let found = self.counts.iter().position(|count| {
            up_to += u128::from(*count);
            up_to >= rank
        });
        found.map(|bucket| middle(bucket).min(self.most))
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.n += other.n;
        self.most = self.most.max(other.most);
    }
}

fn bucket(number: u64) -> usize {
    let shift = (u64::BITS - number.leading_zeros()).saturating_sub(FINE + 1);
    let within = usize::try_from(number >> shift).expect("at most nine bits");
    ((shift as usize) << FINE) + within
}

/// The number in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let shift = (bucket >> FINE).saturating_sub(1);
    let within = (bucket - (shift << FINE)) as u64;
    (within << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_are_exact_and_the_largest_always() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(500), histogram.most()), (None, None));
        for number in 1..=100 {
            histogram.add(number);
        }
        assert_eq!(histogram.quantile(500), Some(50));
        assert_eq!(histogram.quantile(990), Some(99));
        histogram.add(u64::MAX);
        assert!(histogram.quantile(1_000) > Some(u64::MAX / 512 * 511));
        assert_eq!((histogram.n(), histogram.most()), (101, Some(u64::MAX)));
    }

    proptest! {
        #[test]
        fn a_quantile_is_off_by_one_part_in_512_at_most(
            mut numbers in prop::collection::vec(0..(1_u64 << 40), 1..200),
            permille in 1..=1_000_u64,
        ) {
            let mut histogram = Histogram::default();
            for number in &numbers {
                histogram.add(*number);
            }
            numbers.sort_unstable();
            let rank = (numbers.len() as u64 * permille).div_ceil(1_000).max(1);
            let exact = numbers[usize::try_from(rank).expect("small") - 1];
            let told = histogram.quantile(permille).expect("some");
            prop_assert!(told.abs_diff(exact) <= exact / 512 + 1, "{told} for {exact}");
        }
    }
}
