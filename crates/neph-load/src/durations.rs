//! Measured times (RTTs, response times): a histogram, and the sums that it lacks. Pure.

use std::fmt;

use neph_model::Span;
use neph_stats::{BucketCount, Histogram, Precision, quantile_needs};
use serde::{Deserialize, Serialize};

/// Maximum relative error of percentiles: 1/1024.
const PRECISION: Precision = Precision::one_part_in(1_024);
/// Up to this time a histogram `with_room` does not allocate: ten seconds.
const MAX_NANOS: u64 = 10_000_000_000;

/// Times of transactions. Those of several streams, seconds or hosts can be merged.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Parts", into = "Parts")]
pub struct Durations {
    histogram: Histogram,
    /// Nanoseconds.
    sum: u64,
    squares: u128,
    /// Absolute differences of consecutive times of one stream, nanoseconds.
    differences: u64,
    difference_count: u64,
    /// The previous time, if the previous transaction had a reply.
    previous: Option<u64>,
}

impl Default for Durations {
    fn default() -> Self {
        Self::of(Histogram::new(PRECISION))
    }
}

impl fmt::Debug for Durations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, mean) = (self.count(), self.mean());
        write!(f, "Durations({count}, mean {mean:?})")
    }
}

/// A percentile, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationQuantile {
    /// The time.
    At(Span),
    /// It falls among lost transactions: they count as slower than every reply.
    Lost,
    /// Too few transactions: it needs this many.
    Needs(u64),
}

impl DurationQuantile {
    /// The time, if there is one.
    pub const fn time(self) -> Option<Span> {
        match self {
            Self::At(time) => Some(time),
            Self::Lost | Self::Needs(_) => None,
        }
    }
}

impl Durations {
    const fn of(histogram: Histogram) -> Self {
        Self {
            histogram,
            sum: 0,
            squares: 0,
            differences: 0,
            difference_count: 0,
            previous: None,
        }
    }

    /// Empty, with preallocated memory for times up to ten seconds.
    pub fn with_room() -> Self {
        Self::of(Histogram::with_capacity(PRECISION, MAX_NANOS))
    }

    /// Adds a time in nanoseconds.
    #[inline]
    pub fn add(&mut self, nanos: u64) {
        self.histogram.add(nanos);
        self.sum = self.sum.saturating_add(nanos);
        let square = u128::from(nanos) * u128::from(nanos);
        self.squares = self.squares.saturating_add(square);
        if let Some(previous) = self.previous {
            self.differences = self.differences.saturating_add(nanos.abs_diff(previous));
            self.difference_count += 1;
        }
        self.previous = Some(nanos);
    }

    /// The next time has no predecessor: a transaction was lost.
    pub const fn interrupt(&mut self) {
        self.previous = None;
    }

    /// Removes all but the last time; the memory stays allocated.
    pub fn clear(&mut self) {
        let mut histogram = std::mem::take(&mut self.histogram);
        histogram.clear();
        let previous = self.previous;
        *self = Self {
            previous,
            ..Self::of(histogram)
        };
    }

    /// Adds the times of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.differences = self.differences.saturating_add(other.differences);
        self.difference_count = self.difference_count.saturating_add(other.difference_count);
        self.previous = None;
    }

    /// Number of times.
    pub const fn count(&self) -> u64 {
        self.histogram.n()
    }

    /// Histogram in nanoseconds.
    pub const fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// The exact minimum.
    pub fn min(&self) -> Option<Span> {
        self.histogram.min().map(span)
    }

    /// The exact maximum.
    pub fn max(&self) -> Option<Span> {
        self.histogram.max().map(span)
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> Option<Span> {
        self.sum.checked_div(self.count()).map(span)
    }

    /// Standard deviation with divisor n - 1; absent below two times.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "a root, rounded to nanoseconds"
    )]
    pub fn deviation(&self) -> Option<Span> {
        let n = u128::from(self.count());
        if n < 2 {
            return None;
        }
        let sum = u128::from(self.sum);
        let exact = n
            .checked_mul(self.squares)
            .and_then(|scaled| scaled.checked_sub(sum.checked_mul(sum)?));
        let variance = exact.map_or_else(
            || {
                let mean = sum as f64 / n as f64;
                (self.squares as f64 / n as f64 - mean * mean).max(0.0)
            },
            |exact| exact as f64 / n as f64 / (n - 1) as f64,
        );
        Some(Span::from_nanos(variance.sqrt().round() as i64))
    }

    /// Mean absolute difference of consecutive times of one stream; absent below two times.
    pub fn jitter(&self) -> Option<Span> {
        self.differences
            .checked_div(self.difference_count)
            .map(span)
    }

    /// The quantile `permille`/1000; `lost` further transactions count as slower than every reply.
    pub fn quantile(&self, permille: u32, lost: u64) -> DurationQuantile {
        let total = self.count().saturating_add(lost);
        let needed =
            quantile_needs(f64::from(permille) / 1_000.0).map_or(1, |needed| needed as u64);
        if total < needed.max(1) {
            return DurationQuantile::Needs(needed);
        }
        let rank = (u128::from(total) * u128::from(permille)).div_ceil(1_000);
        let ranked = self.histogram.of_rank(rank.max(1));
        ranked.map_or(DurationQuantile::Lost, |nanos| {
            DurationQuantile::At(span(nanos))
        })
    }
}

fn span(nanos: u64) -> Span {
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// Serialised form. The bucket precision is 1/1024.
#[derive(Serialize, Deserialize)]
struct Parts {
    least_ns: u64,
    most_ns: u64,
    sum_ns: u64,
    squares_high: u64,
    squares_low: u64,
    differences_ns: u64,
    difference_count: u64,
    buckets: Vec<Bucket>,
}

#[derive(Serialize, Deserialize)]
struct Bucket {
    from_ns: u64,
    count: u64,
}

impl From<Durations> for Parts {
    fn from(rtts: Durations) -> Self {
        let buckets = rtts.histogram.buckets().map(|bucket_count| Bucket {
            from_ns: bucket_count.from,
            count: bucket_count.count,
        });
        let half = |half: u128| u64::try_from(half & u128::from(u64::MAX)).unwrap_or(0);
        Self {
            least_ns: rtts.histogram.min().unwrap_or(0),
            most_ns: rtts.histogram.max().unwrap_or(0),
            sum_ns: rtts.sum,
            squares_high: half(rtts.squares >> 64),
            squares_low: half(rtts.squares),
            differences_ns: rtts.differences,
            difference_count: rtts.difference_count,
            buckets: buckets.collect(),
        }
    }
}

impl From<Parts> for Durations {
    fn from(parts: Parts) -> Self {
        let buckets = parts.buckets.into_iter().map(|bucket| BucketCount {
            from: bucket.from_ns,
            count: bucket.count,
        });
        let (minimum, maximum) = (parts.least_ns, parts.most_ns);
        Self {
            histogram: Histogram::restore(PRECISION, minimum, maximum, buckets),
            sum: parts.sum_ns,
            squares: u128::from(parts.squares_high) << 64 | u128::from(parts.squares_low),
            differences: parts.differences_ns,
            difference_count: parts.difference_count,
            previous: None,
        }
    }
}

#[cfg(test)]
#[path = "durations_tests.rs"]
mod tests;
