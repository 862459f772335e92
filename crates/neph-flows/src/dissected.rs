//! Owns a few flows message by message, as `dissect` picks them.

use neph_model::{Instant, Lane, Own, Span};
use serde::Serialize;

use crate::direction::Direction;

/// One flow's messages, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dissected {
    /// Its place in the fleet.
    pub lane: Lane,
    /// Our port.
    pub source_port: u16,
    /// Its messages; of a long flow, those around most of its path changes.
    pub samples: Vec<DissectedSample>,
}

/// A message of a dissected flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DissectedSample {
    /// When it left.
    pub sent: Instant<Own>,
    /// How it ended.
    pub outcome: DissectedOutcome,
}

/// How a message of a dissected flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DissectedOutcome {
    /// The reply came in time.
    Reply {
        /// The network's round trip.
        round_trip: Span,
        /// Where a later message of the flow overtook it, if one did.
        overtaken: Option<Direction>,
    },
    /// No reply came in time.
    Lost,
    /// It could not be sent.
    NotSent,
}
