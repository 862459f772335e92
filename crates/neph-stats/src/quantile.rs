//! Sample quantiles with their distribution-free 95 % confidence intervals. Owns the rule of how many
//! messages a quantile needs. Does not sort (see `Sorted`).
//!
//! The estimate is Hyndman and Fan's type 7, the default of `numpy`. The interval consists of two order
//! statistics. K, the number of values below the true quantile, is binomial in (n, p). The quantile lies
//! between the l-th and the u-th value with probability P(l <= K < u). This is exact for every n: even a
//! million values take only some 40 evaluations of the incomplete beta function.
//!
//! The interval assumes independent values. For messages, which are not, see `clustered.rs`.

use crate::casts::{to_usize, usize_to_f64};
use crate::distribution::{binomial_above, binomial_up_to};
use crate::error::StatsError;
use crate::interval::ALPHA;
use crate::sorted::{Sorted, refuse_fewer};

/// Values in ascending order, by place.
pub(crate) trait Ranked {
    /// How many there are.
    fn len(&self) -> usize;
    /// The value at this place, from 0.
    fn at(&self, index: usize) -> Option<f64>;
}

impl Ranked for Sorted<'_> {
    fn len(&self) -> usize {
        self.values().len()
    }

    fn at(&self, index: usize) -> Option<f64> {
        self.values().get(index).copied()
    }
}

/// A value that may lie among the lost messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Level {
    /// A number, in the unit of the sample.
    At(f64),
    /// Above every reply: decided by lost messages, so there is no number.
    Censored,
}

impl Level {
    /// The number, if there is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::At(value) => Some(value),
            Self::Censored => None,
        }
    }
}

/// A sample quantile, its 95 % confidence interval, and its n.
///
/// Only [`quantile`] creates it, so it always has enough messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    p: f64,
    n: usize,
    lost: usize,
    value: Level,
    low: Level,
    high: Level,
}

impl Quantile {
    /// The share that lies below: 0.99 for p99.
    pub fn p(&self) -> f64 {
        self.p
    }

    /// Number of messages, including lost ones.
    pub fn n(&self) -> usize {
        self.n
    }

    /// How many of these were lost.
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// The estimate (type 7).
    pub fn value(&self) -> Level {
        self.value
    }

    /// Lower end of the 95 % confidence interval, a value of the sample.
    pub fn low(&self) -> Level {
        self.low
    }

    /// Upper end of the 95 % confidence interval, a value of the sample.
    pub fn high(&self) -> Level {
        self.high
    }
}

/// The quantile `p` of `replies` and of `lost` further messages, which count as larger than every reply.
///
/// # Errors
/// [`StatsError::OutOfRange`] unless 0 < p < 1; [`StatsError::TooFew`] below [`quantile_needs`].
///
/// ```
/// use neph_stats::{Level, Sorted, quantile};
/// let round_trips: Vec<f64> = (1..=99).map(f64::from).collect();
/// let median = quantile(Sorted::check(&round_trips)?, 1, 0.5)?;
/// assert_eq!((median.value(), median.n()), (Level::At(50.5), 100));
/// # Ok::<(), neph_stats::StatsError>(())
/// ```
pub fn quantile(replies: Sorted<'_>, lost: usize, p: f64) -> Result<Quantile, StatsError> {
    quantile_of(&replies, lost, p)
}

/// As [`quantile()`], for values that are known by their ranks.
pub(crate) fn quantile_of<R: Ranked>(
    replies: &R,
    lost: usize,
    p: f64,
) -> Result<Quantile, StatsError> {
    let need = quantile_needs(p)?;
    let n = replies.len() + lost;
    refuse_fewer("quantile", need, n)?;
    let (lower, upper) = interval_ranks(n, p);
    Ok(Quantile {
        p,
        n,
        lost,
        value: type_seven(replies, n, p),
        low: at_rank(replies, lower),
        high: at_rank(replies, upper),
    })
}

/// The type 7 median of one experiment's messages, however few: the value for a test over experiments, which
/// has a separate n.
///
/// # Errors
/// [`StatsError::TooFew`] without messages.
pub fn median(replies: Sorted<'_>, lost: usize) -> Result<Level, StatsError> {
    let n = replies.len() + lost;
    refuse_fewer("median", 1, n)?;
    Ok(type_seven(&replies, n, 0.5))
}

/// The type 7 estimate of the quantile `p` of `replies` and of `lost` further messages, however few. For
/// reports use [`quantile()`].
///
/// # Errors
/// [`StatsError::TooFew`] without messages; [`StatsError::OutOfRange`] unless 0 < p < 1.
pub fn rough_level(replies: Sorted<'_>, lost: usize, p: f64) -> Result<Level, StatsError> {
    quantile_needs(p)?;
    let n = replies.len() + lost;
    refuse_fewer("quantile", 1, n)?;
    Ok(type_seven(&replies, n, p))
}

