//! From a captured packet to its innermost IP packet and transport header.
//!
//! Owns looking through VLAN tags, MPLS labels, LLC, PPP and tunnels (VXLAN, Geneve, GRE, ERSPAN, GTP-U, L2TP, IP
//! in IP), and how long a payload was on the wire, of which a capture may have kept less. Does not own connections
//! (see neph-capture), reassembly or checksums.

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

/// More layers of tunnels than anybody builds.
const DEPTH_MAX: usize = 4;

/// What a packet is, behind all tunnels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dissected<'a> {
    /// The number of the outermost VLAN, if the packet has one.
    pub vlan: Option<u16>,
    /// The innermost tunnel that was looked through.
    pub tunnel: Option<Tunnel>,
    /// The innermost IP packet.
    pub ip: IpPacket<'a>,
    /// What it carries.
    pub transport: Transport<'a>,
}

/// What an IP packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport<'a> {
    /// A TCP segment.
    Tcp {
        /// Its header; options and payload as far as they were kept.
        header: TcpHeader<'a>,
        /// Bytes of payload that it had on the wire.
        payload_len: u32,
    },
    /// A UDP datagram.
    Udp {
        /// Its header; the payload as far as it was kept.
        header: UdpHeader<'a>,
        /// Bytes of payload that it had on the wire.
        payload_len: u32,
    },
    /// ICMP of either version, from its type on.
    Icmp(&'a [u8]),
    /// Part of a packet other than its first: it has no header of its own.
    Fragment,
    /// Another protocol, or a header that was cut off or contradicts itself.
    Other,
}

/// Why no IP packet is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// What was kept of it ends within a header that leads to the innermost packet's payload.
    Cut,
    /// It is something else, or contradicts itself.
    NotIp,
}

impl From<IpError> for Nothing {
    fn from(error: IpError) -> Self {
        match error {
            IpError::Short(_) => Self::Cut,
            _ => Self::NotIp,
        }
    }
}

/// Looks into a packet that had `length` bytes on the wire. `None` if there is no IP packet in it, or
/// its headers were cut off: [`why_not`] tells which.
#[inline]
pub fn dissect(link: Link, bytes: &[u8], length: u32) -> Option<Dissected<'_>> {
    look(link, bytes, length).ok()
}

/// Why [`dissect`] sees nothing in a packet.
#[cold]
pub fn why_not(link: Link, bytes: &[u8], length: u32) -> Nothing {
    let is_whole = bytes.len() >= length as usize;
    match look(link, bytes, length) {
        Err(Nothing::Cut) if !is_whole => Nothing::Cut,
        _ => Nothing::NotIp,
    }
}

#[inline]
fn look(link: Link, bytes: &[u8], length: u32) -> Result<Dissected<'_>, Nothing> {
    let framed = link.strip(bytes)?;
    let wire = length as usize;
    let mut vlan = framed.vlan;
    let mut tunnel = None;
    let mut packet = framed.packet;
    for _ in 0..=DEPTH_MAX {
        let before = offset(bytes, packet);
        let mut ip = parse_ip(packet)?;
        lengthen(&mut ip, packet, wire.saturating_sub(before));
        let transport = transport(&ip);
        let inside = match tunnel::look_through(&ip, &transport) {
            Ok(inside) => inside,
            // Of what the tunnel carries nobody can tell, and it is not the tunnel's.
            Err(Nothing::Cut) if bytes.len() < wire => return Err(Nothing::Cut),
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
    Err(Nothing::NotIp)
}

impl<'a> Dissected<'a> {
    /// What an IP packet carries, in no tunnel and no VLAN, and looked through none.
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

/// How far into `bytes` its part `packet` begins.
fn offset(bytes: &[u8], packet: &[u8]) -> usize {
    packet.as_ptr().addr() - bytes.as_ptr().addr()
}

/// Segmentation offload hands up packets beyond 64 KiB whose header says 0: the capture knows how
/// long they were.
fn lengthen(ip: &mut IpPacket<'_>, packet: &[u8], wire: usize) {
    let printed = match ip.source {
        std::net::IpAddr::V4(_) => packet.get(2..4),
        std::net::IpAddr::V6(_) => packet.get(4..6),
    };
    if printed == Some(&[0, 0]) {
        ip.total_len = wire.max(ip.total_len);
    }
}

#[inline]
fn transport<'a>(ip: &IpPacket<'a>) -> Transport<'a> {
    if ip.fragment_offset > 0 {
        return Transport::Fragment;
    }
    // What further fragments carry is not this packet's.
    let carried = ip.total_len - ip.header_len;
    match ip.protocol {
        TCP => parse_tcp(ip.payload).map_or(Transport::Other, |header| Transport::Tcp {
            header,
            payload_len: shorter(carried, header.header_len),
        }),
        UDP => parse_udp(ip.payload).map_or(Transport::Other, |header| Transport::Udp {
            header,
            payload_len: match ip.more_fragments {
                MoreFragments::No if says_how_long(ip.payload) => shorter(header.payload_len, 0),
                _ => shorter(carried, 8),
            },
        }),
        ICMP | ICMPV6 => Transport::Icmp(ip.payload),
        _ => Transport::Other,
    }
}

/// Segmentation offload writes 0 into a UDP header whose datagram is longer than it can tell.
fn says_how_long(datagram: &[u8]) -> bool {
    datagram.get(4..6) != Some(&[0, 0])
}

fn shorter(length: usize, header: usize) -> u32 {
    u32::try_from(length.saturating_sub(header)).unwrap_or(u32::MAX)
}
