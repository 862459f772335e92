//! The offset between two sites' clocks: a value that cannot be had without its bound.

use crate::{Instant, Marks, Own, Peer, Span};

/// Peer clock minus own clock, known to within `bound` either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    value: Span,
    bound: Span,
}

/// A delay in one direction, with the bound it inherits from the clock offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWay {
    /// The delay.
    pub delay: Span,
    /// The truth lies within `delay` plus or minus this.
    pub bound: Span,
}

impl ClockOffset {
    /// Both sides read the same clock (same kernel): no offset, no doubt.
    pub const SAME_CLOCK: Self = Self {
        value: Span::ZERO,
        bound: Span::ZERO,
    };

    /// An offset and how far it may be wrong.
    pub const fn new(value: Span, bound: Span) -> Self {
        Self {
            value,
            bound: bound.abs(),
        }
    }

    /// What the messages themselves prove. No delay is negative, so each request shows
    /// `offset <= peer_rx - nic_tx` and each reply `offset >= peer_nic_tx - nic_rx`; the offset is
    /// the middle of what remains, the bound half its width. `None` without a message that has all
    /// four marks, or if the clocks drifted so far apart that nothing remains.
    pub fn from_messages<'a>(messages: impl IntoIterator<Item = &'a Marks>) -> Option<Self> {
        let mut low = i64::MIN;
        let mut high = i64::MAX;
        for marks in messages {
            let (Some(nic_tx), Some(rx)) = (marks.nic_tx, marks.peer.rx) else {
                continue;
            };
            let (Some(peer_tx), Some(nic_rx)) = (marks.peer.nic_tx, marks.nic_rx) else {
                continue;
            };
            high = high.min(rx.nanos().saturating_sub(nic_tx.nanos()));
            low = low.max(peer_tx.nanos().saturating_sub(nic_rx.nanos()));
        }
        if low == i64::MIN || low > high {
            return None;
        }
        let half = (high - low) / 2;
        Some(Self::new(
            Span::from_nanos(low + half),
            Span::from_nanos(high - low - half),
        ))
    }

    /// Peer clock minus own clock.
    pub const fn value(self) -> Span {
        self.value
    }
    /// How far [`Self::value`] may be wrong, either way.
    pub const fn bound(self) -> Span {
        self.bound
    }
    /// The delay from our instant to the peer's.
    pub fn there(self, sent: Instant<Own>, received: Instant<Peer>) -> OneWay {
        let apart = received.nanos().saturating_sub(sent.nanos());
        OneWay {
            delay: Span::from_nanos(apart) - self.value,
            bound: self.bound,
        }
    }
    /// The delay from the peer's instant to ours.
    pub fn back(self, sent: Instant<Peer>, received: Instant<Own>) -> OneWay {
        let apart = received.nanos().saturating_sub(sent.nanos());
        OneWay {
            delay: Span::from_nanos(apart) + self.value,
            bound: self.bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(nic_tx: i64, rx: i64, tx: i64, nic_rx: i64) -> Marks {
        let mut marks = Marks::intended_at(Instant::from_nanos(nic_tx));
        marks.nic_tx = Some(Instant::from_nanos(nic_tx));
        marks.peer.rx = Some(Instant::from_nanos(rx));
        marks.peer.nic_tx = Some(Instant::from_nanos(tx));
        marks.nic_rx = Some(Instant::from_nanos(nic_rx));
        marks
    }

    #[test]
    fn the_true_offset_lies_within_the_bound() {
        // True offset 1000; delays 30 there and 10 back, then 12 there and 40 back.
        let seen = [
            exchange(0, 1_030, 1_035, 45),
            exchange(100, 1_112, 1_112, 152),
        ];
        let offset = ClockOffset::from_messages(&seen).expect("four marks are there");
        assert_eq!(
            (offset.value().nanos(), offset.bound().nanos()),
            (1_001, 11)
        );
    }

    #[test]
    fn without_the_four_marks_there_is_no_offset() {
        let mut marks = exchange(0, 1, 2, 3);
        marks.peer.nic_tx = None;
        assert_eq!(ClockOffset::from_messages(&[marks]), None);
    }
}
