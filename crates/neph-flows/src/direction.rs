//! Owns the direction of an event.

use schemars::JsonSchema;
use serde::Serialize;

/// The direction of a path change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Towards the peer.
    Forward,
    /// From the peer.
    Reverse,
    /// Both directions at the same time.
    Both,
}
