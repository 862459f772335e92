//! Counts of times by bounds.

/// Upper bounds of the buckets in nanoseconds, 10 us to 10 s; longer ones count in all only.
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

/// Counts of times by bounds, 10 us to 10 s; longer ones count in all only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Times in each bucket alone.
    pub(crate) buckets: [u64; BOUNDS.len()],
    /// All times.
    pub(crate) n: u64,
    /// Their sum.
    pub(crate) nanos: u128,
}

impl Histogram {
    /// Adds a time, nanoseconds, that stands for `weight` of them.
    pub fn add(&mut self, nanos: u64, weight: u64) {
        let place = BOUNDS.partition_point(|bound| *bound < nanos);
        if let Some(bucket) = self.buckets.get_mut(place) {
            *bucket += weight;
        }
        self.n += weight;
        self.nanos += u128::from(nanos) * u128::from(weight);
    }
}

/// Nanoseconds as seconds, exactly.
pub(crate) fn seconds(nanos: u128) -> String {
    const IN_SECOND: u128 = 1_000_000_000;
    let text = format!("{}.{:09}", nanos / IN_SECOND, nanos % IN_SECOND);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
