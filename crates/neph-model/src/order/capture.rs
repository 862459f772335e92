//! A capture as an order.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ByteSize, Span, Wall};

/// What packets carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP of either version.
    Icmp,
}

/// To write an interface's packets down in nanosecond pcap, until it is ended: to standard output, or at an agent
/// into a file of its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureOrder {
    /// The interface, or `any`.
    pub interface: String,
    /// The site of a lab there, or the network namespace, that it is in.
    pub site: Option<String>,
    /// Bytes that are kept of each packet, at most.
    pub kept: u32,
    /// Memory in which packets wait.
    #[serde(rename = "ring_bytes")]
    pub ring: ByteSize,
    /// Only packets from or to one of these; of all if empty.
    pub hosts: Vec<IpAddr>,
    /// Only packets from or to one of these ports of TCP or UDP; of all if empty.
    pub ports: Vec<u16>,
    /// Only packets of these; of all if empty.
    pub protocols: Vec<CaptureProtocol>,
    /// At an agent: it ends by itself after so long.
    #[serde(
        rename = "duration_ns",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub duration: Option<Span>,
    /// At an agent: it ends by itself when the capture has so many bytes.
    #[serde(
        rename = "limit_bytes",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub limit: Option<ByteSize>,
    /// At an agent: some of its packets are reported while it is made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub samples: bool,
}

impl CaptureOrder {
    /// A capture of all packets at an interface, without a site, until it is cancelled.
    pub const fn of(interface: String, kept: u32, ring: ByteSize) -> Self {
        Self {
            interface,
            site: None,
            kept,
            ring,
            hosts: Vec::new(),
            ports: Vec::new(),
            protocols: Vec::new(),
            duration: None,
            limit: None,
            samples: false,
        }
    }
}

/// A sample of a capture's packets, while it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacketSample {
    /// Stands for the kernel whose clock stamped, as in [`Captured::kernel`].
    pub kernel: String,
    /// How far the host's clock is from the controller's, once that is known.
    pub clock: Option<ClockReading>,
    /// The packets, as nanosecond pcap; in a message they travel behind it.
    #[serde(skip)]
    pub pcap: Vec<u8>,
}

/// What an agent captured; the packets are in a file of the result. Its moments are of the clock that stamped the
/// packets: whoever joins captures of several hosts moves all by one offset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Captured {
    /// Stands for the kernel whose clock stamped: two captures with the same have one clock.
    pub kernel: String,
    /// Packets that the file has.
    pub packets: u64,
    /// Packets that passed the filter and are not in the file.
    pub lost: u64,
    /// From when until when all that passed came into the file, where that is known.
    pub listened: Option<[Wall; 2]>,
    /// Why it ended before its time.
    pub fault: Option<String>,
    /// How far the host's clock was from the controller's, as often as that was measured.
    #[serde(default)]
    pub clock: Vec<ClockReading>,
}

/// How far a host's clock was from its controller's at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockReading {
    /// The moment, by the host's clock.
    #[serde(rename = "at_unix_ns")]
    pub at: Wall,
    /// The host's clock minus the controller's.
    #[serde(rename = "offset_ns")]
    pub offset: Span,
    /// How far that may be wrong, either way.
    #[serde(rename = "bound_ns")]
    pub bound: Span,
}
