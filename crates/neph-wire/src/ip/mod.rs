//! Ethernet, IPv4, IPv6, TCP and UDP headers, for link emulators and captures.
//!
//! Owns the addresses, ports and payloads of a frame, and the writing of whole UDP packets. Does
//! not own reassembly or the verification of checksums. A capture may have cut a packet (snap
//! length): the available bytes are returned, with the lengths from the headers.

mod datagram;
mod ethernet;
mod packet;
mod transport;

pub use datagram::{PacketError, UdpHeaders, encode_udp};
pub use ethernet::{Ethernet, parse_ethernet};
pub use packet::{IpPacket, MoreFragments, parse_ip};
pub use transport::{
    TcpHeader, TcpOptions, UdpHeader, parse_tcp, parse_udp, tcp_options, tcp_timestamps,
};

use std::net::IpAddr;

use thiserror::Error;

/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Protocol number of `ICMPv6`.
pub const ICMPV6: u8 = 58;

/// Why bytes are not the expected header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IpError {
    /// The header is cut off.
    #[error("read {0} header: cut off")]
    Short(&'static str),
    /// The IP version is neither 4 nor 6.
    #[error("read IP header: version {0}")]
    Version(u8),
    /// A length field is inconsistent.
    #[error("read {0} header: its length field is wrong")]
    Length(&'static str),
    /// More extension headers than are read.
    #[error("read IPv6 header: more than {0} extension headers")]
    Extensions(usize),
    /// The frame contains neither IPv4 nor IPv6.
    #[error("read frame: ethertype {0:#06x} is not IP")]
    Ethertype(u16),
}

/// The key of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FiveTuple {
    /// The protocol number.
    pub protocol: u8,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Source port; 0 for protocols without ports and for later fragments.
    pub source_port: u16,
    /// Destination port; 0 for protocols without ports and for later fragments.
    pub destination_port: u16,
}

impl FiveTuple {
    /// The other direction of the flow.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            protocol: self.protocol,
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }

    /// The flow of an IP packet.
    pub fn of(packet: &IpPacket<'_>) -> Self {
        let ports = match packet.protocol {
            TCP | UDP if packet.fragment_offset == 0 => packet.payload.first_chunk::<4>(),
            _ => None,
        };
        let [a, b, c, d] = ports.copied().unwrap_or_default();
        Self {
            protocol: packet.protocol,
            source: packet.source,
            destination: packet.destination,
            source_port: u16::from_be_bytes([a, b]),
            destination_port: u16::from_be_bytes([c, d]),
        }
    }
}

/// The flow of an Ethernet frame.
///
/// # Errors
/// When the frame contains no IP packet, or its headers are malformed.
pub fn five_tuple(frame: &[u8]) -> Result<FiveTuple, IpError> {
    let frame = parse_ethernet(frame)?;
    if !frame.is_ip() {
        return Err(IpError::Ethertype(frame.ethertype));
    }
    Ok(FiveTuple::of(&parse_ip(frame.payload)?))
}

#[cfg(test)]
mod tests;
