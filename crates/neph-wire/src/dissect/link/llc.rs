//! LLC and SNAP: frames of IEEE 802.3, whose header has their length instead of an ethertype.

use super::IPV4;
use crate::bytes::Reader;
use crate::dissect::Nothing;

/// Service access points of SNAP and of IP, and unnumbered information.
const SNAP: u8 = 0xaa;
const IP: u8 = 0x06;
const UNNUMBERED: u8 = 0x03;
/// Organisations whose numbers are ethertypes: RFC 1042, and bridges (IEEE 802.1H).
const ETHERTYPES: [[u8; 3]; 2] = [[0, 0, 0], [0, 0, 0xf8]];

/// The ethertype that a frame has instead, and what is behind its header.
pub(super) fn llc(mut reader: Reader<'_>) -> Option<Result<(u16, Reader<'_>), Nothing>> {
    let [to, from, control] = reader.array()?;
    match (to, from, control) {
        (SNAP, SNAP, UNNUMBERED) => {
            let organisation: [u8; 3] = reader.array()?;
            let kind = reader.u16()?;
            let is_known = ETHERTYPES.contains(&organisation);
            Some(is_known.then_some((kind, reader)).ok_or(Nothing::NotIp))
        }
        (IP, IP, UNNUMBERED) => Some(Ok((IPV4, reader))),
        _ => Some(Err(Nothing::NotIp)),
    }
}
