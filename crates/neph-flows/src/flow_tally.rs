//! Owns counters of message outcomes: of a flow, a pair or a fleet.

use serde::Serialize;

use crate::share::{Share, share};

/// Outcomes of a flow's messages, and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowTally {
    /// Replied to in time.
    pub replies: u64,
    /// Without a reply in time.
    pub lost: u64,
    /// Not sent.
    pub failed: u64,
    /// Lost on the forward path, if the peer's counter shows it.
    pub lost_forward: u64,
    /// Lost on the reverse path, if the peer's counter shows it. Late replies are subtracted if their number
    /// is known ([`FleetView::record_late_replies`](crate::FleetView::record_late_replies)).
    pub lost_reverse: u64,
    /// Duplicates of replies.
    pub copies: u64,
    /// Requests that arrived after a later one of their flow (RFC 4737, by the peer's counter).
    pub reordered_forward: u64,
    /// Replies that were reordered on the reverse path: by the peer's timestamps they departed in order.
    pub reordered_reverse: u64,
    /// Replies that arrived after the reply to a later request of their flow, in either direction.
    pub reordered: u64,
}

impl FlowTally {
    /// All messages.
    pub const fn messages(&self) -> u64 {
        self.replies + self.lost + self.failed
    }

    /// The share of the sent messages that were lost; `None` if none was sent.
    pub fn loss(&self) -> Option<Share> {
        share(self.lost, self.replies + self.lost)
    }

    /// Number of counters.
    pub(crate) const COUNTERS: usize = 9;

    /// All counters, so that additions cover each of them.
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

    /// Adds another tally.
    pub fn add(&mut self, other: &Self) {
        let mut other = *other;
        for (counter, other) in self.counters().into_iter().zip(other.counters()) {
            *counter += *other;
        }
    }
}
