//! An order to capture packets.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ByteSize, Span, Wall};

/// The protocol of packets.
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

/// An order to capture an interface's packets as nanosecond pcap until it is ended. The output is
/// standard output or, at an agent, a file of the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureOrder {
    /// Name of the interface, or `any`.
    pub interface: String,
    /// Lab site or network namespace of the interface; null for the host itself.
    pub site: Option<String>,
    /// Maximum number of bytes that are stored of each packet.
    #[serde(alias = "kept")]
    pub snaplen: u32,
    /// Memory for packets that are not written yet.
    #[serde(rename = "ring_bytes")]
    pub ring: ByteSize,
    /// Only packets from or to these addresses are captured; empty for all.
    pub hosts: Vec<IpAddr>,
    /// Only packets from or to these TCP or UDP ports are captured; empty for all.
    pub ports: Vec<u16>,
    /// Only packets of these protocols are captured; empty for all.
    pub protocols: Vec<CaptureProtocol>,
    /// At an agent: duration after which the capture ends.
    #[serde(
        rename = "duration_ns",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub duration: Option<Span>,
    /// At an agent: size of the capture at which it ends.
    #[serde(
        rename = "limit_bytes",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub limit: Option<ByteSize>,
    /// At an agent: whether some of the packets are reported during the capture.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub samples: bool,
}

impl CaptureOrder {
    /// A capture of all packets of an interface, without a site, until it is cancelled.
    pub const fn of(interface: String, snaplen: u32, ring: ByteSize) -> Self {
        Self {
            interface,
            site: None,
            snaplen,
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

/// Some packets of a running capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacketSample {
    /// Id of the kernel that took the timestamps, as in the result of the capture.
    pub kernel: String,
    /// Clock offset between the host and the controller; null until it is known.
    pub clock: Option<ClockReading>,
    /// The packets as nanosecond pcap; in a message they follow after the JSON.
    #[serde(skip)]
    pub pcap: Vec<u8>,
}

/// The result of a capture at an agent; the packets are in a file of the result. All times are
/// those of the clock that took the packets' timestamps. To merge captures of several hosts, shift
/// each capture by one offset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Captured {
    /// Id of the kernel that took the timestamps: captures with the same id have the same clock.
    pub kernel: String,
    /// Number of packets in the file.
    pub packets: u64,
    /// Number of packets that matched the filter and are not in the file.
    pub lost: u64,
    /// Start and end of the time in which all matching packets are in the file, Unix nanoseconds;
    /// null if unknown.
    pub listened: Option<[Wall; 2]>,
    /// Why the capture ended early; null otherwise.
    pub fault: Option<String>,
    /// Clock offsets between the host and the controller, one for each measurement.
    #[serde(default)]
    pub clock: Vec<ClockReading>,
}

/// The clock offset between a host and its controller at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockReading {
    /// Time of the measurement, on the host's clock.
    #[serde(rename = "at_unix_ns")]
    pub at: Wall,
    /// The host's clock minus the controller's.
    #[serde(rename = "offset_ns")]
    pub offset: Span,
    /// Error bound of the offset.
    #[serde(rename = "bound_ns")]
    pub bound: Span,
}
