//! Tunnels that carry whole packets, one row each.
//!
//! Owns which packets are read as which tunnel. Each tunnel's header has its own file.

mod erspan;
mod geneve;
mod gre;
mod gtp;
mod ip_in_ip;
mod l2tp;
mod vxlan;
mod vxlan_gpe;

use std::fmt;

use super::link::{Framed, Unwrapped, after_ethertype, ethernet};
use super::{NoPacket, Transport};
use crate::bytes::Reader;
use crate::ip::IpPacket;

/// The protocol type of an Ethernet frame in GRE and Geneve.
const BRIDGED: u16 = 0x6558;

/// The tunnel of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tunnel {
    /// With its network identifier.
    Vxlan(u32),
    /// With its network identifier.
    Geneve(u32),
    /// With its key, if it has one; with PPTP the receiver's call ID.
    Gre(Option<u32>),
    /// IP in IP.
    Ip,
    /// With its tunnel endpoint identifier, chosen by the receiver.
    Gtp(u32),
    /// Mirrored packets, with the session ID; version 1 has none.
    Erspan(Option<u16>),
    /// With tunnel ID and session ID, 16 bits each, chosen by the receiver.
    L2tp(u32),
}

/// `vxlan 42`.
impl fmt::Display for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vxlan(network) => write!(f, "vxlan {network}"),
            Self::Geneve(network) => write!(f, "geneve {network}"),
            Self::Gre(Some(key)) => write!(f, "gre {key}"),
            Self::Gre(None) => write!(f, "gre"),
            Self::Ip => write!(f, "ip in ip"),
            Self::Gtp(endpoint) => write!(f, "gtp {endpoint:#x}"),
            Self::Erspan(Some(session)) => write!(f, "erspan {session}"),
            Self::Erspan(None) => write!(f, "erspan"),
            Self::L2tp(ids) => write!(f, "l2tp {}/{}", ids >> 16, ids & 0xffff),
        }
    }
}

/// A kind of tunnel.
struct Row {
    carried: Carried,
    /// Reads the tunnel header.
    read: for<'a> fn(&'a [u8]) -> TunnelResult<'a>,
}

/// The carrier of a tunnel header.
enum Carried {
    /// UDP to one of these ports.
    Udp(&'static [u16]),
    /// UDP to or from one of these ports.
    UdpEitherWay(&'static [u16]),
    /// IP with one of these protocol numbers.
    Ip(&'static [u8]),
}

/// All kinds.
const TUNNELS: [Row; 7] = [
    vxlan::ROW,
    geneve::ROW,
    gtp::ROW,
    l2tp::ROW,
    vxlan_gpe::ROW,
    ip_in_ip::ROW,
    gre::ROW,
];

/// The contents of a tunnel packet.
pub(super) struct Inside<'a> {
    pub(super) tunnel: Tunnel,
    pub(super) vlan: Option<u16>,
    pub(super) packet: &'a [u8],
}

/// A tunnel and its payload; `None` where the bytes end within a header.
type TunnelResult<'a> = Option<Result<(Tunnel, Framed<'a>), NoPacket>>;

/// Reads the payload of a tunnel. An error if the packet is no tunnel packet, or its payload cannot
/// be read: the caller then keeps the outer packet.
#[inline]
pub(super) fn unwrap_tunnel<'a>(
    ip: &IpPacket<'a>,
    transport: &Transport<'a>,
) -> Result<Inside<'a>, NoPacket> {
    match transport {
        // The fast path: nearly all packets.
        Transport::Tcp { .. } => Err(NoPacket::NotIp),
        _ => read_tunnel(ip, transport).unwrap_or(Err(NoPacket::Cut)),
    }
}

fn read_tunnel<'a>(
    ip: &IpPacket<'a>,
    transport: &Transport<'a>,
) -> Option<Result<Inside<'a>, NoPacket>> {
    let tunnelled = TUNNELS
        .iter()
        .find_map(|row| match (&row.carried, transport) {
            (Carried::Udp(ports), Transport::Udp { header, .. }) => ports
                .contains(&header.destination)
                .then_some((row, header.payload)),
            (Carried::UdpEitherWay(ports), Transport::Udp { header, .. }) => {
                let has_tunnel_port =
                    ports.contains(&header.destination) || ports.contains(&header.source);
                has_tunnel_port.then_some((row, header.payload))
            }
            (Carried::Ip(protocols), Transport::Other) => {
                (protocols.contains(&ip.protocol)).then_some((row, ip.payload))
            }
            _ => None,
        });
    let Some((row, bytes)) = tunnelled else {
        return Some(Err(NoPacket::NotIp));
    };
    let (tunnel, framed) = match (row.read)(bytes)? {
        Ok(tunnel_and_payload) => tunnel_and_payload,
        Err(reason) => return Some(Err(reason)),
    };
    let is_ip = matches!(framed.packet.first()? >> 4, 4 | 6);
    let inside = is_ip.then_some(Inside {
        tunnel,
        vlan: framed.vlan,
        packet: framed.packet,
    });
    Some(inside.ok_or(NoPacket::NotIp))
}

fn within(tunnel: Tunnel, payload: Unwrapped<'_>) -> TunnelResult<'_> {
    Some(payload?.map(|framed| (tunnel, framed)))
}

/// Reads a payload of this protocol type, which is an ethertype.
fn inner(kind: u16, reader: Reader<'_>) -> Unwrapped<'_> {
    if kind == BRIDGED {
        return ethernet(reader.remaining());
    }
    after_ethertype(kind, reader)
}
