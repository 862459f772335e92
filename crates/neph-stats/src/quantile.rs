//! Sample quantiles with their distribution-free 95 % intervals. Owns the rule of how many messages
//! a quantile needs; does not sort (see `Sorted`), and does not compare (see `bootstrap.rs`).
//!
//! The estimate is Hyndman and Fan's type 7, the default of `numpy`. The interval is made of two
//! order statistics: with K, the number of values below the true quantile, binomial in (n, p), the
//! chance that it lies between the l-th and the u-th value is P(l <= K < u). This is computed
//! exactly for every n: even at a million values the search takes some 40 evaluations of the
//! incomplete beta function, so no approximation is needed.
//!
//! The interval assumes independent values. Messages of one experiment are not quite so; between
//! experiments use the bootstrap over whole experiments.

use crate::distribution::{binomial_above, binomial_up_to};
use crate::error::StatsError;
use crate::interval::ALPHA;
use crate::real::{real, whole};
use crate::sorted::{Sorted, refuse_fewer};

/// Values in ascending order, each known by its place.
pub(crate) trait Ranked {
    /// How many there are.
    fn len(&self) -> usize;
    /// The value at this place, from 0.
    fn at(&self, place: usize) -> Option<f64>;
}

impl Ranked for Sorted<'_> {
    fn len(&self) -> usize {
        self.values().len()
    }

    fn at(&self, place: usize) -> Option<f64> {
        self.values().get(place).copied()
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

/// A sample quantile, its 95 % interval, and the n it rests on.
///
/// Only [`quantile`] makes one, so none exists without enough messages behind it.
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

    /// How many messages it rests on, the lost ones included.
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

    /// Lower end of the 95 % interval, a value of the sample.
    pub fn low(&self) -> Level {
        self.low
    }

    /// Upper end of the 95 % interval, a value of the sample.
    pub fn high(&self) -> Level {
        self.high
    }
}

/// The quantile `p` of `replies` and of `lost` further messages, which count as larger than every
/// reply.
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

/// As [`quantile()`], of values that are known by their ranks.
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

/// The type 7 median of one experiment's messages, however few: what a test over experiments, which
/// has an n of its own, takes as its value.
///
/// # Errors
/// [`StatsError::TooFew`] without messages.
pub fn median(replies: Sorted<'_>, lost: usize) -> Result<Level, StatsError> {
    let n = replies.len() + lost;
    refuse_fewer("median", 1, n)?;
    Ok(type_seven(&replies, n, 0.5))
}

/// The type 7 estimate of the quantile `p` of `replies` and of `lost` further messages, however few
/// they are. [`quantile()`] is for telling.
///
/// # Errors
/// [`StatsError::TooFew`] without messages; [`StatsError::OutOfRange`] unless 0 < p < 1.
pub fn rough_level(replies: Sorted<'_>, lost: usize, p: f64) -> Result<Level, StatsError> {
    quantile_needs(p)?;
    let n = replies.len() + lost;
    refuse_fewer("quantile", 1, n)?;
    Ok(type_seven(&replies, n, p))
}

/// The type 7 estimate of the quantile `p` of a sample without loss, however few its values: to hold
/// against a threshold. [`quantile()`] is for telling.
///
/// # Errors
/// [`StatsError::TooFew`] without values; [`StatsError::OutOfRange`] unless 0 < p < 1.
pub fn rough_quantile(values: Sorted<'_>, p: f64) -> Result<f64, StatsError> {
    quantile_needs(p)?;
    refuse_fewer("quantile", 1, values.len())?;
    Ok(plain_quantile(values, p))
}

