//! The summary of a minute of messages, which remains after the messages are removed.

use crate::{FlowIndex, Tally};

/// A minute of one flow's messages; of a fleet, of all its flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minute {
    /// The flow; the first one for all of a fleet.
    pub flow: FlowIndex,
    /// Which minute, from 0 on, by the moments when messages were due (of a fleet: when they left),
    /// counted from the experiment's start.
    pub minute: u32,
    /// How its messages ended.
    pub tally: Tally,
    /// The response times of its replies (fleet: round trips of the network) in ns: a compressed
    /// histogram.
    pub times: Vec<u8>,
}