/// The type 7 estimate of the quantile `p` of a sample without loss, however few its values: for comparison
/// with a threshold. For reports use [`quantile()`].
///
/// # Errors
/// [`StatsError::TooFew`] without values; [`StatsError::OutOfRange`] unless 0 < p < 1.
pub fn rough_quantile(values: Sorted<'_>, p: f64) -> Result<f64, StatsError> {
    quantile_needs(p)?;
    refuse_fewer("quantile", 1, values.len())?;
    Ok(plain_quantile(values, p))
}

/// The smallest n for which some pair of order statistics covers the quantile `p` with 95 %: 6 for p50, 29
/// for p90, 299 for p99, 2995 for p99.9.
///
/// # Errors
/// [`StatsError::OutOfRange`] unless 0 < p < 1.
pub fn quantile_needs(p: f64) -> Result<usize, StatsError> {
    if !(p > 0.0 && p < 1.0) {
        return Err(StatsError::OutOfRange {
            subject: "quantile",
            value: p,
            wanted: "between 0 and 1, both excluded",
        });
    }
    let (below, above) = (p.ln(), (-p).ln_1p());
    let missed = |n: usize| (usize_to_f64(n) * below).exp() + (usize_to_f64(n) * above).exp();
    let mut n = to_usize(ALPHA.ln() / below.max(above)).max(1);
    while missed(n) > ALPHA {
        n += 1;
    }
    Ok(n)
}

/// The type 7 estimate of an ascending sample without loss; `replies` must not be empty.
pub(crate) fn plain_quantile(replies: Sorted<'_>, p: f64) -> f64 {
    type_seven(&replies, replies.len(), p)
        .number()
        .expect("without loss every rank has a value")
}

pub(crate) fn type_seven<R: Ranked>(replies: &R, n: usize, p: f64) -> Level {
    let (index, share) = type_seven_position(n, p);
    match (at_rank(replies, index + 1), at_rank(replies, index + 2)) {
        (at, _) if share <= 0.0 => at,
        (Level::At(low), Level::At(high)) => Level::At(between(low, high, share)),
        _ => Level::Censored,
    }
}

/// The place of type 7 among n values: an index from 0, and the share of the distance to the next.
pub(crate) fn type_seven_position(n: usize, p: f64) -> (usize, f64) {
    let position = usize_to_f64(n - 1) * p;
    // 0.07 * 100 is 7.000000000000001: a place within rounding of a whole number is whole.
    let nearest = position.round();
    let position = if (position - nearest).abs() <= 4.0 * f64::EPSILON * position {
        nearest
    } else {
        position
    };
    (to_usize(position), position - position.floor())
}

/// The point at `share` of the distance from `low` to `high`, never outside of the two.
pub(crate) fn between(low: f64, high: f64, share: f64) -> f64 {
    (low + (high - low) * share).clamp(low, high)
}

/// The value of a rank that counts from 1.
pub(crate) fn at_rank<R: Ranked>(replies: &R, rank: usize) -> Level {
    replies.at(rank - 1).map_or(Level::Censored, Level::At)
}

/// The ranks, from 1, between which the quantile lies with 95 %; as near to equal tails as n allows.
pub(crate) fn interval_ranks(n: usize, p: f64) -> (usize, usize) {
    let half = 0.5 * ALPHA;
    let lower = lower_rank(n, p, half);
    let upper = upper_rank(n, p, half);
    if upper > n {
        // Only the largest value is left for the upper end; the lower end takes what it misses.
        return (
            lower_rank(n, p, ALPHA - binomial_above(n - 1, n, p)).max(1),
            n,
        );
    }
    if lower == 0 {
        return (1, upper_rank(n, p, ALPHA - binomial_up_to(0, n, p)).min(n));
    }
    (lower, upper)
}

/// The largest rank l with P(K < l) <= tail, 0 if there is none.
pub(crate) fn lower_rank(n: usize, p: f64, tail: f64) -> usize {
    last_true(n, |rank| binomial_up_to(rank - 1, n, p) <= tail)
}

/// The smallest rank u with P(K >= u) <= tail, n + 1 if there is none.
fn upper_rank(n: usize, p: f64, tail: f64) -> usize {
    last_true(n, |rank| binomial_above(rank - 1, n, p) > tail) + 1
}

/// The last of 1..=n for which `is_true`, which is true up to some place and false after it; or 0.
fn last_true(n: usize, is_true: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if is_true(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests;
