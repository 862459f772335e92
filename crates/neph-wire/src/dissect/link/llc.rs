//! LLC and SNAP: IEEE 802.3 frames, which have a length in the place of the ethertype.

use super::IPV4;
use crate::bytes::Reader;
use crate::dissect::NoPacket;

/// Service access points of SNAP and IP, and the control value of unnumbered information.
const SNAP: u8 = 0xaa;
const IP: u8 = 0x06;
const UNNUMBERED: u8 = 0x03;
/// Organisation codes after which an ethertype follows: RFC 1042, and bridges (IEEE 802.1H).
const ETHERTYPES: [[u8; 3]; 2] = [[0, 0, 0], [0, 0, 0xf8]];

/// The ethertype of such a frame, and the bytes after its LLC header.
pub(super) fn llc(mut reader: Reader<'_>) -> Option<Result<(u16, Reader<'_>), NoPacket>> {
    let [to, from, control] = reader.array()?;
    match (to, from, control) {
        (SNAP, SNAP, UNNUMBERED) => {
            let organisation: [u8; 3] = reader.array()?;
            let kind = reader.u16()?;
            let is_known = ETHERTYPES.contains(&organisation);
            Some(is_known.then_some((kind, reader)).ok_or(NoPacket::NotIp))
        }
        (IP, IP, UNNUMBERED) => Some(Ok((IPV4, reader))),
        _ => Some(Err(NoPacket::NotIp)),
    }
}
