//! Tunnels that carry whole packets: VXLAN (RFC 7348), Geneve (RFC 8926), GRE (RFC 2784, 2890)
//! and IP in IP (RFC 2003, 4213).

use super::link::{Behind, Framed, behind, ethernet, plain};
use super::{Nothing, Transport};
use crate::bytes::Reader;
use crate::ip::IpPacket;

/// VXLAN's own port, and the one that Linux takes unless it is told otherwise.
const VXLAN: [u16; 2] = [4789, 8472];
const GENEVE: u16 = 6081;
/// Protocol numbers of IP in IP and of GRE.
const IP_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
/// An Ethernet frame inside of GRE or Geneve.
const BRIDGED: u16 = 0x6558;

/// Which tunnel a packet travelled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tunnel {
    /// With its network identifier.
    Vxlan(u32),
    /// With its network identifier.
    Geneve(u32),
    /// With its key, if it has one.
    Gre(Option<u32>),
    /// IP in IP.
    Ip,
}

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
    let through = match *transport {
        Transport::Udp { header, .. } if VXLAN.contains(&header.destination) => {
            vxlan(header.payload)?
        }
        Transport::Udp { header, .. } if header.destination == GENEVE => geneve(header.payload)?,
        Transport::Other => match ip.protocol {
            IP_IN_IP | IPV6_IN_IP => Ok((Tunnel::Ip, plain(ip.payload))),
            GRE => gre(ip.payload)?,
            _ => Err(Nothing::NotIp),
        },
        _ => Err(Nothing::NotIp),
    };
    let (tunnel, framed) = match through {
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

fn vxlan(payload: &[u8]) -> Through<'_> {
    let mut reader = Reader::new(payload);
    // The flag that says that the identifier holds; others may be set.
    if reader.u32()? & 0x0800_0000 == 0 {
        return Some(Err(Nothing::NotIp));
    }
    let vni = reader.u32()? >> 8;
    within(Tunnel::Vxlan(vni), ethernet(reader.rest()))
}

fn geneve(payload: &[u8]) -> Through<'_> {
    let mut reader = Reader::new(payload);
    let first = reader.u16()?;
    let kind = reader.u16()?;
    let vni = reader.u32()? >> 8;
    reader.skip(usize::from(first >> 8 & 0x3f) * 4)?;
    within(Tunnel::Geneve(vni), inner(kind, reader))
}

fn gre(payload: &[u8]) -> Through<'_> {
    let mut reader = Reader::new(payload);
    let flags = reader.u16()?;
    let kind = reader.u16()?;
    // Version 1 is PPTP's.
    if flags & 7 != 0 {
        return Some(Err(Nothing::NotIp));
    }
    if flags & 0x8000 != 0 {
        reader.skip(4)?;
    }
    let key = if flags & 0x2000 != 0 {
        Some(reader.u32()?)
    } else {
        None
    };
    if flags & 0x1000 != 0 {
        reader.skip(4)?;
    }
    within(Tunnel::Gre(key), inner(kind, reader))
}

fn within(tunnel: Tunnel, behind: Behind<'_>) -> Through<'_> {
    Some(behind?.map(|framed| (tunnel, framed)))
}

fn inner(kind: u16, reader: Reader<'_>) -> Behind<'_> {
    if kind == BRIDGED {
        return ethernet(reader.rest());
    }
    behind(kind, reader)
}
