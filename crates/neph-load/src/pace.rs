//! Computes when the next bytes may be sent at a rate.
//!
//! Owns the arithmetic. Reads no clock: the caller passes the elapsed time and the bytes sent.

use neph_model::{BitRate, Span};

/// Maximum backlog. A sender that could not send for long must not send without pause afterwards.
const MAX_DEBT: Span = Span::from_millis(100);

/// Rate limit with a bounded backlog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// `None`: as fast as possible.
    rate: Option<BitRate>,
    forgiven: Span,
}

impl Pace {
    pub(crate) fn new(rate: Option<BitRate>) -> Self {
        Self {
            rate,
            forgiven: Span::ZERO,
        }
    }

    /// When the next bytes may be sent, since the start; `elapsed` is the current time, `sent` the
    /// bytes so far.
    pub(crate) fn due(&mut self, elapsed: Span, sent: u64) -> Span {
        let Some(rate) = self.rate else {
            return Span::ZERO;
        };
        let due = needed(sent, rate) + self.forgiven;
        if elapsed > due + MAX_DEBT {
            let excess = elapsed - due - MAX_DEBT;
            self.forgiven += excess;
            return due + excess;
        }
        due
    }
}

/// Time that this many bytes take at a rate.
fn needed(bytes: u64, rate: BitRate) -> Span {
    let nanos = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(rate.bits_per_second().max(1));
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_keeps_its_rate_and_catches_up_at_most_100_ms() {
        let rate = BitRate(8_000_000);
        let mut pace = Pace::new(Some(rate));
        let at = |millis| Span::from_millis(millis);
        assert_eq!(pace.due(Span::ZERO, 0), Span::ZERO);
        assert_eq!(pace.due(at(1), 5_000), at(5));
        // 40 ms behind: it may send at once until it has caught up.
        assert_eq!(pace.due(at(50), 10_000), at(10));
        // A second behind: it may catch up a tenth of it.
        assert_eq!(pace.due(at(1_010), 10_000), at(910));
        assert_eq!(pace.due(at(1_010), 110_000), at(1_010));
        assert_eq!(Pace::new(None).due(at(7), u64::MAX), Span::ZERO);
    }
}
