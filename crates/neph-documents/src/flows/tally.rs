//! How messages of flows ended, as a document.

use neph_flows::FlowTally;
use schemars::JsonSchema;
use serde::Serialize;

/// The outcomes of messages.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TallyDocument {
    /// All messages.
    pub messages: u64,
    /// Messages with a reply in time.
    pub replies: u64,
    /// Messages without a reply in time.
    pub lost: u64,
    /// Messages that could not be sent.
    pub failed: u64,
    /// Lost messages whose request was lost on the forward path, as far as known.
    pub lost_forward: u64,
    /// Lost messages whose reply was lost on the reverse path, as far as known.
    pub lost_reverse: u64,
    /// Duplicate replies.
    pub duplicates: u64,
    /// Replies that arrived after the reply to a later request of their flow.
    pub reordered: u64,
    /// Requests that arrived after a later request of their flow (RFC 4737).
    pub reordered_forward: u64,
    /// Replies that were reordered on the reverse path.
    pub reordered_reverse: u64,
}

impl From<&FlowTally> for TallyDocument {
    fn from(tally: &FlowTally) -> Self {
        Self {
            messages: tally.messages(),
            replies: tally.replies,
            lost: tally.lost,
            failed: tally.failed,
            lost_forward: tally.lost_forward,
            lost_reverse: tally.lost_reverse,
            duplicates: tally.copies,
            reordered: tally.reordered,
            reordered_forward: tally.reordered_forward,
            reordered_reverse: tally.reordered_reverse,
        }
    }
}
