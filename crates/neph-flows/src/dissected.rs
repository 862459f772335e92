//! Owns a few flows message by message, as selected by `dissect`.

use neph_model::{Instant, Local, Slot, Span};
use serde::Serialize;

use crate::direction::Direction;

/// One flow's messages, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dissected {
    /// Its slot in the fleet.
    pub slot: Slot,
    /// Local source port.
    pub source_port: u16,
    /// Its messages; of a long flow, those around most of its path changes.
    pub samples: Vec<DissectedSample>,
}

/// A message of a dissected flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DissectedSample {
    /// Send time.
    pub sent: Instant<Local>,
    /// How it ended.
    pub outcome: DissectedOutcome,
}

/// How a message of a dissected flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DissectedOutcome {
    /// The reply arrived in time.
    Reply {
        /// RTT of the network.
        round_trip: Span,
        /// The direction in which it arrived after a later message of the flow; `None`: in order.
        reordered: Option<Direction>,
    },
    /// No reply arrived in time.
    Lost,
    /// It could not be sent.
    NotSent,
}
