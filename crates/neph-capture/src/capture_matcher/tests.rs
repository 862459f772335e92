use neph_stats::{ClockNature, OffsetLimits, clock_fit};
use neph_wire::dissect::{Link, dissect};
use proptest::prelude::*;

use super::*;
use crate::test_packets::{UDP, body, datagram, packets};

const SECOND: i64 = 1_000_000_000;

/// Packets between hosts 1 and 2: departure and arrival by the true time, and direction.
#[derive(Debug, Clone, Copy)]
struct Packet {
    departure: i64,
    arrival: i64,
    direction: Direction,
}

/// Requests and replies with these delays.
fn exchanges(count: i64, interval: i64, mut delay: impl FnMut(Direction) -> i64) -> Vec<Packet> {
    let mut packets = Vec::new();
    for departure in (0..count).map(|n| n * interval) {
        let arrival = departure + delay(Direction::Forward);
        let direction = Direction::Forward;
        packets.push(Packet {
            departure,
            arrival,
            direction,
        });
        let (departure, direction) = (arrival + 30_000, Direction::Reverse);
        let arrival = departure + delay(direction);
        packets.push(Packet {
            departure,
            arrival,
            direction,
        });
    }
    packets
}

/// Both captures of it; the clock of the second shows what `clock` makes of the time, host 1 is at the
/// first.
fn match_captures(packets: &[Packet], clock: impl Fn(i64) -> i64) -> MatchedCaptures {
    let mut matcher = CaptureMatcher::default();
    let observed_at_points: [Vec<(i64, Vec<u8>)>; 2] = [0, 1].map(|point| {
        let mut observed: Vec<(i64, Vec<u8>)> = (0_u16..)
            .zip(packets)
            .map(|(number, packet)| {
                let (from, to) = if packet.direction == Direction::Forward {
                    (1, 2)
                } else {
                    (2, 1)
                };
                let is_sender = (packet.direction == Direction::Forward) == (point == 0);
                let at = if is_sender {
                    packet.departure
                } else {
                    packet.arrival
                };
                (at, datagram(number, from, to))
            })
            .collect();
        observed.sort();
        observed
    });
    let [first, second] = observed_at_points;
    for (at, bytes) in first {
        matcher.add_first(at, &dissect(Link::Ip, &bytes, 44).unwrap());
    }
    for (at, bytes) in second {
        matcher.add_second(clock(at), &dissect(Link::Ip, &bytes, 44).unwrap());
    }
    matcher.end()
}

/// What each capture shows of 20 exchanges, 1 s apart: requests in fragments of so many bytes that follow
/// each other by 10 us, replies whole.
fn fragmented(max: usize, [sent, replied]: [i64; 2]) -> Vec<(i64, Vec<u8>)> {
    let exchange = |nth: u8| {
        let at = i64::from(nth) * SECOND;
        let request = packets(false, UDP, nth, &body(UDP, nth, 3_000), max);
        let times = (0..).map(move |part| at + sent + part * 10_000);
        let reply = (at + replied, datagram(u16::from(nth), 2, 1));
        times.zip(request).chain([reply])
    };
    (1..=20).flat_map(exchange).collect()
}

#[test]
fn a_packet_fragmented_at_the_other_point_passes_with_its_last_byte() {
    for (first_size, second_size, parts) in [
        (4_000, 1_400, [1_u32, 3]),
        (1_400, 4_000, [3, 1]),
        (1_400, 640, [3, 5]),
    ] {
        let mut matcher = CaptureMatcher::default();
        for (at, bytes) in fragmented(first_size, [0, 40_000_000]) {
            matcher.add_first(
                at,
                &dissect(Link::Ip, &bytes, u32::try_from(bytes.len()).unwrap()).unwrap(),
            );
        }
        for (at, bytes) in fragmented(second_size, [10_000_000, 30_000_000]) {
            matcher.add_second(
                at,
                &dissect(Link::Ip, &bytes, u32::try_from(bytes.len()).unwrap()).unwrap(),
            );
        }
        let captures = matcher.end();
        let requests = captures
            .crossings
            .iter()
            .filter(|crossing| crossing.direction == Direction::Forward);
        let delays: Vec<i64> = requests
            .map(|crossing| crossing.second_at - crossing.first_at)
            .collect();
        let [first, second] = parts.map(|parts| i64::from(parts - 1) * 10_000);
        assert_eq!(delays, [10_000_000 + second - first; 20]);
        assert_eq!(
            (captures.identical, captures.first.packets),
            (0, 20 * u64::from(parts[0] + 1))
        );
    }
}

