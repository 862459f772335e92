//! Pings between experiments: the ping destinations of a plan are asked while it waits for a block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::net::IpAddr;

use crate::{Outcome, Span, Wall};

/// An ICMP echo to a ping destination while no experiment ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PingBetween {
    /// The block that was waited for, from 0.
    pub block: u32,
    /// The destination's name.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// When it was sent, or was to be sent.
    pub sent: Wall,
    /// What became of it.
    pub outcome: Outcome,
    /// From sending to the reply; absent without a reply.
    pub round_trip: Option<Span>,
}
