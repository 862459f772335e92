//! VXLAN that says what it carries (draft-ietf-nvo3-vxlan-gpe).

use super::{Carried, Row, Through, Tunnel, within};
use crate::bytes::Reader;
use crate::dissect::Nothing;
use crate::dissect::link::{ethernet, plain};

pub(super) const ROW: Row = Row {
    carried: Carried::Udp(&[4790]),
    read,
};

/// What it carries.
const IPV4: u32 = 1;
const IPV6: u32 = 2;
const ETHERNET: u32 = 3;

fn read(payload: &[u8]) -> Through<'_> {
    let mut reader = Reader::new(payload);
    let next = reader.u32()? & 0xff;
    let tunnel = Tunnel::Vxlan(reader.u32()? >> 8);
    match next {
        IPV4 | IPV6 => Some(Ok((tunnel, plain(reader.rest())))),
        ETHERNET => within(tunnel, ethernet(reader.rest())),
        _ => Some(Err(Nothing::NotIp)),
    }
}