#[test]
fn packets_with_equal_fragments_in_both_captures_are_matched() {
    let mut matcher = CaptureMatcher::default();
    for (at, bytes) in fragmented(1_400, [0, 40_000_000]) {
        matcher.add_first(
            at,
            &dissect(Link::Ip, &bytes, u32::try_from(bytes.len()).unwrap()).unwrap(),
        );
    }
    for (at, bytes) in fragmented(1_400, [10_000_000, 30_000_000]) {
        matcher.add_second(
            at,
            &dissect(Link::Ip, &bytes, u32::try_from(bytes.len()).unwrap()).unwrap(),
        );
    }
    let captures = matcher.end();
    assert_eq!((captures.crossings.len(), captures.identical), (80, 0));
}

#[test]
fn packets_are_matched_with_their_direction_under_any_offset() {
    let packets = exchanges(50, SECOND / 10, |_| 200_000);
    for offset in [0, 3 * SECOND, -3 * SECOND, 50_000] {
        let captures = match_captures(&packets, |at| at + offset);
        assert_eq!(captures.crossings.len(), 100);
        let directions: Vec<Direction> = captures
            .crossings
            .iter()
            .map(|crossing| crossing.direction)
            .collect();
        assert_eq!(
            directions[..4],
            [
                Direction::Forward,
                Direction::Reverse,
                Direction::Forward,
                Direction::Reverse
            ]
        );
        let exchanges = captures.exchanges();
        assert_eq!(exchanges.len(), 50);
        assert!(
            exchanges.iter().all(|exchange| exchange.offset() == offset),
            "symmetric"
        );
        assert!(
            exchanges
                .iter()
                .all(|exchange| exchange.round_trip() == 400_000)
        );
    }
}

#[test]
fn identical_packets_are_skipped_and_counted() {
    let bytes = [datagram(1, 1, 2), datagram(2, 2, 1), datagram(3, 1, 2)];
    let dissected = |at: usize| dissect(Link::Ip, &bytes[at], 44).unwrap();
    let mut matcher = CaptureMatcher::default();
    for (at, which) in [(0, 0), (100, 1), (200, 2), (SECOND, 2)] {
        matcher.add_first(at, &dissected(which));
    }
    for (at, which) in [(50, 0), (60, 1), (250, 2), (SECOND, 0)] {
        matcher.add_second(at, &dissected(which));
    }
    let captures = matcher.end();
    assert_eq!((captures.identical, captures.ambiguous_in_both), (3, 2));
    assert!(
        captures.crossings.is_empty(),
        "one is left, and no other way"
    );
    assert_eq!(captures.one_direction, 1);
}

#[test]
fn packets_identical_within_one_capture_are_not_ambiguous_in_both() {
    let bytes = [datagram(1, 1, 2), datagram(2, 3, 4)];
    let dissected = |at: usize| dissect(Link::Ip, &bytes[at], 44).unwrap();
    let mut matcher = CaptureMatcher::default();
    for at in [0, SECOND] {
        matcher.add_first(at, &dissected(0));
        matcher.add_second(at, &dissected(1));
    }
    let captures = matcher.end();
    assert_eq!((captures.identical, captures.ambiguous_in_both), (1, 0));
}

