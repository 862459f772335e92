//! Tunnels that carry whole packets, a row each.
//!
//! Owns which packets are looked into for which tunnel. What its header says is its own file's.

mod erspan;
mod geneve;
mod gre;
mod gtp;
mod ip_in_ip;
mod l2tp;
mod vxlan;
mod vxlan_gpe;

use std::fmt;

use super::link::{Behind, Framed, behind, ethernet};
use super::{Nothing, Transport};
use crate::bytes::Reader;
use crate::ip::IpPacket;

/// An Ethernet frame inside of GRE or Geneve.
const BRIDGED: u16 = 0x6558;

/// Which tunnel a packet travelled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tunnel {
    /// With its network identifier.
    Vxlan(u32),
    /// With its network identifier.
    Geneve(u32),
    /// With its key, if it has one; that of PPTP is the receiver's number of the call.
    Gre(Option<u32>),
    /// IP in IP.
    Ip,
    /// With its tunnel endpoint identifier, which is that of the receiver.
    Gtp(u32),
    /// Mirrored packets, with the number of the session; the first version has none.
    Erspan(Option<u16>),
    /// With the numbers of tunnel and session, which are the receiver's: 16 bits each.
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
            Self::L2tp(both) => write!(f, "l2tp {}/{}", both >> 16, both & 0xffff),
        }
    }
}

/// A kind of tunnel.
struct Row {
    carried: Carried,
    /// Reads its header.
    read: for<'a> fn(&'a [u8]) -> Through<'a>,
}

/// In what a tunnel's header stands.
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

/// What a tunnel's packet carries.
pub(super) struct Inside<'a> {
    pub(super) tunnel: Tunnel,
    pub(super) vlan: Option<u16>,
    pub(super) packet: &'a [u8],
}

/// What a tunnel and what is behind its header are; `None` where the bytes end before they tell.
type Through<'a> = Option<Result<(Tunnel, Framed<'a>), Nothing>>;

/// An error if the packet is no tunnel's, or what it carries cannot be made out: then it is what it
/// is.
#[inline]
pub(super) fn look_through<'a>(
    ip: &IpPacket<'a>,
    transport: &Transport<'a>,
) -> Result<Inside<'a>, Nothing> {
    match transport {
        // Nearly all packets.
        Transport::Tcp { .. } => Err(Nothing::NotIp),
        _ => look_into(ip, transport).unwrap_or(Err(Nothing::Cut)),
    }
}

fn look_into<'a>(
    ip: &IpPacket<'a>,
    transport: &Transport<'a>,
) -> Option<Result<Inside<'a>, Nothing>> {
    let found = TUNNELS
        .iter()
        .find_map(|row| match (&row.carried, transport) {
            (Carried::Udp(ports), Transport::Udp { header, .. }) => ports
                .contains(&header.destination)
                .then_some((row, header.payload)),
            (Carried::UdpEitherWay(ports), Transport::Udp { header, .. }) => {
                let is_one = ports.contains(&header.destination) || ports.contains(&header.source);
                is_one.then_some((row, header.payload))
            }
            (Carried::Ip(protocols), Transport::Other) => {
                (protocols.contains(&ip.protocol)).then_some((row, ip.payload))
            }
            _ => None,
        });
    let Some((row, bytes)) = found else {
        return Some(Err(Nothing::NotIp));
    };
    let (tunnel, framed) = match (row.read)(bytes)? {
        Ok(through) => through,
        Err(nothing) => return Some(Err(nothing)),
    };
    let is_ip = matches!(framed.packet.first()? >> 4, 4 | 6);
    let inside = is_ip.then_some(Inside {
        tunnel,
        vlan: framed.vlan,
        packet: framed.packet,
    });
    Some(inside.ok_or(Nothing::NotIp))
}

fn within(tunnel: Tunnel, behind: Behind<'_>) -> Through<'_> {
    Some(behind?.map(|framed| (tunnel, framed)))
}

/// What follows a number of what is carried, which is an ethertype.
fn inner(kind: u16, reader: Reader<'_>) -> Behind<'_> {
    if kind == BRIDGED {
        return ethernet(reader.rest());
    }
    behind(kind, reader)
}
