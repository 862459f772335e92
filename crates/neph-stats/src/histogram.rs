//! Counts of whole numbers by size: quantiles of samples that do not fit into memory.
//!
//! Owns the counts. The relative error is selectable and the same for all sizes ([`Precision`]). Memory
//! depends on the largest number, not on their count. Merging adds counts without loss. For very many
//! histograms, [`Sketches`](crate::Sketches) takes less memory, with the same buckets.

mod bytes;

use crate::precision::{Bucket, Precision};

/// Counts of numbers by size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    precision: Precision,
    /// By place; the last one is above zero.
    counts: Vec<u64>,
    n: u64,
    min: u64,
    max: u64,
}

/// A bucket that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketCount {
    /// The smallest number that it takes.
    pub from: u64,
    /// How many it has.
    pub count: u64,
}

impl Default for Histogram {
    /// To one part in 512.
    fn default() -> Self {
        Self::new(Precision::one_part_in(512))
    }
}

impl Histogram {
    /// Without a number.
    pub const fn new(precision: Precision) -> Self {
        Self {
            precision,
            counts: Vec::new(),
            n: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Without a number, with memory for numbers up to `max`: adding one of these allocates nothing.
    pub fn with_capacity(precision: Precision, max: u64) -> Self {
        let room = precision.index(max) as usize + 1;
        Self {
            counts: Vec::with_capacity(room),
            ..Self::new(precision)
        }
    }

    /// Forgets all numbers, and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.clear();
        (self.n, self.min, self.max) = (0, u64::MAX, 0);
    }

    /// The count of each bucket that is not empty, ascending: [`Self::restore`] makes the same histogram of
    /// these.
    pub fn buckets(&self) -> impl Iterator<Item = BucketCount> {
        let counts = self.counts.iter().zip(0..);
        let counts = counts.filter(|(count, _)| **count > 0);
        counts.map(|(count, index)| BucketCount {
            from: self.precision.bucket(index).from,
            count: *count,
        })
    }

    /// The histogram with these buckets, least number and largest number. Empty buckets are ignored; the ends
    /// are moved into the first and the last bucket if necessary.
    pub fn restore(
        precision: Precision,
        min: u64,
        max: u64,
        buckets: impl IntoIterator<Item = BucketCount>,
    ) -> Self {
        let mut restored = Self::new(precision);
        for bucket in buckets.into_iter().filter(|bucket| bucket.count > 0) {
            restored.count(precision.index(bucket.from), bucket.count);
            restored.n = restored.n.saturating_add(bucket.count);
        }
        if let Some(last) = restored.counts.len().checked_sub(1) {
            let first = restored.counts.iter().position(|count| *count > 0);
            let within = |index: usize, number: u64| {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                let bucket = precision.bucket(index);
                number.clamp(bucket.from, bucket.last())
            };
            restored.min = within(first.unwrap_or(last), min);
            restored.max = within(last, max).max(restored.min);
        }
        restored
    }

    /// Counts a number.
    #[inline]
    pub fn add(&mut self, number: u64) {
        self.count(self.precision.index(number), 1);
        self.n += 1;
        self.min = self.min.min(number);
        self.max = self.max.max(number);
    }

    fn count(&mut self, index: u32, more: u64) {
        let index = index as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] = self.counts[index].saturating_add(more);
    }

    /// How many numbers there were.
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// The smallest, exactly; `None` without numbers.
    pub fn min(&self) -> Option<u64> {
        (self.n > 0).then_some(self.min)
    }

    /// The largest, exactly; `None` without numbers.
    pub fn max(&self) -> Option<u64> {
        (self.n > 0).then_some(self.max)
    }

