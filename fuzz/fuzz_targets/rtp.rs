//! RTP packets and reports of RTCP: what is read is written as the same bytes but for its padding, and numbers that wrap are
//! extended to ones that end in the same bits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::rtcp::ReceiverReport;
use neph_wire::rtp::{Packet, SequenceExtender, TimestampExtender};

fuzz_target!(|bytes: &[u8]| {
    let mut sequence_numbers = SequenceExtender::default();
    let mut timestamps = TimestampExtender::default();
    if let Some(report) = ReceiverReport::decode(bytes) {
        let mut encoded = Vec::new();
        report.encode(&mut encoded);
        assert_eq!(
            ReceiverReport::decode(&encoded).map(|report| report.lost),
            Some(report.lost.max(-(1 << 23) + 1))
        );
        assert_eq!(encoded[4..12], bytes[4..12]);
    }
    for chunk in bytes.chunks(48).chain([bytes]) {
        let Ok(packet) = Packet::decode(chunk) else {
            continue;
        };
        let header = packet.header;
        assert_eq!(
            sequence_numbers.extend(header.sequence).rem_euclid(1 << 16),
            i64::from(header.sequence)
        );
        assert_eq!(
            timestamps.extend(header.timestamp).rem_euclid(1 << 32),
            i64::from(header.timestamp)
        );
        for id in 0..=16 {
            if let Some(offset) = packet.transmission_offset(id) {
                assert!((-(1 << 23)..1 << 23).contains(&offset));
            }
        }
        let mut encoded = Vec::new();
        packet.encode(&mut encoded);
        assert_eq!(Packet::decode(&encoded), Ok(packet));
        // The bit of padding is cleared, and the padding left out.
        assert_eq!(encoded[0], chunk[0] & !0x20);
        assert_eq!(encoded[1..], chunk[1..encoded.len()]);
    }
});
