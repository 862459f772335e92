//! A capture as an order.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ByteSize;

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

/// To write an interface's packets to standard output, in nanosecond pcap, until it is ended.
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
}