/// The smallest n for which some pair of order statistics covers the quantile `p` with 95 %:
/// 6 for p50, 29 for p90, 299 for p99, 2995 for p99.9.
///
/// # Errors
/// [`StatsError::OutOfRange`] unless 0 < p < 1.
pub fn quantile_needs(p: f64) -> Result<usize, StatsError> {
    if !(p > 0.0 && p < 1.0) {
        return Err(StatsError::OutOfRange {
            what: "quantile",
            value: p,
            wanted: "between 0 and 1, both excluded",
        });
    }
    let (below, above) = (p.ln(), (-p).ln_1p());
    let missed = |n: usize| (real(n) * below).exp() + (real(n) * above).exp();
    let mut n = whole(ALPHA.ln() / below.max(above)).max(1);
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

fn type_seven<R: Ranked>(replies: &R, n: usize, p: f64) -> Level {
    let (index, share) = type_seven_place(n, p);
    match (at_rank(replies, index + 1), at_rank(replies, index + 2)) {
        (at, _) if share <= 0.0 => at,
        (Level::At(low), Level::At(high)) => Level::At(between(low, high, share)),
        _ => Level::Censored,
    }
}

/// Where type 7 looks among n values: an index from 0, and the share of the way to the next.
pub(crate) fn type_seven_place(n: usize, p: f64) -> (usize, f64) {
    let place = real(n - 1) * p;
    // 0.07 * 100 is 7.000000000000001: a place that is whole but for rounding is whole.
    let nearest = place.round();
    let place = if (place - nearest).abs() <= 4.0 * f64::EPSILON * place {
        nearest
    } else {
        place
    };
    (whole(place), place - place.floor())
}

/// The point `share` of the way from `low` to `high`, never outside of the two.
pub(crate) fn between(low: f64, high: f64, share: f64) -> f64 {
    (low + (high - low) * share).clamp(low, high)
}

/// The value of a rank that counts from 1.
fn at_rank<R: Ranked>(replies: &R, rank: usize) -> Level {
    replies.at(rank - 1).map_or(Level::Censored, Level::At)
}

/// The ranks, from 1, between which the quantile lies with 95 %; as near to equal tails as n allows.
fn interval_ranks(n: usize, p: f64) -> (usize, usize) {
    let half = 0.5 * ALPHA;
    let lower = lower_rank(n, p, half);
    let upper = upper_rank(n, p, half);
    if upper > n {
        // Only the largest value is left for the upper end; what it misses is taken from the lower.
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
fn lower_rank(n: usize, p: f64, tail: f64) -> usize {
    last_true(n, |rank| binomial_up_to(rank - 1, n, p) <= tail)
}

/// The smallest rank u with P(K >= u) <= tail, n + 1 if there is none.
fn upper_rank(n: usize, p: f64, tail: f64) -> usize {
    last_true(n, |rank| binomial_above(rank - 1, n, p) > tail) + 1
}

/// The last of 1..=n for which `holds`, which is true up to some place and false after it; or 0.
fn last_true(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Random;

    fn one_to(n: usize) -> Vec<f64> {
        (1..=n).map(real).collect()
    }

    #[test]
    fn needs_what_the_design_says() {
        for (p, need) in [(0.5, 6), (0.9, 29), (0.99, 299), (0.999, 2995), (0.01, 299)] {
            assert_eq!(quantile_needs(p), Ok(need), "p = {p}");
        }
        let few = one_to(298);
        assert_eq!(
            quantile(Sorted::check(&few).unwrap(), 0, 0.99),
            Err(StatsError::TooFew {
                what: "quantile",
                need: 299,
                have: 298
            })
        );
        for p in [0.0, 1.0, -0.1, f64::NAN] {
            assert!(matches!(
                quantile_needs(p),
                Err(StatsError::OutOfRange { .. })
            ));
        }
    }

    #[test]
    fn the_median_of_an_experiment_counts_its_loss() {
        let replies = one_to(3);
        let of = |lost| median(Sorted::check(&replies).unwrap(), lost);
        assert_eq!(of(0), Ok(Level::At(2.0)));
        assert_eq!(of(1), Ok(Level::At(2.5)));
        // Between the slowest reply and a lost message there is no number.
        assert_eq!(of(3), Ok(Level::Censored));
        assert!(median(Sorted::check(&[]).unwrap(), 0).is_err());
    }

    #[test]
    fn a_rough_quantile_that_falls_on_a_lost_message_has_no_number() {
        let replies = one_to(9);
        let of = |lost, p| rough_level(Sorted::check(&replies).unwrap(), lost, p);
        assert_eq!(of(0, 0.5), Ok(Level::At(5.0)));
        assert_eq!(of(2, 0.5), Ok(Level::At(6.0)));
        assert_eq!(of(2, 0.9), Ok(Level::Censored));
    }

    #[test]
    fn lost_messages_lie_above_every_reply() {
        let replies = one_to(90);
        let sample = Sorted::check(&replies).unwrap();
        let median = quantile(sample, 10, 0.5).unwrap();
        assert_eq!(
            (median.value(), median.n(), median.lost()),
            (Level::At(50.5), 100, 10)
        );
        let p95 = quantile(sample, 10, 0.95).unwrap();
        assert_eq!(
            (p95.value(), p95.high()),
            (Level::Censored, Level::Censored)
        );
        // The estimate is a number, but the interval reaches into the loss.
        let p89 = quantile(sample, 10, 0.89).unwrap();
        assert!(p89.value().number().is_some() && p89.high() == Level::Censored);
    }

    #[test]
    fn all_lost_is_censored_not_a_panic() {
        let p50 = quantile(Sorted::check(&[]).unwrap(), 40, 0.5).unwrap();
        assert_eq!((p50.low(), p50.value()), (Level::Censored, Level::Censored));
    }

    #[test]
    fn ranks_hold_their_promise_for_every_small_n() {
        for p in [0.05, 0.25, 0.5, 0.9, 0.99] {
            for n in quantile_needs(p).unwrap()..400 {
                let (l, u) = interval_ranks(n, p);
                let covered = 1.0 - binomial_up_to(l - 1, n, p) - binomial_above(u - 1, n, p);
                assert!(
                    covered >= 1.0 - ALPHA - 1e-12,
                    "n = {n}, p = {p}: {covered}"
                );
                let place = real(n - 1) * p + 1.0;
                assert!(
                    real(l) <= place && place <= real(u),
                    "n = {n}, p = {p}: {l}..{u}"
                );
            }
        }
    }

    /// The exact search agrees with the normal approximation, to one rank, where n is large.
    #[test]
    fn large_n_agrees_with_the_normal_approximation() {
        for (n, p) in [(1_000_000_usize, 0.5), (1_000_000, 0.99), (30_000_000, 0.9)] {
            let (l, u) = interval_ranks(n, p);
            let reach = 1.959_964 * (real(n) * p * (1.0 - p)).sqrt();
            assert!(
                (real(l) - (real(n) * p - reach)).abs() < 2.0,
                "{n} {p}: {l}"
            );
            assert!(
                (real(u) - (real(n) * p + reach)).abs() < 2.0,
                "{n} {p}: {u}"
            );
        }
    }

    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        let mut random = Random::new(7);
        let (mut hits, rounds) = (0, 2000);
        for _ in 0..rounds {
            let mut sample: Vec<f64> = (0..320).map(|_| random.unit()).collect();
            let q = quantile(Sorted::sort(&mut sample).unwrap(), 0, 0.9).unwrap();
            let (low, high) = (q.low().number().unwrap(), q.high().number().unwrap());
            hits += usize::from(low <= 0.9 && 0.9 <= high);
        }
        assert!(real(hits) / real(rounds) > 0.94, "{hits} of {rounds}");
    }

    proptest! {
        #[test]
        fn the_estimate_lies_in_its_interval(
            mut values in prop::collection::vec(-1e9..1e9_f64, 30..200), p in 0.1..0.9_f64,
        ) {
            let q = quantile(Sorted::sort(&mut values).unwrap(), 0, p).unwrap();
            let [low, at, high] = [q.low(), q.value(), q.high()].map(|l| l.number().unwrap());
            prop_assert!(low <= at && at <= high);
        }

        #[test]
        fn loss_never_lowers_a_quantile(
            mut values in prop::collection::vec(0.0..1e9_f64, 30..100), lost in 0..50_usize,
        ) {
            let sample = Sorted::sort(&mut values).unwrap();
            let without = quantile(sample, 0, 0.5).unwrap().value().number().unwrap();
            let with = quantile(sample, lost, 0.5).unwrap().value().number();
            prop_assert!(with.unwrap_or(f64::INFINITY) >= without);
        }
    }
}
