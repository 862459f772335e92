//! GRE (RFC 2784, 2890) and enhanced GRE of PPTP (RFC 2637).

use super::{Carried, Row, Tunnel, TunnelResult, erspan, inner, within};
use crate::bytes::Reader;
use crate::dissect::NoPacket;
use crate::dissect::link::ppp;

pub(super) const ROW: Row = Row {
    carried: Carried::Ip(&[47]),
    read,
};

const CHECKSUM: u16 = 0x8000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
/// Only in version 1.
const ACKNOWLEDGEMENT: u16 = 0x0080;
const VERSION: u16 = 7;
/// The protocol type of version 1.
const PPP: u16 = 0x880b;

fn read(payload: &[u8]) -> TunnelResult<'_> {
    let mut reader = Reader::new(payload);
    let flags = reader.u16()?;
    let kind = reader.u16()?;
    let has = |flag| flags & flag != 0;
    let (is_first, is_second) = (flags & VERSION == 0, flags & VERSION == 1);
    let is_read = is_first || is_second && kind == PPP;
    if !is_read {
        return Some(Err(NoPacket::NotIp));
    }
    if is_first && has(CHECKSUM) {
        reader.skip(4)?;
    }
    let mut key = None;
    if has(KEY) {
        // PPTP has the payload length in the upper half, the call ID in the lower.
        let word = reader.u32()?;
        key = Some(if is_second { word & 0xffff } else { word });
    }
    if has(SEQUENCE) {
        reader.skip(4)?;
    }
    if is_second && has(ACKNOWLEDGEMENT) {
        reader.skip(4)?;
    }
    match kind {
        erspan::SECOND => erspan::second(reader, has(SEQUENCE)),
        erspan::THIRD => erspan::third(reader),
        PPP => within(Tunnel::Gre(key), ppp(reader)),
        _ => within(Tunnel::Gre(key), inner(kind, reader)),
    }
}
