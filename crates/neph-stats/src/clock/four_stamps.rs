//! One exchange by two clocks, and the mean of what many show, as the Network Time Protocol and
//! many tools have it: no bound comes of it.
//!
//! Half of the round trip is taken for the way there. Where one direction takes longer, by load or
//! by its length, the mean is wrong by half the difference, and nothing in it tells so. It stands here
//! to be set beside [`clock_fit`](super::clock_fit).

use super::OffsetLimit;
use crate::real::{nanos, real, real_nanos};

/// When a request left and came by two clocks, and its reply; all in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FourStamps {
    /// The request left, by our clock (T1).
    pub sent: i64,
    /// It came, by the peer's clock (T2).
    pub arrived: i64,
    /// The reply left, by the peer's clock (T3).
    pub answered: i64,
    /// It came, by our clock (T4).
    pub returned: i64,
}

impl FourStamps {
    /// From the request's departure to the reply's arrival, without the time at the peer.
    pub const fn round_trip(self) -> i64 {
        let there = self.returned.saturating_sub(self.sent);
        there.saturating_sub(self.answered.saturating_sub(self.arrived))
    }

    /// T2 - T1 - (round trip) / 2: the peer's clock minus ours, were both directions equally long.
    pub const fn offset(self) -> i64 {
        let there = self.arrived.saturating_sub(self.sent);
        let back = self.answered.saturating_sub(self.returned);
        there.midpoint(back)
    }

    /// What it proves: the offset is at most the first and at least the second. `doubt` is how far
    /// two stamps may be off each other because a clock was read late, in nanoseconds.
    pub fn limits(self, doubt: i64) -> (OffsetLimit, OffsetLimit) {
        let shows = |offset: i64| OffsetLimit {
            at: self.sent,
            within: self.returned.saturating_sub(self.sent),
            offset,
        };
        let there = self.arrived.saturating_sub(self.sent);
        let back = self.answered.saturating_sub(self.returned);
        (
            shows(there.saturating_add(doubt)),
            shows(back.saturating_sub(doubt)),
        )
    }
}

/// The mean of offsets, as they come (Welford 1962).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MeanOffset {
    /// The first: others are kept as differences to it, since floats hold 104 days only.
    first: i64,
    n: usize,
    mean: f64,
    squares: f64,
}

impl MeanOffset {
    /// One more, in nanoseconds.
    pub fn push(&mut self, offset: i64) {
        if self.n == 0 {
            self.first = offset;
        }
        self.n += 1;
        let value = real_nanos(offset.saturating_sub(self.first));
        let before = value - self.mean;
        self.mean += before / real(self.n);
        self.squares += before * (value - self.mean);
    }

    /// How many there were.
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Their mean, in nanoseconds; `None` of none.
    pub fn mean(&self) -> Option<i64> {
        (self.n > 0).then(|| self.first.saturating_add(nanos(self.mean)))
    }

    /// How they scatter: their standard deviation in nanoseconds; `None` of less than two.
    pub fn deviation(&self) -> Option<f64> {
        let degrees = self.n.checked_sub(1).filter(|degrees| *degrees > 0)?;
        Some((self.squares / real(degrees)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_ways_show_the_offset_and_unequal_ones_half_their_difference() {
        let exchange = |there: i64, back: i64| FourStamps {
            sent: 1_000,
            arrived: 1_000 + there + 500,
            answered: 1_000 + there + 40 + 500,
            returned: 1_000 + there + 40 + back,
        };
        assert_eq!(exchange(30, 30).offset(), 500);
        assert_eq!(exchange(30, 30).round_trip(), 60);
        assert_eq!(exchange(130, 30).offset(), 550);
        let (most, least) = exchange(130, 30).limits(2);
        assert_eq!((most.offset, least.offset), (632, 468));
        assert_eq!((most.at, most.within), (1_000, 200));
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
        fn the_formula_is_the_middle_of_what_is_possible(
            sent in -1_000_000_i64..1_000_000,
            offset in any::<i32>(),
            there in 0..1_000_000_i64,
            stay in 0..1_000_000_i64,
            back in 0..1_000_000_i64,
        ) {
            let arrived = sent + there + i64::from(offset);
            let exchange = FourStamps {
                sent,
                arrived,
                answered: arrived + stay,
                returned: sent + there + stay + back,
            };
            let (most, least) = exchange.limits(0);
            prop_assert!(least.offset <= i64::from(offset) && i64::from(offset) <= most.offset);
            prop_assert_eq!(most.offset - least.offset, exchange.round_trip());
            prop_assert!((2 * exchange.offset() - most.offset - least.offset).abs() <= 1);
        }
    }
}
