//! L2TP version 2 (RFC 2661) with PPP. The header of version 3 does not identify its payload.

use super::{Carried, Row, Tunnel, TunnelResult, within};
use crate::bytes::Reader;
use crate::dissect::NoPacket;
use crate::dissect::link::ppp;

pub(super) const ROW: Row = Row {
    // A reply goes to the source port of the first message (RFC 2661, 8.1).
    carried: Carried::UdpEitherWay(&[1701]),
    read,
};

/// A control message of the tunnel.
const CONTROL: u16 = 0x8000;
const LENGTH: u16 = 0x4000;
const SEQUENCE: u16 = 0x0800;
const OFFSET: u16 = 0x0200;
const VERSION: u16 = 0x000f;
/// Bits that are 0 in every message.
const RESERVED: u16 = 0x34f0;

fn read(payload: &[u8]) -> TunnelResult<'_> {
    let mut reader = Reader::new(payload);
    let flags = reader.u16()?;
    if flags & (CONTROL | RESERVED) != 0 || flags & VERSION != 2 {
        return Some(Err(NoPacket::NotIp));
    }
    if flags & LENGTH != 0 {
        reader.skip(2)?;
    }
    let tunnel_and_session = reader.u32()?;
    if flags & SEQUENCE != 0 {
        reader.skip(4)?;
    }
    if flags & OFFSET != 0 {
        let offset = reader.u16()?;
        reader.skip(offset.into())?;
    }
    within(Tunnel::L2tp(tunnel_and_session), ppp(reader))
}
