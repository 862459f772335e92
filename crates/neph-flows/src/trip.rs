//! A round trip in four bytes: exact to a nanosecond up to two seconds, to 64 ns beyond. Of each
//! flow those of a whole bin of time are kept.

use neph_model::Span;

/// What is above this is told in steps of [`COARSE`].
const FINE: i64 = 1 << 31;
const COARSE: i64 = 64;
/// Round trips less the peer's time can lie a little below zero, where stamps are the programs'.
const BELOW: i64 = 1 << 20;

/// A round trip, in the order of length. None is below -1 ms; those above two minutes are taken for
/// two minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trip(u32);

impl Trip {
    /// Out of nanoseconds.
    pub(crate) fn from_nanos(nanos: i64) -> Self {
        let above = nanos.saturating_add(BELOW).max(0);
        let code = if above < FINE {
            above
        } else {
            FINE + (above - FINE) / COARSE
        };
        Self(u32::try_from(code).unwrap_or(u32::MAX))
    }

    /// In nanoseconds.
    pub(crate) fn nanos(self) -> i64 {
        let code = i64::from(self.0);
        let above = if code < FINE {
            code
        } else {
            FINE + (code - FINE) * COARSE
        };
        above - BELOW
    }

    /// As everybody else has it.
    pub(crate) fn span(self) -> Span {
        Span::from_nanos(self.nanos())
    }

    /// As it is kept; [`Self::of_code`] is the way back.
    pub(crate) const fn code(self) -> u32 {
        self.0
    }

    /// From how it was kept.
    pub(crate) const fn of_code(code: u32) -> Self {
        Self(code)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn up_to_two_seconds_nothing_is_lost(nanos in -1_000_000..2_000_000_000_i64) {
            prop_assert_eq!(Trip::from_nanos(nanos).nanos(), nanos);
        }

        #[test]
        fn order_stays_and_two_minutes_are_told_to_64_ns(one in 0..120_000_000_000_i64, by in 64..1_000_000_i64) {
            let trip = Trip::from_nanos(one);
            prop_assert!((trip.nanos() - one).abs() < COARSE);
            prop_assert!(trip < Trip::from_nanos(one + by));
        }
    }

    #[test]
    fn what_cannot_be_told_stays_at_the_end() {
        assert_eq!(Trip::from_nanos(i64::MIN).nanos(), -BELOW);
        let most = Trip::from_nanos(i64::MAX);
        assert!(most.nanos() > 120_000_000_000, "{most:?}");
    }
}
