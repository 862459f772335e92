//! What is done between experiments: throughput checks, traceroutes and pings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Span, Wall};

/// A destination of ICMP echo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoTo {
    /// Its name on screen.
    pub name: String,
    /// Host name or address, IPv6 without brackets.
    pub host: String,
    /// Time between two requests; above zero.
    #[serde(rename = "interval_ns")]
    pub interval: Span,
}

/// Which program does a bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThroughputTool {
    /// Our own transfer to the reflector.
    Neph,
    /// The iperf3 program, against an iperf3 server.
    Iperf3,
}

impl ThroughputTool {
    /// The word for it in plans and in [`crate::Throughput::tool`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Neph => "neph",
            Self::Iperf3 => "iperf3",
        }
    }
}

/// A destination of a throughput check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThroughputServer {
    /// The endpoint's name, or the server's own.
    pub name: String,
    /// Host name or address, IPv6 without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// A throughput check to carry out. It is over only when all it sent is acknowledged: what still stands
/// in a queue would slow the first experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThroughputOrder {
    /// The block it belongs to, from 0.
    pub block: u32,
    /// Where to.
    pub server: ThroughputServer,
    /// How long.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
    /// With what.
    pub tool: ThroughputTool,
    /// The lab site it runs in; this host as it is if absent.
    pub site: Option<String>,
}

/// How far and how often a traceroute asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceLimits {
    /// Greatest distance that is tried, 1 to 64.
    pub max_hops: u8,
    /// Questions per distance, 1 to 10.
    pub queries: u8,
}

impl Default for TraceLimits {
    fn default() -> Self {
        Self {
            max_hops: 30,
            queries: 3,
        }
    }
}

/// A traceroute to carry out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracerouteOrder {
    /// The block it belongs to, from 0.
    pub block: u32,
    /// The endpoint's name.
    pub endpoint: String,
    /// Its host.
    pub host: String,
    /// How far and how often.
    pub limits: TraceLimits,
    /// The lab site it runs in; this host as it is if absent.
    pub site: Option<String>,
}

/// Pings to send while no experiment runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PingOrder {
    /// The block that is waited for, from 0.
    pub block: u32,
    /// Where to, and how often.
    pub pings: Vec<EchoTo>,
    /// The last of them are sent before this.
    pub until: Wall,
    /// After how long one counts as lost.
    #[serde(rename = "timeout_ns")]
    pub timeout: Span,
    /// The lab site that they are sent from; this host as it is if absent.
    pub site: Option<String>,
}
