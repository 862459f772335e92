//! From a captured packet to its innermost IP packet and transport header.
//!
//! Owns the removal of VLAN tags, MPLS labels, LLC, PPP and tunnels: VXLAN, Geneve, GRE, ERSPAN,
//! GTP-U, L2TP, IP in IP. Owns the payload length on the wire, of which a capture may contain less.
//! Does not own connections (see neph-capture), reassembly or checksums.

mod link;
mod plain;
mod tunnel;

#[cfg(test)]
mod tests;

pub use link::Link;
pub use plain::{Plain, plain};
pub use tunnel::Tunnel;

use crate::ip::{
    ICMP, ICMPV6, IpError, IpPacket, MoreFragments, TCP, TcpHeader, UDP, UdpHeader, parse_ip,
    parse_tcp, parse_udp,
};

/// Maximum number of nested tunnels; no network nests as many.
const DEPTH_MAX: usize = 4;

/// The contents of a packet inside all tunnels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dissected<'a> {
    /// The outermost VLAN ID, if the packet has one.
    pub vlan: Option<u16>,
    /// The innermost tunnel.
    pub tunnel: Option<Tunnel>,
    /// The innermost IP packet.
    pub ip: IpPacket<'a>,
    /// The payload of the IP packet.
    pub transport: Transport<'a>,
}

/// The payload of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport<'a> {
    /// A TCP segment.
    Tcp {
        /// Its header; options and payload as far as they were captured.
        header: TcpHeader<'a>,
        /// Length of the payload on the wire, bytes.
        payload_len: u32,
    },
    /// A UDP datagram.
    Udp {
        /// Its header; the payload as far as it was captured.
        header: UdpHeader<'a>,
        /// Length of the payload on the wire, bytes.
        payload_len: u32,
    },
    /// ICMP of either version, from its type on.
    Icmp(&'a [u8]),
    /// A fragment other than the first: it has no transport header.
    Fragment,
    /// Another protocol, or a header that was cut off or is inconsistent.
    Other,
}

/// Why a packet has no dissected IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPacket {
    /// The captured bytes end within a header before the innermost payload.
    Cut,
    /// No IP packet, or an inconsistent one.
    NotIp,
}

impl From<IpError> for NoPacket {
    fn from(error: IpError) -> Self {
        match error {
            IpError::Short(_) => Self::Cut,
            _ => Self::NotIp,
        }
    }
}

/// Dissects a packet of `length` bytes on the wire. `None` if it contains no IP packet or its
/// headers were cut off: [`why_not`] distinguishes the two.
#[inline]
pub fn dissect(link: Link, bytes: &[u8], length: u32) -> Option<Dissected<'_>> {
    try_dissect(link, bytes, length).ok()
}

/// Why [`dissect`] returns `None` for a packet.
#[cold]
pub fn why_not(link: Link, bytes: &[u8], length: u32) -> NoPacket {
    let is_whole = bytes.len() >= length as usize;
    match try_dissect(link, bytes, length) {
        Err(NoPacket::Cut) if !is_whole => NoPacket::Cut,
        _ => NoPacket::NotIp,
    }
}

#[inline]
fn try_dissect(link: Link, bytes: &[u8], length: u32) -> Result<Dissected<'_>, NoPacket> {
    let framed = link.strip(bytes)?;
    let wire = length as usize;
    let mut vlan = framed.vlan;
    let mut tunnel = None;
    let mut packet = framed.packet;
    for _ in 0..=DEPTH_MAX {
        let before = offset(bytes, packet);
        let mut ip = parse_ip(packet)?;
        set_offloaded_length(&mut ip, packet, wire.saturating_sub(before));
        let transport = transport(&ip);
        let inside = match tunnel::unwrap_tunnel(&ip, &transport) {
            Ok(inside) => inside,
            // The tunnel's payload is unknown, and attributing the packet to the tunnel would be
            // wrong.
            Err(NoPacket::Cut) if bytes.len() < wire => return Err(NoPacket::Cut),
            Err(_) => {
                return Ok(Dissected {
                    vlan,
                    tunnel,
                    ip,
                    transport,
                });
            }
        };
        vlan = vlan.or(inside.vlan);
        tunnel = Some(inside.tunnel);
        packet = inside.packet;
    }
    Err(NoPacket::NotIp)
}

impl<'a> Dissected<'a> {
    /// An IP packet outside of VLANs, without looking into tunnels.
    pub fn of_ip(ip: IpPacket<'a>) -> Self {
        Self {
            vlan: None,
            tunnel: None,
            transport: transport(&ip),
            ip,
        }
    }

    /// Whether the header of TCP or UDP was cut off.
    pub fn is_cut(&self) -> bool {
        let ip = &self.ip;
        matches!(self.transport, Transport::Other)
            && matches!(ip.protocol, TCP | UDP)
            && ip.payload.len() < ip.total_len.saturating_sub(ip.header_len)
    }
}

/// The offset of `packet` within `bytes`.
fn offset(bytes: &[u8], packet: &[u8]) -> usize {
    packet.as_ptr().addr() - bytes.as_ptr().addr()
}

/// With segmentation offload, a packet beyond 64 KiB has 0 in its length field. The capture has its
/// length.
fn set_offloaded_length(ip: &mut IpPacket<'_>, packet: &[u8], wire: usize) {
    let length_field = match ip.source {
        std::net::IpAddr::V4(_) => packet.get(2..4),
        std::net::IpAddr::V6(_) => packet.get(4..6),
    };
    if length_field == Some(&[0, 0]) {
        ip.total_len = wire.max(ip.total_len);
    }
}

#[inline]
fn transport<'a>(ip: &IpPacket<'a>) -> Transport<'a> {
    if ip.fragment_offset > 0 {
        return Transport::Fragment;
    }
    // The payload of further fragments is not part of this packet.
    let ip_payload_len = ip.total_len - ip.header_len;
    match ip.protocol {
        TCP => parse_tcp(ip.payload).map_or(Transport::Other, |header| Transport::Tcp {
            header,
            payload_len: payload_length(ip_payload_len, header.header_len),
        }),
        UDP => parse_udp(ip.payload).map_or(Transport::Other, |header| Transport::Udp {
            header,
            payload_len: match ip.more_fragments {
                MoreFragments::No if has_udp_length(ip.payload) => {
                    payload_length(header.payload_len, 0)
                }
                _ => payload_length(ip_payload_len, 8),
            },
        }),
        ICMP | ICMPV6 => Transport::Icmp(ip.payload),
        _ => Transport::Other,
    }
}

/// Segmentation offload writes 0 into the UDP length of a datagram that is too long for the field.
fn has_udp_length(datagram: &[u8]) -> bool {
    datagram.get(4..6) != Some(&[0, 0])
}

fn payload_length(length: usize, header: usize) -> u32 {
    u32::try_from(length.saturating_sub(header)).unwrap_or(u32::MAX)
}
