//! Packets of a few hosts at two to eight points of capture, of which each saw any of them, by clocks
//! that stand anywhere: each stamp is reported once or left out, what is reported was seen, answers are of
//! the other way, and what all of it takes of memory is bounded by the bytes of the captures.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_capture::{Direction, Followed, Hops};
use neph_wire::dissect::{Link, dissect};

#[path = "../checks/peak_memory.rs"]
mod peak_memory;

/// Bytes of input that make a packet.
const PACKET_INPUT_BYTES: usize = 8;
/// Bytes that a capture has before each packet.
const RECORD_HEADER_BYTES: usize = 16;
/// Bytes of memory for a byte of capture.
const MEMORY_PER_CAPTURE_BYTE: usize = 64;
/// What is there whatever comes: tables of a few entries.
const BASE_MEMORY: usize = 16 << 10;
/// A rule of a translator that meets some of the hosts, one that meets all, and one that meets none.
const NAT_RULES: [&str; 4] = [
    "10.0.0.1=10.0.0.3",
    "10.0.0.2:443=10.0.0.3:53",
    "0.0.0.0/0=10.0.0.0/0",
    "fd00::/64=fd01::/64",
];

struct Packet {
    /// A bit for each point that saw it.
    points: u8,
    time_byte: u8,
    bytes: Vec<u8>,
    /// Bytes on the wire.
    length: u32,
}

