//! Writing pcap, in nanoseconds: a header, then one before each packet.
//!
//! Owns the bytes around packets. Does not own files.

/// `LINKTYPE_ETHERNET` and `LINKTYPE_RAW` of the pcap registry.
pub const ETHERNET: u32 = 1;
/// IP packets without a link header.
pub const RAW_IP: u32 = 101;

/// The header of a file whose packets begin as `link` says, and have at most `kept` bytes.
pub fn pcap_header(link: u32, kept: u32) -> [u8; 24] {
    let mut header = [0; 24];
    let fields = [super::pcap::NANOS, 0x0004_0002, 0, 0, kept, link];
    for (into, field) in header.chunks_exact_mut(4).zip(fields) {
        into.copy_from_slice(&field.to_le_bytes());
    }
    header
}

/// What stands before a packet of which `kept` bytes are there and that had `length`. `at` is in
/// nanoseconds since 1970; what is before that or after 2106 is told as the nearest that pcap knows.
pub fn pcap_record(at: i64, kept: u32, length: u32) -> [u8; 16] {
    const NANOS_IN_SECOND: i64 = 1_000_000_000;
    let at = at.clamp(0, i64::from(u32::MAX) * NANOS_IN_SECOND);
    let within = |number| u32::try_from(number).unwrap_or(0);
    let fields = [
        within(at / NANOS_IN_SECOND),
        within(at % NANOS_IN_SECOND),
        kept,
        length,
    ];
    let mut record = [0; 16];
    for (into, field) in record.chunks_exact_mut(4).zip(fields) {
        into.copy_from_slice(&field.to_le_bytes());
    }
    record
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capture::{CaptureReader, Step};
    use crate::dissect::Link;

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            at in 0..i64::from(u32::MAX) * 1_000_000_000,
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            more in 0_u32..2000,
        ) {
            let kept = u32::try_from(bytes.len()).expect("small");
            let mut reader = CaptureReader::new();
            let header = pcap_header(ETHERNET, 256);
            let step = reader.step(&header).expect("a header");
            prop_assert_eq!(step, Step::Skip(header.len()));
            let record = [&pcap_record(at, kept, kept + more)[..], &bytes].concat();
            let Step::Packet(packet, used) = reader.step(&record).expect("a packet") else {
                return Err(TestCaseError::fail("no packet"));
            };
            prop_assert_eq!(used, record.len());
            prop_assert_eq!((packet.at, packet.link), (Some(at), Link::Ethernet));
            prop_assert_eq!((packet.bytes, packet.length), (&bytes[..], kept + more));
        }
    }
}
