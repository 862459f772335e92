//! Pings between experiments: sent to the ping destinations of a plan while it waits for a block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::net::IpAddr;

use crate::{Outcome, Span, Wall};

/// An ICMP echo to a ping destination while no experiment ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PingBetween {
    /// The block that followed, from 0.
    pub block: u32,
    /// Name of the destination.
    pub name: String,
    /// Address of the destination.
    pub address: IpAddr,
    /// Actual or scheduled send time, Unix nanoseconds.
    pub sent: Wall,
    /// Outcome of the ping.
    pub outcome: Outcome,
    /// Round trip, nanoseconds; null without a reply.
    pub round_trip: Option<Span>,
}
