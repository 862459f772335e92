//! ERSPAN: mirrored packets over GRE (draft-foschiano-erspan-03).

use super::{Tunnel, TunnelResult, within};
use crate::bytes::Reader;
use crate::dissect::NoPacket;
use crate::dissect::link::{ethernet, plain};

/// GRE protocol types of versions 1 and 2, and of version 3.
pub(super) const SECOND: u16 = 0x88be;
pub(super) const THIRD: u16 = 0x22eb;

/// Version 2 if GRE has a sequence number, else version 1, which has no header.
pub(super) fn second(mut reader: Reader<'_>, is_numbered: bool) -> TunnelResult<'_> {
    if !is_numbered {
        return within(Tunnel::Erspan(None), ethernet(reader.remaining()));
    }
    let session = session(&mut reader)?;
    reader.skip(4)?;
    within(Tunnel::Erspan(Some(session)), ethernet(reader.remaining()))
}

/// Version 3, whose frames are Ethernet or IP.
pub(super) fn third(mut reader: Reader<'_>) -> TunnelResult<'_> {
    let session = session(&mut reader)?;
    reader.skip(6)?;
    let flags = reader.u16()?;
    if flags & 1 != 0 {
        // The platform-specific subheader.
        reader.skip(8)?;
    }
    let tunnel = Tunnel::Erspan(Some(session));
    match flags >> 10 & 0x1f {
        0 => within(tunnel, ethernet(reader.remaining())),
        2 => within(tunnel, Some(Ok(plain(reader.remaining())))),
        _ => Some(Err(NoPacket::NotIp)),
    }
}

/// Reads the first four bytes: the session ID.
fn session(reader: &mut Reader<'_>) -> Option<u16> {
    reader.skip(2)?;
    Some(reader.u16()? & 0x03ff)
}