#[test]
fn the_first_copy_of_a_mirrored_packet_counts_in_either_capture() {
    let bytes = [datagram(1, 1, 2), datagram(2, 2, 1)];
    let dissected = |at: usize| dissect(Link::Ip, &bytes[at], 44).unwrap();
    let single = [(1_000, 0), (5_000, 1)];
    let doubled = [(2_000, 0), (2_300, 0), (4_000, 1), (4_300, 1)];
    // As in a capture that was appended to itself.
    let appended = [(2_500, 0), (3_500, 1), (2_500, 0), (3_500, 1)];
    for (first_capture, second_capture) in [
        (&single[..], &doubled[..]),
        (&doubled[..], &single[..]),
        (&doubled[..], &appended[..]),
        (&appended[..], &doubled[..]),
    ] {
        let mut matcher = CaptureMatcher::default();
        for (at, index) in first_capture {
            matcher.add_first(*at, &dissected(*index));
        }
        for (at, index) in second_capture {
            matcher.add_second(*at, &dissected(*index));
        }
        let captures = matcher.end();
        let stamps = captures
            .crossings
            .iter()
            .map(|crossing| (crossing.first_at, crossing.second_at));
        let stamps: Vec<(i64, i64)> = stamps.collect();
        let first = |packets: &[(i64, usize)], index| {
            packets.iter().find(|entry| entry.1 == index).unwrap().0
        };
        let first_packets =
            [0, 1].map(|index| (first(first_capture, index), first(second_capture, index)));
        assert_eq!((stamps, captures.identical), (first_packets.to_vec(), 0));
        let expected_duplicates =
            [first_capture, second_capture].map(|packets| packets.len() as u64 - 2);
        assert_eq!(
            [
                captures.first.capture_duplicates,
                captures.second.capture_duplicates
            ],
            expected_duplicates
        );
        assert!(captures.clock_set_backs().is_empty());
    }
}

#[test]
fn each_capture_has_its_packets_resolution_and_clock_steps() {
    let packets = exchanges(5, SECOND, |_| 200_000);
    let captures = match_captures(
        &packets,
        |at| if at > 2 * SECOND { at - 2 * SECOND } else { at },
    );
    assert_eq!((captures.first.packets, captures.second.packets), (10, 10));
    assert_eq!(
        (captures.first.resolution, captures.second.resolution),
        (1_000, 1_000)
    );
    let set_backs = captures.clock_set_backs();
    assert_eq!(set_backs.len(), 1, "{set_backs:?}");
    assert_eq!(
        (set_backs[0].cut.until, set_backs[0].cut.from),
        (SECOND, 2 * SECOND)
    );
    // Behind it the second clock's steady time is ahead of its stamps.
    let set_back_by = 2 * SECOND + 200_000 - (SECOND + 400_000);
    assert!(
        set_backs[0].by <= -set_back_by && set_backs[0].by > -2 * SECOND,
        "{set_backs:?}"
    );
}

proptest! {
    /// Whatever the delays, the offset and the rate: the truth lies within the bound, with stamps of
    /// nanoseconds or of microseconds.
    #[test]
    fn the_true_offset_is_within_the_error_bound(
        offset in -10 * SECOND..10 * SECOND,
        ppm in -100..100_i64,
        min in prop::array::uniform2(0..5_000_000_i64),
        spread in prop::collection::vec(0..2_000_000_i64, 40),
        resolution in prop::sample::select(vec![1, 1_000_i64]),
    ) {
        let mut at = 0;
        let packets = exchanges(60, SECOND / 4, |direction| {
            at = (at + 1) % spread.len();
            spread[at] + min[usize::from(direction == Direction::Reverse)]
        });
        let clock_at = |at: i64| at + offset + at / 1_000_000 * ppm;
        let round_to_resolution = |at: i64| at.div_euclid(resolution) * resolution;
        let rounded: Vec<Packet> = packets.iter().map(|packet| match packet.direction {
            Direction::Forward => Packet { departure: round_to_resolution(packet.departure), ..*packet },
            Direction::Reverse => Packet { arrival: round_to_resolution(packet.arrival), ..*packet },
        }).collect();
        let captures = match_captures(&rounded, |at| round_to_resolution(clock_at(at)));
        let (max, min) = captures.limits();
        let limits = OffsetLimits { at_most: &max, at_least: &min };
        for second in [0, 7, 14] {
            let fit = clock_fit(limits, second * SECOND, ClockNature::default()).unwrap().unwrap();
            let error = fit.offset - (clock_at(second * SECOND) - second * SECOND);
            prop_assert!(error.abs() <= fit.bound, "{fit:?} is {error} off");
        }
    }
}
