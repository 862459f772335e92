//! A round trip in four bytes: exact to 1 ns up to two seconds, to 64 ns above. Those of a whole bin of time
//! are kept per flow.

use neph_model::Span;

/// Above this, the resolution is [`COARSE_STEP`].
const FINE_RANGE: i64 = 1 << 31;
const COARSE_STEP: i64 = 64;
/// Round trips minus the peer's time may be slightly negative with timestamps of applications.
const NEGATIVE_RANGE: i64 = 1 << 20;

/// A round trip, ordered by length. The range is -1 ms to two minutes; longer ones are clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CompactRtt(u32);

impl CompactRtt {
    /// From nanoseconds.
    pub(crate) fn from_nanos(nanos: i64) -> Self {
        let shifted = nanos.saturating_add(NEGATIVE_RANGE).max(0);
        let code = if shifted < FINE_RANGE {
            shifted
        } else {
            FINE_RANGE + (shifted - FINE_RANGE) / COARSE_STEP
        };
        Self(u32::try_from(code).unwrap_or(u32::MAX))
    }

    /// In nanoseconds.
    pub(crate) fn nanos(self) -> i64 {
        let code = i64::from(self.0);
        let shifted = if code < FINE_RANGE {
            code
        } else {
            FINE_RANGE + (code - FINE_RANGE) * COARSE_STEP
        };
        shifted - NEGATIVE_RANGE
    }

    /// As a [`Span`].
    pub(crate) fn span(self) -> Span {
        Span::from_nanos(self.nanos())
    }

    /// As a code for storage; [`Self::from_code`] reverses it.
    pub(crate) const fn code(self) -> u32 {
        self.0
    }

    /// From a stored code.
    pub(crate) const fn from_code(code: u32) -> Self {
        Self(code)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trips_up_to_two_seconds_are_exact(nanos in -1_000_000..2_000_000_000_i64) {
            prop_assert_eq!(CompactRtt::from_nanos(nanos).nanos(), nanos);
        }

        #[test]
        fn compact_rtts_preserve_order_above_64_ns(nanos in 0..120_000_000_000_i64, step in 64..1_000_000_i64) {
            let round_trip = CompactRtt::from_nanos(nanos);
            prop_assert!((round_trip.nanos() - nanos).abs() < COARSE_STEP);
            prop_assert!(round_trip < CompactRtt::from_nanos(nanos + step));
        }
    }

    #[test]
    fn values_out_of_range_are_clamped() {
        assert_eq!(CompactRtt::from_nanos(i64::MIN).nanos(), -NEGATIVE_RANGE);
        let maximum = CompactRtt::from_nanos(i64::MAX);
        assert!(maximum.nanos() > 120_000_000_000, "{maximum:?}");
    }
}
