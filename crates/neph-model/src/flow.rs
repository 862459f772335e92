//! A flow: one 5-tuple of a pair, and the part it plays in its experiment.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ProbeKind;

/// A flow's place within its experiment: 0 is the main one.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct FlowIndex(pub u32);

/// Why a flow is in its experiment.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FlowRole {
    /// What the scenario asks for.
    Main,
    /// An ICMP echo to the endpoint's host, beside the main flow.
    Companion,
    /// An ICMP echo to a ping destination that the plan names.
    PingDestination,
}

impl FlowRole {
    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Companion => "companion",
            Self::PingDestination => "ping_destination",
        }
    }
}

/// One flow of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Its place within the experiment.
    pub index: FlowIndex,
    /// Why it is there.
    pub role: FlowRole,
    /// The kind of exchange.
    pub probe: ProbeKind,
    /// Its name on screen: the endpoint's or the ping destination's.
    pub name: String,
    /// Our address; the port is 0 for ICMP, or when each message has a connection of its own.
    pub source: Option<SocketAddr>,
    /// The peer's address; the port is 0 for ICMP.
    pub target: SocketAddr,
    /// The peer is a Nephoscope reflector, which returns its marks.
    pub reflector: bool,
    /// Whether the peer reads the same clock (same kernel): one-way delays then need no offset.
    pub same_clock: bool,
}
