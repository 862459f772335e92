//! The offset between two sites' clocks: a value that cannot be had without its bound.

use crate::{Instant, Local, Peer, Span};

/// Reading of the peer's clock minus reading of the local clock, known to ± `bound`.
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

    /// Peer clock minus own clock.
    pub const fn value(self) -> Span {
        self.value
    }
    /// Largest error of [`Self::value`], in both directions.
    pub const fn bound(self) -> Span {
        self.bound
    }
    /// The delay on the forward path, from the local instant to the peer's.
    pub fn forward(self, sent: Instant<Local>, received: Instant<Peer>) -> OneWay {
        let elapsed = received.nanos().saturating_sub(sent.nanos());
        OneWay {
            delay: Span::from_nanos(elapsed) - self.value,
            bound: self.bound,
        }
    }
    /// The delay on the reverse path, from the peer's instant to the local one.
    pub fn reverse(self, sent: Instant<Peer>, received: Instant<Local>) -> OneWay {
        let elapsed = received.nanos().saturating_sub(sent.nanos());
        OneWay {
            delay: Span::from_nanos(elapsed) + self.value,
            bound: self.bound,
        }
    }
}
