//! VXLAN-GPE, which has a next protocol field (draft-ietf-nvo3-vxlan-gpe).

use super::{Carried, Row, Tunnel, TunnelResult, within};
use crate::bytes::Reader;
use crate::dissect::NoPacket;
use crate::dissect::link::{ethernet, plain};

pub(super) const ROW: Row = Row {
    carried: Carried::Udp(&[4790]),
    read,
};

/// Version 0 with the flags I (VNI valid) and P (next protocol valid). Other protocols may use the
/// port: packets with any other bit set are not VXLAN-GPE.
const SAYS: u32 = 0x0c00_0000;
/// Flag I without P: an Ethernet frame, as in VXLAN.
const SAYS_NOTHING: u32 = 0x0800_0000;
/// Next protocols.
const IPV4: u32 = 1;
const IPV6: u32 = 2;
const ETHERNET: u32 = 3;

fn read(payload: &[u8]) -> TunnelResult<'_> {
    let mut reader = Reader::new(payload);
    let (first, second) = (reader.u32()?, reader.u32()?);
    let tunnel = Tunnel::Vxlan(second >> 8);
    let [.., reserved] = second.to_be_bytes();
    let next = match first.checked_sub(SAYS) {
        Some(next) if reserved == 0 => next,
        None if first == SAYS_NOTHING => ETHERNET,
        _ => return Some(Err(NoPacket::NotIp)),
    };
    match next {
        IPV4 | IPV6 => Some(Ok((tunnel, plain(reader.remaining())))),
        ETHERNET => within(tunnel, ethernet(reader.remaining())),
        _ => Some(Err(NoPacket::NotIp)),
    }
}