/// A packet of raw IP, of which no more is kept than makes it known again; sometimes less.
fn packet(bytes: &[u8; PACKET_INPUT_BYTES]) -> Packet {
    let [points, kind, hosts, ip_id, seq, ack, length, time_byte] = *bytes;
    let (from, to) = (hosts & 3, hosts >> 2 & 3);
    let (is_ipv6, is_large, has_stamps) = (kind & 4 != 0, kind & 8 != 0, kind & 16 != 0);
    let payload = usize::from(length) * if is_large { 180 } else { 1 };
    // Around the end of the numbers, in steps that make segments meet.
    let sequence_number =
        |step: u8| 0xffff_fff0_u32.wrapping_add(u32::from(step) * if is_large { 180 } else { 1 });
    let ports = [u16::from(from) + 440, u16::from(to) + 440]
        .map(u16::to_be_bytes)
        .concat();
    let (protocol, mut ip_payload) = match (kind & 3, is_ipv6) {
        (0, is_ipv6) => {
            let echo = [[8, 0], [128, 129]][usize::from(is_ipv6)][usize::from(hosts >> 4 & 1)];
            (
                if is_ipv6 { 58 } else { 1 },
                vec![echo, 0, 0, 0, 0, ack & 1, 0, seq],
            )
        }
        (1, _) => {
            let total = (8 + payload).min(usize::from(u16::MAX)) as u16;
            (
                17,
                [ports, total.to_be_bytes().to_vec(), vec![0, 0]].concat(),
            )
        }
        (_, _) => {
            let (flags, words) = (
                kind >> 5 & 3 | if kind & 128 == 0 { 16 } else { 0 },
                if has_stamps { 8 } else { 5 },
            );
            let mut header = [
                ports,
                sequence_number(seq).to_be_bytes().to_vec(),
                sequence_number(ack).to_be_bytes().to_vec(),
            ]
            .concat();
            header.extend([words << 4, flags, 1, 0, 0, 0, 0, 0]);
            if has_stamps {
                header.extend([1, 1, 8, 10, 0, 0, 0, hosts >> 6, 0, 0, 0, 1]);
            }
            (6, header)
        }
    };
    let payload_length = ip_payload.len() + payload;
    ip_payload.resize(ip_payload.len() + payload.min(16), seq);
    let mut packet = if is_ipv6 {
        let mut packet = [
            &[0x60, 0, 0, 0][..],
            &(payload_length as u16).to_be_bytes(),
            &[protocol, 64],
        ]
        .concat();
        for host in [from, to] {
            packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        packet
    } else {
        let mut packet = [
            &[0x45, 0][..],
            &(20 + payload_length as u16).to_be_bytes(),
            &[ip_id >> 4, ip_id],
        ]
        .concat();
        packet.extend([0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        packet
    };
    let length = (packet.len() + payload_length) as u32;
    packet.extend(ip_payload);
    if hosts & 32 != 0 {
        packet.truncate(packet.len().saturating_sub(usize::from(ip_id & 31)));
    }
    Packet {
        points,
        time_byte,
        bytes: packet,
        length,
    }
}

/// When a packet passed a point: mostly a little later than the one before, sometimes when nothing passes.
fn stamp(now: &mut i64, time_byte: u8, point: usize) -> i64 {
    let delay = i64::from(time_byte >> 3 & 7) * point as i64;
    match time_byte & 0xc7 {
        0xc7 => return i64::MAX - delay,
        // The very first moment stands for no stamp.
        0xc6 => return i64::MIN + 1 + delay,
        0xc5 => *now = now.saturating_sub(1_000_000_000),
        steps => *now = now.saturating_add(1 << (steps & 7) * 6),
    }
    now.saturating_add(delay)
}

/// What is reported about the packets was seen, and each once.
fn check(followed: &Followed, stamps: &[Vec<i64>]) {
    let mut packets = vec![Vec::new(); stamps.len()];
    for passage in followed.passages() {
        for (point, point_packets) in packets.iter_mut().enumerate() {
            point_packets.extend(
                passage
                    .passed_at(point)
                    .map(|index| followed.stamp(point, index)),
            );
            assert!(
                followed
                    .spread(&passage, point)
                    .is_none_or(|spread| spread >= 0)
            );
        }
        for segment in 0..followed.segments() {
            let is_at_both_points =
                passage.passed_at(segment).is_some() && passage.passed_at(segment + 1).is_some();
            assert!(!is_at_both_points || followed.has_host_pair_crossed(&passage, segment));
            assert!(is_at_both_points || !passage.is_reordered(segment));
        }
        assert_eq!(followed.passage(passage.number), passage);
    }
    for (point_packets, stamps) in packets.iter_mut().zip(stamps) {
        point_packets.sort_unstable();
        let mut stamps = stamps.iter();
        // A part of what was seen, in the same order: none of it twice.
        assert!(
            point_packets
                .iter()
                .all(|reported| stamps.any(|stamp| stamp == reported))
        );
    }
    for segment in 0..followed.segments() {
        let matched = followed.matched_captures(segment);
        let fewer_packets = stamps[segment].len().min(stamps[segment + 1].len()) as u64;
        assert!(matched.crossings.len() as u64 + matched.one_direction <= fewer_packets);
        let copy_count: u64 = [Direction::Forward, Direction::Reverse]
            .map(|direction| followed.copies(segment, direction, |_| true))
            .iter()
            .sum();
        assert!(copy_count <= stamps.iter().map(Vec::len).sum::<usize>() as u64);
        drop((matched.limits(), matched.exchanges()));
    }
    let pairs = followed.round_trips();
    for pair in &pairs {
        assert_eq!(
            followed.passage(pair.forward).direction,
            Some(Direction::Forward)
        );
        assert_eq!(
            followed.passage(pair.reverse).direction,
            Some(Direction::Reverse)
        );
    }
    for end in [
        |pair: &neph_capture::RoundTripPair| pair.forward,
        |pair: &neph_capture::RoundTripPair| pair.reverse,
    ] {
        let mut ends: Vec<u32> = pairs.iter().map(end).collect();
        ends.sort_unstable();
        ends.dedup();
        assert_eq!(ends.len(), pairs.len());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [points, clocks, rules, packet_bytes @ ..] = bytes else {
        return;
    };
    let points = usize::from(points % 7) + 2;
    let packets: Vec<Packet> = packet_bytes
        .as_chunks::<PACKET_INPUT_BYTES>()
        .0
        .iter()
        .map(packet)
        .collect();
    let shares_clock: Vec<bool> = (0..points - 1)
        .map(|segment| clocks >> segment & 1 == 1)
        .collect();
    let (mut stamps, mut capture_bytes) = (vec![Vec::new(); points], 0);
    for (point, stamps) in stamps.iter_mut().enumerate() {
        let mut now = 1_700_000_000_000_000_000;
        for packet in packets
            .iter()
            .filter(|packet| packet.points >> point & 1 == 1)
        {
            capture_bytes += RECORD_HEADER_BYTES + packet.bytes.len();
            stamps.push(stamp(&mut now, packet.time_byte, point));
        }
    }
    let (peak_bytes, followed) = peak_memory::measure(|| {
        let mut hops = Hops::with_points(points);
        for (index, rule) in NAT_RULES
            .iter()
            .enumerate()
            .filter(|(index, _)| rules >> index & 1 == 1)
        {
            hops.add_nat_rule(
                usize::from(rules >> 4) + index,
                rule.parse().expect("a rule"),
            );
        }
        for (point, stamps) in stamps.iter().enumerate() {
            let passed = packets
                .iter()
                .filter(|packet| packet.points >> point & 1 == 1);
            for (packet, stamp) in passed.zip(stamps) {
                if let Some(packet) = dissect(Link::Ip, &packet.bytes, packet.length) {
                    hops.add_packet(point, *stamp, &packet);
                }
            }
        }
        hops.end(&shares_clock)
    });
    assert!(
        peak_bytes <= capture_bytes * MEMORY_PER_CAPTURE_BYTE + BASE_MEMORY,
        "{peak_bytes} bytes of memory for {capture_bytes} of captures"
    );
    for stamps in &mut stamps {
        stamps.sort_unstable();
    }
    check(&followed, &stamps);
});
