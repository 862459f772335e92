//! Owns how messages fared, counted: of a flow, of a pair or of a fleet.

use serde::Serialize;

use crate::share::{Share, share};

/// How a flow's messages fared, and the order in which they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowTally {
    /// Replied to in time.
    pub replies: u64,
    /// Not replied to in time.
    pub lost: u64,
    /// Not sent.
    pub failed: u64,
    /// Lost on the way there, where the peer's count tells so.
    pub lost_forward: u64,
    /// Lost on the way back, where the peer's count tells so; less the replies that came late, where
    /// it is known how many did ([`FleetView::came_late`](crate::FleetView::came_late)).
    pub lost_reverse: u64,
    /// Replies that came again.
    pub copies: u64,
    /// Requests that overtook an earlier one of their flow (RFC 4737, by the peer's count).
    pub reordered_forward: u64,
    /// Replies that were overtaken on the way back: by the peer's stamps they left in order.
    pub reordered_reverse: u64,
    /// Replies that came after the reply to a later request of their flow, wherever that happened.
    pub reordered: u64,
}

impl FlowTally {
    /// All messages.
    pub const fn messages(&self) -> u64 {
        self.replies + self.lost + self.failed
    }

    /// The share of the messages sent that were lost; none where none was sent.
    pub fn loss(&self) -> Option<Share> {
        share(self.lost, self.replies + self.lost)
    }

    /// How many counters there are.
    pub(crate) const COUNTERS: usize = 9;

    /// All counters, so that none is forgotten where they are added.
    pub(crate) fn counters(&mut self) -> [&mut u64; Self::COUNTERS] {
        [
            &mut self.replies,
            &mut self.lost,
            &mut self.failed,
            &mut self.lost_forward,
            &mut self.lost_reverse,
            &mut self.copies,
            &mut self.reordered_forward,
            &mut self.reordered_reverse,
            &mut self.reordered,
        ]
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        let mut other = *other;
        for (own, other) in self.counters().into_iter().zip(other.counters()) {
            *own += *other;
        }
    }
}