    /// The number at or below which at least `permille` of a thousand lie (nearest rank), within the
    /// precision; `None` without numbers.
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        let rank = u128::from(self.n) * u128::from(permille.min(1_000));
        self.of_rank(rank.div_ceil(1_000).max(1))
    }

    /// The number of this rank, from 1, in ascending order, within the precision; `None` beyond the last.
    pub fn of_rank(&self, rank: u128) -> Option<u64> {
        let bucket = self.bucket_of_rank(rank)?;
        Some(bucket.middle().clamp(self.min, self.max))
    }

    /// The largest possible value of this rank, from 1; `None` beyond the last. Its error is twice that of
    /// [`Self::of_rank`], and never below.
    pub fn of_rank_at_most(&self, rank: u128) -> Option<u64> {
        let bucket = self.bucket_of_rank(rank)?;
        Some(bucket.last().min(self.max))
    }

    fn bucket_of_rank(&self, rank: u128) -> Option<Bucket> {
        let (mut up_to, mut index) = (0, 0);
        for count in &self.counts {
            up_to += u128::from(*count);
            if up_to >= rank {
                return Some(self.precision.bucket(index));
            }
            index += 1;
        }
        None
    }

    /// Adds all counts of `other`, to the lower precision of both: exactly as one histogram of that precision
    /// would have counted all numbers.
    pub fn merge(&mut self, other: &Self) {
        if other.precision < self.precision {
            let finer = std::mem::replace(self, Self::new(other.precision));
            self.add_counts(&finer);
        }
        self.add_counts(other);
    }

    /// From a histogram of the same precision, or finer.
    fn add_counts(&mut self, other: &Self) {
        let counts = other
            .counts
            .iter()
            .zip(0..)
            .filter(|(count, _)| **count > 0);
        for (count, index) in counts {
            let from = other.precision.bucket(index).from;
            self.count(self.precision.index(from), *count);
        }
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Memory in bytes without the histogram itself: at most 8 for each bucket up to the largest number, and
    /// twice that while it grows.
    pub fn heap(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(precision: Precision, numbers: &[u64]) -> Histogram {
        let mut histogram = Histogram::new(precision);
        for number in numbers {
            histogram.add(*number);
        }
        histogram
    }

    #[test]
    fn small_values_and_the_maximum_are_exact() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(500), histogram.max()), (None, None));
        for number in 1..=100 {
            histogram.add(number);
        }
        assert_eq!(histogram.quantile(500), Some(50));
        assert_eq!(histogram.quantile(990), Some(99));
        histogram.add(u64::MAX);
        assert!(histogram.quantile(1_000) > Some(u64::MAX / 512 * 511));
        assert_eq!((histogram.n(), histogram.max()), (101, Some(u64::MAX)));
    }

    #[test]
    fn memory_depends_on_the_largest_value_and_not_on_the_count() {
        let precision = Precision::one_part_in(2_048);
        let day = 86_400_000_000_000;
        let mut histogram = of(precision, &[day]);
        // 37 doublings above 2^10, each with 1,024 buckets of 8 bytes, and 1,024 below.
        assert!(histogram.heap() <= 38 * 1_024 * 8, "{}", histogram.heap());
        let before = histogram.heap();
        (0..100_000_u64).for_each(|n| histogram.add(n * 863_999_999));
        assert_eq!(histogram.heap(), before);
    }

    #[test]
    fn a_cleared_histogram_is_empty_and_keeps_its_memory() {
        let precision = Precision::one_part_in(1_024);
        let mut histogram = Histogram::with_capacity(precision, 10_000_000_000);
        let room = histogram.heap();
        assert!(room < 200_000, "{room}");
        histogram.add(5);
        histogram.add(10_000_000_000);
        assert_eq!(histogram.heap(), room);
        histogram.clear();
        assert_eq!((histogram.n(), histogram.min()), (0, None));
        assert_eq!((histogram.max(), histogram.heap()), (None, room));
        assert_eq!(histogram, Histogram::new(precision));
    }

    #[test]
    fn imported_buckets_form_a_consistent_histogram() {
        let precision = Precision::one_part_in(1_024);
        let bucket = |from, count| BucketCount { from, count };
        let buckets = [bucket(7, 0), bucket(100, 2), bucket(u64::MAX, u64::MAX)];
        let histogram = Histogram::restore(precision, 500, 3, buckets);
        assert_eq!((histogram.n(), histogram.min()), (u64::MAX, Some(100)));
        assert!(histogram.max() > Some(u64::MAX / 2));
        assert_eq!(
            Histogram::restore(precision, 1, 2, []),
            Histogram::new(precision)
        );
    }

    fn precision() -> impl Strategy<Value = Precision> {
        (2_u32..=14).prop_map(|bits| Precision::one_part_in(1 << bits))
    }

    fn numbers() -> impl Strategy<Value = Vec<u64>> {
        let number = (4_u32..64, any::<u64>()).prop_map(|(shift, number)| number >> shift);
        prop::collection::vec(number, 1..200)
    }

    proptest! {
        #[test]
        fn a_quantile_has_a_maximum_relative_error_of_1_in_512(
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
            let estimate = histogram.quantile(permille).expect("some");
            prop_assert!(estimate.abs_diff(exact) <= exact / 512 + 1, "{estimate} for {exact}");
        }

        #[test]
        fn the_error_of_each_rank_is_within_the_precision(
            mut numbers in numbers(),
            precision in precision(),
        ) {
            let histogram = of(precision, &numbers);
            numbers.sort_unstable();
            let parts = u128::from(precision.parts());
            for (exact, rank) in numbers.iter().zip(1..) {
                let estimate = histogram.of_rank(rank).expect("a number");
                let off = u128::from(estimate.abs_diff(*exact)) * parts;
                prop_assert!(off <= u128::from(*exact), "{estimate} for {exact}");
                let max = histogram.of_rank_at_most(rank).expect("a number");
                let off = u128::from(max.checked_sub(*exact).expect("not below")) * parts;
                prop_assert!(off <= 2 * u128::from(*exact), "{max} for {exact}");
            }
            prop_assert_eq!(histogram.of_rank(numbers.len() as u128 + 1), None);
            let ends = (histogram.min(), histogram.max());
            prop_assert_eq!(ends, (numbers.first().copied(), numbers.last().copied()));
        }

        #[test]
        fn buckets_restore_the_histogram(numbers in numbers(), precision in precision()) {
            let histogram = of(precision, &numbers);
            let (min, max) = (histogram.min().expect("one"), histogram.max().expect("one"));
            let restored = Histogram::restore(precision, min, max, histogram.buckets());
            prop_assert_eq!(restored, histogram);
        }

        #[test]
        fn merged_histograms_equal_the_histogram_of_all_values(
            (mine, yours) in (numbers(), numbers()),
            (first, second) in (precision(), precision()),
        ) {
            let mut merged = of(first, &mine);
            merged.merge(&of(second, &yours));
            let values: Vec<u64> = mine.into_iter().chain(yours).collect();
            prop_assert_eq!(merged, of(first.min(second), &values));
        }
    }
}
