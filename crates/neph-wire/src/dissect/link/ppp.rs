//! PPP (RFC 1661, 1662) and PPP over Ethernet (RFC 2516).

use super::{Unwrapped, labels, plain};
use crate::bytes::Reader;
use crate::dissect::NoPacket;

/// Protocol numbers of PPP.
const IPV4: u16 = 0x0021;
const IPV6: u16 = 0x0057;
const MPLS: u16 = 0x0281;

/// A frame with or without address and control bytes, and with a protocol of one or two bytes.
pub(in crate::dissect) fn ppp(mut reader: Reader<'_>) -> Unwrapped<'_> {
    let mut protocol = u16::from(reader.u8()?);
    if protocol == 0xff {
        reader.skip(1)?;
        protocol = u16::from(reader.u8()?);
    }
    // Protocol numbers are odd: an even byte is the first of two.
    if protocol & 1 == 0 {
        protocol = protocol << 8 | u16::from(reader.u8()?);
    }
    match protocol {
        IPV4 | IPV6 => Some(Ok(plain(reader.remaining()))),
        MPLS => labels::mpls_payload(reader),
        _ => Some(Err(NoPacket::NotIp)),
    }
}

/// A PPP over Ethernet session, from its version field on.
pub(super) fn over_ethernet(mut reader: Reader<'_>) -> Unwrapped<'_> {
    reader.skip(6)?;
    ppp(reader)
}
