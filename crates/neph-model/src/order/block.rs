//! Tasks between experiments: throughput checks, traceroutes and pings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Span, Wall};

/// A destination of ICMP echo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoTo {
    /// Name of the destination.
    pub name: String,
    /// Host name or address, IPv6 without brackets.
    pub host: String,
    /// Time between two requests; above 0.
    #[serde(rename = "interval_ns")]
    pub interval: Span,
}

/// The program that runs a bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThroughputTool {
    /// neph, with a transfer to the reflector.
    Neph,
    /// iperf3, with a transfer to an iperf3 server.
    Iperf3,
}

impl ThroughputTool {
    /// The name in plans and in [`crate::Throughput::tool`].
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
    /// Name of the endpoint or of the server.
    pub name: String,
    /// Host name or address, IPv6 without brackets.
    pub host: String,
    /// Port of the server.
    pub port: u16,
}

/// A throughput check. It ends when all sent data is acknowledged: data in a queue would delay the
/// first experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThroughputOrder {
    /// The block, from 0.
    pub block: u32,
    /// The server.
    pub server: ThroughputServer,
    /// Duration of the transfer.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
    /// Program that runs the transfer.
    pub tool: ThroughputTool,
    /// Lab site in which it runs; null for the host itself.
    pub site: Option<String>,
}

/// The limits of a traceroute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceLimits {
    /// Maximum distance in hops, 1 to 64.
    pub max_hops: u8,
    /// Number of probes per distance, 1 to 10.
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

/// A traceroute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracerouteOrder {
    /// The block, from 0.
    pub block: u32,
    /// Name of the endpoint.
    pub endpoint: String,
    /// Host name or address of the endpoint.
    pub host: String,
    /// Limits of the traceroute.
    pub limits: TraceLimits,
    /// Lab site in which it runs; null for the host itself.
    pub site: Option<String>,
}

/// Pings while no experiment runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PingOrder {
    /// The block that follows, from 0.
    pub block: u32,
    /// Destinations and their intervals.
    pub pings: Vec<EchoTo>,
    /// Time after which no ping is sent, Unix nanoseconds.
    pub until: Wall,
    /// Time after which a ping counts as lost.
    #[serde(rename = "timeout_ns")]
    pub timeout: Span,
    /// Lab site that sends them; null for the host itself.
    pub site: Option<String>,
}
