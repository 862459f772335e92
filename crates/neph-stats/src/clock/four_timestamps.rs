//! One exchange with the timestamps of two clocks, and the mean of many as in NTP, without an error bound.
//!
//! It takes half of the round trip as the delay of the forward path. If one direction takes longer, by load
//! or length, the mean is wrong by half the difference, which it does not show. It is for comparison with
//! [`clock_fit`](super::clock_fit).

use super::OffsetLimit;
use crate::casts::{nanos_to_f64, round_to_i64, usize_to_f64};

/// Departure and arrival of a request and its reply by two clocks, all in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FourTimestamps {
    /// Departure of the request, by the local clock (T1).
    pub sent: i64,
    /// Arrival of the request, by the peer's clock (T2).
    pub arrived: i64,
    /// Departure of the reply, by the peer's clock (T3).
    pub answered: i64,
    /// Arrival of the reply, by the local clock (T4).
    pub returned: i64,
}

impl FourTimestamps {
    /// From the request's departure to the reply's arrival, without the time at the peer.
    pub const fn round_trip(self) -> i64 {
        let forward = self.returned.saturating_sub(self.sent);
        forward.saturating_sub(self.answered.saturating_sub(self.arrived))
    }

    /// T2 - T1 - (round trip) / 2: the peer's clock minus the local one, if both directions take equally
    /// long.
    pub const fn offset(self) -> i64 {
        let forward = self.arrived.saturating_sub(self.sent);
        let reverse = self.answered.saturating_sub(self.returned);
        forward.midpoint(reverse)
    }

    /// The limits: the offset is at most the first and at least the second. `doubt` is the largest error of
    /// two timestamps by late clock readings, in nanoseconds.
    pub fn limits(self, doubt: i64) -> (OffsetLimit, OffsetLimit) {
        let shows = |offset: i64| OffsetLimit {
            at: self.sent,
            within: self.returned.saturating_sub(self.sent),
            offset,
        };
        let forward = self.arrived.saturating_sub(self.sent);
        let reverse = self.answered.saturating_sub(self.returned);
        (
            shows(forward.saturating_add(doubt)),
            shows(reverse.saturating_sub(doubt)),
        )
    }
}

/// The running mean of offsets (Welford 1962).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MeanOffset {
    /// The first: others are kept as differences to it, since floats represent 104 days only.
    first: i64,
    n: usize,
    mean: f64,
    squares: f64,
}

impl MeanOffset {
    /// Adds an offset, in nanoseconds.
    pub fn push(&mut self, offset: i64) {
        if self.n == 0 {
            self.first = offset;
        }
        self.n += 1;
        let value = nanos_to_f64(offset.saturating_sub(self.first));
        let before = value - self.mean;
        self.mean += before / usize_to_f64(self.n);
        self.squares += before * (value - self.mean);
    }

    /// Number of offsets.
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Their mean, in nanoseconds; `None` without any.
    pub fn mean(&self) -> Option<i64> {
        (self.n > 0).then(|| self.first.saturating_add(round_to_i64(self.mean)))
    }

    /// Their standard deviation, in nanoseconds; `None` for fewer than two.
    pub fn deviation(&self) -> Option<f64> {
        let degrees = self.n.checked_sub(1).filter(|degrees| *degrees > 0)?;
        Some((self.squares / usize_to_f64(degrees)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn symmetric_delays_give_the_offset_and_asymmetric_ones_an_error_of_half_the_difference() {
        let exchange = |forward: i64, reverse: i64| FourTimestamps {
            sent: 1_000,
            arrived: 1_000 + forward + 500,
            answered: 1_000 + forward + 40 + 500,
            returned: 1_000 + forward + 40 + reverse,
        };
        assert_eq!(exchange(30, 30).offset(), 500);
        assert_eq!(exchange(30, 30).round_trip(), 60);
        assert_eq!(exchange(130, 30).offset(), 550);
        let (upper, lower) = exchange(130, 30).limits(2);
        assert_eq!((upper.offset, lower.offset), (632, 468));
        assert_eq!((upper.at, upper.within), (1_000, 200));
    }

    #[test]
    fn the_mean_of_clocks_that_are_years_apart_is_exact() {
        let mut mean = MeanOffset::default();
        assert_eq!((mean.mean(), mean.deviation()), (None, None));
        let years = 1_795_381_460_775_046_037;
        for offset in [2, 4, 4, 4, 5, 5, 7, 9] {
            mean.push(years + offset);
        }
        assert_eq!((mean.n(), mean.mean()), (8, Some(years + 5)));
        let deviation = mean.deviation().unwrap();
        assert!((deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    proptest! {
        /// The mean of both limits is the formula.
        #[test]
        fn the_offset_formula_is_the_midpoint_of_its_limits(
            sent in -1_000_000_i64..1_000_000,
            offset in any::<i32>(),
            forward in 0..1_000_000_i64,
            stay in 0..1_000_000_i64,
            reverse in 0..1_000_000_i64,
        ) {
            let arrived = sent + forward + i64::from(offset);
            let exchange = FourTimestamps {
                sent,
                arrived,
                answered: arrived + stay,
                returned: sent + forward + stay + reverse,
            };
            let (upper, lower) = exchange.limits(0);
            prop_assert!(lower.offset <= i64::from(offset) && i64::from(offset) <= upper.offset);
            prop_assert_eq!(upper.offset - lower.offset, exchange.round_trip());
            prop_assert!((2 * exchange.offset() - upper.offset - lower.offset).abs() <= 1);
        }
    }
}
