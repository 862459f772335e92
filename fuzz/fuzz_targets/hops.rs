//! Packets of a few hosts at two to eight points of capture, of which each saw any of them, by clocks
//! that stand anywhere: each stamp is reported once or left out, what is reported was seen, answers are of
//! the other way, and what all of it takes of memory is bounded by the bytes of the captures.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_capture::{Followed, Hops, Direction};
use neph_wire::dissect::{Link, dissect};

#[path = "../checks/counted.rs"]
mod counted;

/// Bytes of input that make a packet.
const EACH: usize = 8;
/// Bytes that a capture has before each packet.
const RECORD: usize = 16;
/// Bytes of memory for a byte of capture.
const EACH_TAKES: usize = 64;
/// What is there whatever comes: tables of a few entries.
const FROM_THE_BEGINNING: usize = 16 << 10;
/// A rule of a translator that meets some of the hosts, one that meets all, and one that meets none.
const RULES: [&str; 4] = [
    "10.0.0.1=10.0.0.3",
    "10.0.0.2:443=10.0.0.3:53",
    "0.0.0.0/0=10.0.0.0/0",
    "fd00::/64=fd01::/64",
];

struct Packet {
    /// A bit for each point that saw it.
    points: u8,
    at: u8,
    bytes: Vec<u8>,
    /// Bytes on the wire.
    length: u32,
}

