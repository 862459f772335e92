//! VXLAN (RFC 7348).

use super::{Carried, Row, Tunnel, TunnelResult, within};
use crate::bytes::Reader;
use crate::dissect::NoPacket;
use crate::dissect::link::ethernet;

/// The assigned port, and the default port of Linux.
pub(super) const ROW: Row = Row {
    carried: Carried::Udp(&[4789, 8472]),
    read,
};

fn read(payload: &[u8]) -> TunnelResult<'_> {
    let mut reader = Reader::new(payload);
    // The I flag: the VNI is valid. Other flags may be set.
    if reader.u32()? & 0x0800_0000 == 0 {
        return Some(Err(NoPacket::NotIp));
    }
    let vni = reader.u32()? >> 8;
    within(Tunnel::Vxlan(vni), ethernet(reader.remaining()))
}
