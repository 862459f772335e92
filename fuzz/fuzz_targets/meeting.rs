//! The same packets at two points of capture: a packet is the same whatever hops change of it, and
//! however little of it was kept, or it is not known; what meets was in both captures, once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_capture::{Crossing, Identity, CaptureMatcher};
use neph_wire::dissect::{Link, dissect};
use neph_wire::ip::MoreFragments;

/// One length, then so many bytes.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut packets, mut rest) = (Vec::new(), bytes);
    while let Some((&length, behind)) = rest.split_first() {
        let (packet, next) = behind.split_at(usize::from(length).min(behind.len()));
        packets.push(packet);
        rest = next;
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
    let [cut, missing, rest @ ..] = bytes else { return };
    let packets = split(rest);
    let mut meeting = CaptureMatcher::default();
    let (mut here, mut there, mut is_any_fragment) = (0, 0, false);
    let length = |packet: &[u8]| packet.len() as u32;
    for (at, packet) in (0..).zip(&packets) {
        if let Some(seen) = dissect(Link::Ip, packet, length(packet)) {
            here += 1;
            is_any_fragment |= seen.ip.fragment_offset > 0 || seen.ip.more_fragments == MoreFragments::Yes;
            meeting.add_first(at * 1_000, &seen);
        }
    }
    for (at, packet) in (0..).zip(&packets) {
        if at % 8 == i64::from(*missing & 7) {
            continue;
        }
        let later = forwarded(packet);
        let Some(seen) = dissect(Link::Ip, &later, length(packet)) else { continue };
        there += 1;
        meeting.add_second(at * 1_000 - 500_000, &seen);
        let known = Identity::from_packet(&seen);
        if seen.tunnel.is_none() && let Some(before) = dissect(Link::Ip, packet, length(packet)) {
            assert_eq!(Identity::from_packet(&before), known);
        }
        let kept = &later[..later.len().saturating_sub(usize::from(*cut))];
        // Cut within a tunnel's header it is the tunnel's packet.
        if let Some(part) = dissect(Link::Ip, kept, length(packet))
            && part.ip.payload.as_ptr() == seen.ip.payload.as_ptr()
            && let Some(part) = Identity::from_packet(&part)
        {
            assert!(known.is_none_or(|known| known == part));
        }
    }
    let met = meeting.end();
    assert_eq!((met.first.packets, met.second.packets), (here, there));
    assert!(met.crossings.len() as u64 + met.one_direction <= there);
    if is_any_fragment {
        // A packet that was whole there too passed here with its last fragment.
        return;
    }
    assert!(met.crossings.len() as u64 + met.one_direction <= here);
    // Of a packet that was shown again here the second may be the only one there.
    let is_same = |one: &Crossing| one.first_at == one.second_at + 500_000;
    assert!(met.first.capture_duplicates > 0 || met.crossings.iter().all(is_same));
});
