//! The same packets at two points of capture: a packet is the same whatever hops change of it, and
//! however little of it was kept, or it is not known; what meets was in both captures, once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_capture::{CaptureMatcher, Crossing, Identity};
use neph_wire::dissect::{Link, dissect};
use neph_wire::ip::MoreFragments;

/// One length, then so many bytes.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut packets, mut input) = (Vec::new(), bytes);
    while let Some((&length, remaining)) = input.split_first() {
        let (packet, next) = remaining.split_at(usize::from(length).min(remaining.len()));
        packets.push(packet);
        input = next;
    }
    packets
}

/// What a router does to a packet of IPv4: one hop less.
fn forwarded(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet.len() >= 20 && packet[0] >> 4 == 4 {
        packet[8] = packet[8].wrapping_sub(1);
        packet[10] ^= 0x5a;
    }
    packet
}

fuzz_target!(|bytes: &[u8]| {
    let [cut, missing, input @ ..] = bytes else {
        return;
    };
    let packets = split(input);
    let mut matcher = CaptureMatcher::default();
    let (mut first_packets, mut second_packets, mut is_any_fragment) = (0, 0, false);
    let length = |packet: &[u8]| packet.len() as u32;
    for (index, packet) in (0..).zip(&packets) {
        if let Some(dissected) = dissect(Link::Ip, packet, length(packet)) {
            first_packets += 1;
            is_any_fragment |= dissected.ip.fragment_offset > 0
                || dissected.ip.more_fragments == MoreFragments::Yes;
            matcher.add_first(index * 1_000, &dissected);
        }
    }
    for (index, packet) in (0..).zip(&packets) {
        if index % 8 == i64::from(*missing & 7) {
            continue;
        }
        let forwarded_packet = forwarded(packet);
        let Some(dissected) = dissect(Link::Ip, &forwarded_packet, length(packet)) else {
            continue;
        };
        second_packets += 1;
        matcher.add_second(index * 1_000 - 500_000, &dissected);
        let identity = Identity::from_packet(&dissected);
        if dissected.tunnel.is_none()
            && let Some(before) = dissect(Link::Ip, packet, length(packet))
        {
            assert_eq!(Identity::from_packet(&before), identity);
        }
        let kept = &forwarded_packet[..forwarded_packet.len().saturating_sub(usize::from(*cut))];
        // Cut within a tunnel's header it is the tunnel's packet.
        if let Some(truncated) = dissect(Link::Ip, kept, length(packet))
            && truncated.ip.payload.as_ptr() == dissected.ip.payload.as_ptr()
            && let Some(truncated) = Identity::from_packet(&truncated)
        {
            assert!(identity.is_none_or(|identity| identity == truncated));
        }
    }
    let matched = matcher.end();
    assert_eq!(
        (matched.first.packets, matched.second.packets),
        (first_packets, second_packets)
    );
    assert!(matched.crossings.len() as u64 + matched.one_direction <= second_packets);
    if is_any_fragment {
        // A packet that was whole there too passed here with its last fragment.
        return;
    }
    assert!(matched.crossings.len() as u64 + matched.one_direction <= first_packets);
    // Of a packet that was shown again here the second may be the only one there.
    let is_crossing_of_one_packet =
        |crossing: &Crossing| crossing.first_at == crossing.second_at + 500_000;
    assert!(
        matched.first.capture_duplicates > 0
            || matched.crossings.iter().all(is_crossing_of_one_packet)
    );
});
