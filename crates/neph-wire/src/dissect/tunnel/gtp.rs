//! GTP-U, the user plane of mobile networks (3GPP TS 29.281).

use super::{Carried, Row, Tunnel, TunnelResult};
use crate::bytes::Reader;
use crate::dissect::NoPacket;
use crate::dissect::link::plain;

pub(super) const ROW: Row = Row {
    carried: Carried::Udp(&[2152]),
    read,
};

/// Version 1 of GTP, not GTP' (GTP prime).
const VERSION: u8 = 0x30;
/// Extension header, sequence number, N-PDU number: if one flag is set, all three fields are
/// present.
const OPTIONAL: u8 = 0x07;
const EXTENDED: u8 = 0x04;
/// A G-PDU, which carries a packet; other messages control the tunnel.
const PACKET: u8 = 255;
/// Maximum number of extension headers of a message; no sender writes as many.
const EXTENSIONS_MAX: usize = 8;

fn read(payload: &[u8]) -> TunnelResult<'_> {
    let mut reader = Reader::new(payload);
    let (flags, kind) = (reader.u8()?, reader.u8()?);
    if flags & 0xf0 != VERSION || kind != PACKET {
        return Some(Err(NoPacket::NotIp));
    }
    reader.skip(2)?;
    let endpoint = reader.u32()?;
    if flags & OPTIONAL != 0 {
        reader.skip(3)?;
        let mut next = reader.u8()?;
        if flags & EXTENDED == 0 {
            next = 0;
        }
        for _ in 0..EXTENSIONS_MAX {
            if next == 0 {
                break;
            }
            // In units of four bytes, including the length and the next header's type.
            let Some(content) = (usize::from(reader.u8()?) * 4).checked_sub(2) else {
                return Some(Err(NoPacket::NotIp));
            };
            reader.skip(content)?;
            next = reader.u8()?;
        }
        if next != 0 {
            return Some(Err(NoPacket::NotIp));
        }
    }
    Some(Ok((Tunnel::Gtp(endpoint), plain(reader.remaining()))))
}
