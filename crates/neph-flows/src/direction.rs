//! Owns the direction in which something happened.

use schemars::JsonSchema;
use serde::Serialize;

/// Which way a change of path happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Towards the peer.
    Forward,
    /// From the peer.
    Reverse,
    /// Both at the same time.
    Both,
}
