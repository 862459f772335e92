//! MPLS labels (RFC 3032).

use super::{TAGS_MAX, Unwrapped, plain};
use crate::bytes::Reader;
use crate::dissect::NoPacket;

/// The bottom-of-stack bit.
const BOTTOM: u32 = 0x100;

/// Labels do not identify their payload; IP is recognised by its first four bits.
pub(super) fn mpls_payload(mut reader: Reader<'_>) -> Unwrapped<'_> {
    for _ in 0..TAGS_MAX {
        if reader.u32()? & BOTTOM != 0 {
            let packet = reader.remaining();
            let is_ip = matches!(packet.first()? >> 4, 4 | 6);
            return Some(is_ip.then(|| plain(packet)).ok_or(NoPacket::NotIp));
        }
    }
    Some(Err(NoPacket::NotIp))
}
