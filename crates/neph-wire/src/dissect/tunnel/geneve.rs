//! Geneve (RFC 8926).

use super::{Carried, Row, Tunnel, TunnelResult, inner, within};
use crate::bytes::Reader;

pub(super) const ROW: Row = Row {
    carried: Carried::Udp(&[6081]),
    read,
};

fn read(payload: &[u8]) -> TunnelResult<'_> {
    let mut reader = Reader::new(payload);
    let first = reader.u16()?;
    let kind = reader.u16()?;
    let vni = reader.u32()? >> 8;
    reader.skip(usize::from(first >> 8 & 0x3f) * 4)?;
    within(Tunnel::Geneve(vni), inner(kind, reader))
}
