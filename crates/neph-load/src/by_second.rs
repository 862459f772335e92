//! Rates of a load within each second.
//!
//! Owns the seconds and the rates between two readings. Reads no clock: the caller passes the time.

use neph_model::{BitRate, Span};

use crate::transfer::rate_of;

const SECOND: Span = Span::from_secs(1);

/// Payload rates of a load within a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadSecond {
    /// End of the second, since the start of the load.
    pub at: Span,
    /// Rate of the sender, without retransmissions.
    pub sent: BitRate,
    /// Rate of the receiver.
    pub received: BitRate,
}

/// Payload bytes since the start of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CarriedBytes {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// The seconds of a load so far.
#[derive(Clone, Debug)]
pub(crate) struct BySecond {
    last: (Span, CarriedBytes),
    due: Span,
    seconds: Vec<LoadSecond>,
}

impl Default for BySecond {
    fn default() -> Self {
        Self {
            last: (Span::ZERO, CarriedBytes::default()),
            due: SECOND,
            seconds: Vec::new(),
        }
    }
}

impl BySecond {
    /// When to read the counters next, since the start of the load.
    pub(crate) const fn due(&self) -> Span {
        self.due
    }

    /// Adds the counters at the end of a second. A late reading makes a longer second; its rates
    /// are over the actual time.
    pub(crate) fn mark(&mut self, now: Span, bytes: CarriedBytes) {
        let (before, previous_bytes) = self.last;
        let lasted = now - before;
        self.seconds.push(LoadSecond {
            at: now,
            sent: rate_of(bytes.sent.saturating_sub(previous_bytes.sent), lasted),
            received: rate_of(
                bytes.received.saturating_sub(previous_bytes.received),
                lasted,
            ),
        });
        self.last = (now, bytes);
        self.due = SECOND.times(now.nanos() / SECOND.nanos() + 1);
    }

    /// All complete seconds.
    pub(crate) fn into_seconds(self) -> Vec<LoadSecond> {
        self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_reading_extends_its_second_without_raising_the_rate() {
        let mut counters = BySecond::default();
        let bytes = |sent, received| CarriedBytes { sent, received };
        counters.mark(Span::from_millis(1_000), bytes(125_000, 100_000));
        assert_eq!(counters.due(), Span::from_secs(2));
        counters.mark(Span::from_millis(3_500), bytes(437_500, 225_000));
        assert_eq!(counters.due(), Span::from_secs(4));
        let rates = counters.into_seconds();
        let rates = rates
            .iter()
            .map(|load_second| (load_second.sent.0, load_second.received.0));
        let expected = [(1_000_000, 800_000), (1_000_000, 400_000)];
        assert_eq!(rates.collect::<Vec<_>>(), expected);
    }
}