/// A packet of raw IP, of which no more is kept than makes it known again; sometimes less.
fn packet(bytes: &[u8; EACH]) -> Packet {
    let [points, kind, hosts, number, seq, ack, length, at] = *bytes;
    let (from, to) = (hosts & 3, hosts >> 2 & 3);
    let (is_six, is_large, has_stamps) = (kind & 4 != 0, kind & 8 != 0, kind & 16 != 0);
    let payload = usize::from(length) * if is_large { 180 } else { 1 };
    // Around the end of the numbers, in steps that make segments meet.
    let numbered = |step: u8| 0xffff_fff0_u32.wrapping_add(u32::from(step) * if is_large { 180 } else { 1 });
    let ports = [u16::from(from) + 440, u16::from(to) + 440].map(u16::to_be_bytes).concat();
    let (protocol, mut carried) = match (kind & 3, is_six) {
        (0, six) => {
            let echo = [[8, 0], [128, 129]][usize::from(six)][usize::from(hosts >> 4 & 1)];
            (if six { 58 } else { 1 }, vec![echo, 0, 0, 0, 0, ack & 1, 0, seq])
        }
        (1, _) => {
            let total = (8 + payload).min(usize::from(u16::MAX)) as u16;
            (17, [ports, total.to_be_bytes().to_vec(), vec![0, 0]].concat())
        }
        (_, _) => {
            let (flags, words) = (kind >> 5 & 3 | if kind & 128 == 0 { 16 } else { 0 }, if has_stamps { 8 } else { 5 });
            let mut header = [ports, numbered(seq).to_be_bytes().to_vec(), numbered(ack).to_be_bytes().to_vec()].concat();
            header.extend([words << 4, flags, 1, 0, 0, 0, 0, 0]);
            if has_stamps {
                header.extend([1, 1, 8, 10, 0, 0, 0, hosts >> 6, 0, 0, 0, 1]);
            }
            (6, header)
        }
    };
    let body = carried.len() + payload;
    carried.resize(carried.len() + payload.min(16), seq);
    let mut packet = if is_six {
        let mut packet = [&[0x60, 0, 0, 0][..], &(body as u16).to_be_bytes(), &[protocol, 64]].concat();
        for host in [from, to] {
            packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        packet
    } else {
        let mut packet = [&[0x45, 0][..], &(20 + body as u16).to_be_bytes(), &[number >> 4, number]].concat();
        packet.extend([0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        packet
    };
    let length = (packet.len() + body) as u32;
    packet.extend(carried);
    if hosts & 32 != 0 {
        packet.truncate(packet.len().saturating_sub(usize::from(number & 31)));
    }
    Packet { points, at, bytes: packet, length }
}

/// When a packet passed a point: mostly a little later than the one before, sometimes when nothing passes.
fn stamp(now: &mut i64, at: u8, point: usize) -> i64 {
    let delay = i64::from(at >> 3 & 7) * point as i64;
    match at & 0xc7 {
        0xc7 => return i64::MAX - delay,
        // The very first moment stands for no stamp.
        0xc6 => return i64::MIN + 1 + delay,
        0xc5 => *now = now.saturating_sub(1_000_000_000),
        steps => *now = now.saturating_add(1 << (steps & 7) * 6),
    }
    now.saturating_add(delay)
}

/// What is reported about the packets was seen, and each once.
fn check(followed: &Followed, seen: &[Vec<i64>]) {
    let mut packets = vec![Vec::new(); seen.len()];
    for passage in followed.passages() {
        for (point, point_packets) in packets.iter_mut().enumerate() {
            point_packets.extend(passage.passed_at(point).map(|at| followed.stamp(point, at)));
            assert!(followed.spread(&passage, point).is_none_or(|spread| spread >= 0));
        }
        for segment in 0..followed.segments() {
            let is_both = passage.passed_at(segment).is_some() && passage.passed_at(segment + 1).is_some();
            assert!(!is_both || followed.has_host_pair_crossed(&passage, segment));
            assert!(is_both || !passage.is_reordered(segment));
        }
        assert_eq!(followed.passage(passage.number), passage);
    }
    for (point_packets, seen) in packets.iter_mut().zip(seen) {
        point_packets.sort_unstable();
        let mut seen = seen.iter();
        // A part of what was seen, in the same order: none of it twice.
        assert!(point_packets.iter().all(|at| seen.any(|one| one == at)));
    }
    for segment in 0..followed.segments() {
        let met = followed.matched_captures(segment);
        let least = seen[segment].len().min(seen[segment + 1].len()) as u64;
        assert!(met.crossings.len() as u64 + met.one_direction <= least);
        let made: u64 = [Direction::Forward, Direction::Reverse].map(|way| followed.copies(segment, way, |_| true)).iter().sum();
        assert!(made <= seen.iter().map(Vec::len).sum::<usize>() as u64);
        drop((met.limits(), met.exchanges()));
    }
    let trips = followed.round_trips();
    for trip in &trips {
        assert_eq!(followed.passage(trip.forward).direction, Some(Direction::Forward));
        assert_eq!(followed.passage(trip.reverse).direction, Some(Direction::Reverse));
    }
    for end in [|trip: &neph_capture::RoundTripPair| trip.forward, |trip: &neph_capture::RoundTripPair| trip.reverse] {
        let mut ends: Vec<u32> = trips.iter().map(end).collect();
        ends.sort_unstable();
        ends.dedup();
        assert_eq!(ends.len(), trips.len());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [points, clocks, rules, rest @ ..] = bytes else { return };
    let points = usize::from(points % 7) + 2;
    let packets: Vec<Packet> = rest.as_chunks::<EACH>().0.iter().map(packet).collect();
    let one_clock: Vec<bool> = (0..points - 1).map(|segment| clocks >> segment & 1 == 1).collect();
    let (mut seen, mut captured) = (vec![Vec::new(); points], 0);
    for (point, seen) in seen.iter_mut().enumerate() {
        let mut now = 1_700_000_000_000_000_000;
        for packet in packets.iter().filter(|packet| packet.points >> point & 1 == 1) {
            captured += RECORD + packet.bytes.len();
            seen.push(stamp(&mut now, packet.at, point));
        }
    }
    let (most, followed) = counted::most_of(|| {
        let mut hops = Hops::with_points(points);
        for (number, rule) in RULES.iter().enumerate().filter(|(number, _)| rules >> number & 1 == 1) {
            hops.add_nat_rule(usize::from(rules >> 4) + number, rule.parse().expect("a rule"));
        }
        for (point, stamps) in seen.iter().enumerate() {
            let passed = packets.iter().filter(|packet| packet.points >> point & 1 == 1);
            for (packet, at) in passed.zip(stamps) {
                if let Some(packet) = dissect(Link::Ip, &packet.bytes, packet.length) {
                    hops.add_packet(point, *at, &packet);
                }
            }
        }
        hops.end(&one_clock)
    });
    assert!(
        most <= captured * EACH_TAKES + FROM_THE_BEGINNING,
        "{most} bytes of memory for {captured} of captures"
    );
    for seen in &mut seen {
        seen.sort_unstable();
    }
    check(&followed, &seen);
});
