//! A flow: one 5-tuple of a pair, and its role in the experiment.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ProbeKind;

/// Index of a flow within its experiment; 0 is the main flow.
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

/// The role of a flow in its experiment.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FlowRole {
    /// Measures the scenario.
    Main,
    /// An ICMP echo to the endpoint's host, in addition to the main flow.
    Companion,
    /// An ICMP echo to a ping destination of the plan.
    PingDestination,
}

impl FlowRole {
    /// The name in files.
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
    /// Index within the experiment.
    pub index: FlowIndex,
    /// Role in the experiment.
    pub role: FlowRole,
    /// Kind of probe.
    pub probe: ProbeKind,
    /// Name of the endpoint or ping destination.
    pub name: String,
    /// Local address and port; the port is 0 for ICMP, and if each message has its own connection.
    /// null if unknown.
    pub source: Option<SocketAddr>,
    /// Address and port of the peer; the port is 0 for ICMP.
    pub target: SocketAddr,
    /// Whether the peer is a neph reflector, which returns its timestamps.
    pub reflector: bool,
    /// Whether both sides read the same clock (same kernel): one-way delays then need no clock
    /// offset.
    pub same_clock: bool,
}
