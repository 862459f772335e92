//! Histograms of times: the few buckets of classic histograms, and the many of native ones.

use std::collections::BTreeMap;

/// Upper bounds of the buckets in nanoseconds, 10 us to 10 s; longer times are only in the total.
pub(crate) const BOUNDS: [u64; 19] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// A histogram of times with bounds from 10 us to 10 s; longer times are only in the total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Times per bucket, not cumulative.
    pub(crate) buckets: [u64; BOUNDS.len()],
    /// Times per bucket of native histograms, without empty buckets ([`native_bucket`]).
    pub(crate) native: BTreeMap<i32, u64>,
    /// Times in the zero bucket.
    pub(crate) zero: u64,
    /// Number of all times.
    pub(crate) n: u64,
    /// Sum of all times, nanoseconds.
    pub(crate) nanos: u128,
}

impl Histogram {
    /// Adds a time in nanoseconds, `weight` times.
    pub fn add(&mut self, nanos: u64, weight: u64) {
        let index = BOUNDS.partition_point(|bound| *bound < nanos);
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket += weight;
        }
        match native_bucket(nanos) {
            Some(bucket) => *self.native.entry(bucket).or_default() += weight,
            None => self.zero += weight,
        }
        self.n += weight;
        self.nanos += u128::from(nanos) * u128::from(weight);
    }
}

/// Native buckets per power of two: schema 3 of Prometheus, bounds 9 % apart.
pub(crate) const SCHEMA: i32 = 3;
const BY_DOUBLING: i32 = 1 << SCHEMA;
/// Times up to 2^-20 s, 0.95 us, are in the zero bucket.
const MIN_DOUBLING: i32 = -20;
/// The bound of the zero bucket in seconds.
pub(crate) const ZERO: f64 = 1.0 / (1_i32 << -MIN_DOUBLING) as f64;

/// The native bucket of a time. Bucket `i` contains seconds above 2^((i-1)/8) up to 2^(i/8). `None`
/// is the zero bucket.
fn native_bucket(nanos: u64) -> Option<i32> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "one part in 2^53 moves no time to another bucket but at its bound"
    )]
    let seconds = nanos as f64 / 1e9;
    if seconds <= ZERO {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the logarithm of 64 bits of nanoseconds is below 34"
    )]
    let bucket = (seconds.log2() * f64::from(BY_DOUBLING)).ceil() as i32;
    Some(bucket)
}

/// Nanoseconds as seconds, without loss.
pub(crate) fn format_seconds(nanos: u128) -> String {
    const IN_SECOND: u128 = 1_000_000_000;
    let text = format!("{}.{:09}", nanos / IN_SECOND, nanos % IN_SECOND);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "times in a test")]
    fn a_native_bucket_contains_values_above_the_previous_bound() {
        // 1 s is the upper bound of bucket 0, 0.5 s that of bucket -8.
        for (nanos, bucket) in [
            (1_000_000_000, Some(0)),
            (1_000_000_001, Some(1)),
            (500_000_000, Some(-8)),
            (500_000_001, Some(-7)),
            (2_000_000_000, Some(8)),
            (953, None),
            (954, Some(-159)),
            (0, None),
        ] {
            assert_eq!(native_bucket(nanos), bucket, "{nanos}");
        }
        for nanos in [1_234, 98_765, 40_000_000, u64::MAX] {
            let bucket = native_bucket(nanos).expect("it is above zero");
            let bound = |bucket: i32| (f64::from(bucket) / 8.0).exp2();
            let seconds = nanos as f64 / 1e9;
            assert!(bound(bucket - 1) < seconds && seconds <= bound(bucket));
        }
    }

    #[test]
    fn each_value_is_counted_once() {
        let mut histogram = Histogram::default();
        for (nanos, weight) in [(100, 3), (30_000, 2), (31_000, 1), (2_000_000, 4)] {
            histogram.add(nanos, weight);
        }
        let native: u64 = histogram.native.values().sum();
        assert_eq!((histogram.zero, native, histogram.n), (3, 7, 10));
    }
}
