mod clients;
mod fragments;
mod order;
mod round_trips;

use neph_model::Wall;
use neph_wire::dissect::{Link, dissect};
use proptest::prelude::*;

use super::*;
use crate::directions::Direction;
use crate::test_packets::datagram;

/// Bytes of a segment from host 1 to host 2, numbered so by its sender.
fn segment(number: u16, seq: u32, bytes: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((40 + bytes).to_be_bytes());
    packet.extend(number.to_be_bytes());
    packet.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend([0x30, 1, 0, 80]);
    packet.extend(seq.to_be_bytes());
    packet.extend([0, 0, 0, 9, 0x50, 16, 1, 0, 0, 0, 0, 0]);
    packet.resize(usize::from(40 + bytes), 5);
    packet
}

/// Follows what each point saw, all by one clock.
fn follow(points: &[&[(i64, Vec<u8>)]]) -> Followed {
    read(points).end(&vec![true; points.len() - 1])
}

fn read(points: &[&[(i64, Vec<u8>)]]) -> Hops {
    let mut hops = Hops::with_points(points.len());
    for (point, packets) in points.iter().enumerate() {
        for (at, bytes) in *packets {
            let length = u32::try_from(bytes.len()).unwrap();
            hops.add_packet(point, *at, &dissect(Link::Ip, bytes, length).unwrap());
        }
    }
    hops
}

/// These packets at another point: each is shifted in time.
fn shifted(packets: &[(i64, Vec<u8>)], shifts: &[i64]) -> Vec<(i64, Vec<u8>)> {
    let packets = packets.iter().zip(shifts);
    packets
        .map(|((at, bytes), shift)| (at + shift, bytes.clone()))
        .collect()
}

/// When each followed packet passed each point.
fn passage_times(followed: &Followed) -> Vec<Vec<Option<i64>>> {
    let points = 0..=followed.segments();
    let passages = followed.passages();
    passages
        .map(|passage| {
            points
                .clone()
                .map(|point| passage.passed_at(point))
                .collect()
        })
        .collect()
}

#[test]
fn identical_packets_are_paired_in_order_if_each_point_has_as_many() {
    let same = || datagram(0, 1, 2);
    let first = [(0, same()), (10, same()), (20, same())];
    let second = [(5, same()), (15, same()), (25, same())];
    let followed = follow(&[&first, &second]);
    let pairs = [(0, 5), (10, 15), (20, 25)].map(|(a, b)| vec![Some(a), Some(b)]);
    assert_eq!(passage_times(&followed), pairs);
    let followed = follow(&[&first, &second[..2]]);
    assert_eq!(
        (passage_times(&followed).len(), followed.identical()),
        (0, 3)
    );
}

/// As many say the one way as the other where each direction is once slower than it ever was.
#[test]
fn without_a_direction_hosts_are_compared_only_at_constant_delays() {
    let first: Vec<(i64, Vec<u8>)> = (0..12)
        .map(|nth| {
            let (from, to) = if nth % 2 == 0 { (1, 2) } else { (2, 1) };
            (i64::from(nth) * 1_000, datagram(nth, from, to))
        })
        .collect();
    let (mut constant, mut changing) = ([7; 12], [7; 12]);
    (changing[4], changing[9]) = (8, 8);
    for (shifts, has_no_delay) in [(&constant, true), (&changing, false)] {
        let followed = read(&[&first, &shifted(&first, shifts)]).end(&[false]);
        let first = followed.passages().next().unwrap();
        assert!(first.direction.is_none() && followed.is_compared(&first));
        assert_eq!(followed.has_no_delay(&first), has_no_delay);
    }
    constant[4] = 8;
    let followed = read(&[&first, &shifted(&first, &constant)]).end(&[false]);
    assert!(
        followed
            .passages()
            .all(|passage| passage.direction.is_some())
    );
}

/// Of those that the later point saw the first had passed the earlier one before the window, and of those
/// that the earlier one saw the last comes behind it.
#[test]
fn identical_packets_are_not_paired_within_a_window() {
    let same = || datagram(0, 1, 2);
    let first = [(10, same()), (20, same()), (21, datagram(1, 1, 2))];
    let second = [(15, same()), (25, same()), (36, datagram(1, 1, 2))];
    let followed = read(&[&first, &second]).end_of_window(&[true]);
    assert_eq!(passage_times(&followed), [[Some(21), Some(36)]]);
}

#[test]
fn the_first_of_network_duplicates_counts_as_the_packet() {
    let other = || datagram(1, 1, 2);
    let first = [(0, datagram(0, 1, 2)), (1, other())];
    let second = [(5, datagram(0, 1, 2)), (6, other()), (9, datagram(0, 1, 2))];
    let followed = follow(&[&first, &second]);
    assert_eq!(
        passage_times(&followed),
        [[Some(0), Some(5)], [Some(1), Some(6)]]
    );
    assert_eq!(
        (
            followed.copies(0, Direction::Forward, |protocol| protocol == 17),
            followed.copies(0, Direction::Reverse, |_| true)
        ),
        (1, 0)
    );
}

#[test]
fn hosts_count_as_crossing_with_only_copied_packets() {
    // Another packet, which the last point did not see, shows the direction.
    let at_both = |at: i64| [(at, datagram(0, 1, 2)), (at + 1, datagram(1, 1, 2))];
    let copied = [(10, datagram(0, 1, 2)), (14, datagram(0, 1, 2))];
    let followed = follow(&[&at_both(0), &at_both(5), &copied]);
    assert_eq!(
        passage_times(&followed),
        [[Some(0), Some(5), Some(10)], [Some(1), Some(6), None]]
    );
    let first = followed.passages().next().unwrap();
    assert!(followed.has_host_pair_crossed(&first, 1));
    assert!(followed.has_flow_kind_crossed(&first, 1));
}

#[test]
fn a_capture_spans_all_its_packets_and_its_extent_the_followed_ones() {
    let packets = [(10, datagram(0, 1, 2)), (20, datagram(1, 1, 2))];
    let mut hops = read(&[&packets, &packets]);
    for at in [5, 90, 30] {
        hops.record_running(1, at);
    }
    let followed = hops.end(&[true]);
    let times = |times: Option<(Wall, Wall)>| {
        times.map(|(from, until)| (from.unix_nanos(), until.unix_nanos()))
    };
    assert_eq!(times(followed.capture_extent(0)), Some((10, 20)));
    assert_eq!(times(followed.capture_extent(1)), Some((5, 90)));
    assert_eq!(times(followed.packet_extent(1)), Some((10, 20)));
}

#[test]
fn a_split_segment_passes_with_its_last_byte_and_is_lost_with_one_piece() {
    let other = || datagram(9, 1, 2);
    let unfragmented = [(0, segment(1, u32::MAX - 500, 3_000)), (1, other())];
    let cuts =
        [0_u32, 1_000, 2_000].map(|cut| segment(7, (u32::MAX - 500).wrapping_add(cut), 1_000));
    let [a, b, c] = cuts;
    let pieces = [
        (10, a.clone()),
        (12, b.clone()),
        (15, c.clone()),
        (16, other()),
    ];
    let incomplete = [(20, a), (25, c), (26, other())];
    let followed = follow(&[&unfragmented, &pieces, &incomplete]);
    assert_eq!(
        passage_times(&followed),
        [[Some(0), Some(15), None], [Some(1), Some(16), Some(26)]]
    );
    let first = followed.passages().next().unwrap();
    assert_eq!(followed.spread(&first, 0), Some(0));
    assert_eq!(followed.spread(&first, 1), Some(5));
    assert_eq!(followed.split_or_merged(), 1);
}

#[test]
fn extreme_timestamps_of_segments_saturate_their_delay() {
    let pieces = [
        (i64::MIN + 1, segment(1, 100, 500)),
        (i64::MAX, segment(2, 600, 500)),
    ];
    let followed = follow(&[&[(0, segment(1, 100, 1_000))], &pieces]);
    let passage = followed.passages().next().unwrap();
    assert_eq!(followed.spread(&passage, 1), Some(i64::MAX));
}

#[test]
fn a_translated_flow_is_matched_by_its_numbers_and_not_by_chance_matches() {
    // In addition to the packets that pass, ten from another port that do not.
    let other_port = |number: u16| {
        let mut packet = datagram(number, 1, 2);
        packet[21] = 99;
        packet
    };
    for (identical, is_expected) in [(2, false), (8, true)] {
        let mut first = vec![(0, datagram(0, 1, 2))];
        first.extend((1..11).map(|number| (i64::from(number), other_port(number))));
        let mut second = vec![(50, datagram(0, 1, 2))];
        let numbers = (1..=identical).chain(100..110 - identical);
        second.extend(numbers.map(|number| (50 + i64::from(number), datagram(number, 3, 2))));
        let followed = follow(&[&first, &second]);
        let passages: Vec<Passage> = followed.passages().collect();
        let is_translated: Vec<bool> = passages
            .iter()
            .map(|passage| followed.is_translated(passage, 0))
            .collect();
        assert!(!is_translated[0], "it passed");
        assert!(
            is_translated[1..]
                .iter()
                .all(|is_translated| *is_translated == is_expected),
            "{identical}: {is_translated:?}"
        );
        let translated_packets = followed.unmatched(0).translated;
        assert_eq!(
            translated_packets,
            if is_expected { u64::from(identical) } else { 0 }
        );
    }
}

/// A datagram from host 1 to host 2 with this number, of this payload length and first byte.
fn datagram_with(number: u16, first_byte: u8, bytes: u16) -> Vec<u8> {
    let mut packet = datagram(number, 1, 2);
    packet[2..4].copy_from_slice(&(28 + bytes).to_be_bytes());
    packet[24..26].copy_from_slice(&(8 + bytes).to_be_bytes());
    packet.resize(usize::from(28 + bytes), 7);
    packet[28] = first_byte;
    packet
}

#[test]
fn a_split_datagram_passes_with_its_last_byte() {
    let other = || datagram(9, 1, 2);
    // Two of them begin with number 0, as those of a socket without a peer do.
    let unfragmented = [
        (0, datagram_with(0, 1, 2_500)),
        (1, datagram_with(0, 2, 2_400)),
        (2, datagram_with(u16::MAX, 5, 1_800)),
        (3, other()),
    ];
    let pieces = [
        (10, datagram_with(0, 1, 1_000)),
        (12, datagram_with(1, 3, 1_000)),
        (15, datagram_with(2, 4, 500)),
        (16, datagram_with(0, 2, 1_200)),
        (17, datagram_with(1, 3, 1_200)),
        (18, datagram_with(u16::MAX, 5, 1_000)),
        (19, datagram_with(0, 6, 800)),
        (20, other()),
    ];
    let followed = follow(&[&unfragmented, &pieces]);
    assert_eq!(
        passage_times(&followed),
        [[0, 15], [1, 17], [2, 19], [3, 20]].map(|times| times.map(Some))
    );
    let first = followed.passages().next().unwrap();
    assert_eq!(followed.spread(&first, 1), Some(5));
    assert_eq!(followed.split_or_merged(), 3);
    // Joined on the way, it has passed the first point with its last piece.
    let followed = follow(&[
        &pieces,
        &unfragmented.clone().map(|(at, bytes)| (at + 30, bytes)),
    ]);
    assert_eq!(followed.split_or_merged(), 3);
    assert!(passage_times(&followed).contains(&vec![Some(15), Some(30)]));
}

#[test]
fn a_split_datagram_with_a_missing_piece_does_not_arrive() {
    let unfragmented = [(0, datagram_with(0, 1, 2_500)), (3, datagram(9, 1, 2))];
    let incomplete = [
        (10, datagram_with(0, 1, 1_000)),
        (15, datagram_with(2, 4, 500)),
        (20, datagram(9, 1, 2)),
    ];
    let followed = follow(&[&unfragmented, &incomplete]);
    assert_eq!(followed.split_or_merged(), 0);
    assert!(passage_times(&followed).contains(&vec![Some(0), None]));
    assert!(passage_times(&followed).contains(&vec![Some(3), Some(20)]));
}

#[test]
fn a_datagram_with_identical_others_is_no_piece() {
    // Found by fuzzing: its timestamp was reported twice, for a piece and for the whole.
    let whole = datagram_with(1, 1, 1_200);
    let (first, last) = (datagram_with(1, 1, 1_000), datagram_with(2, 9, 200));
    let followed = follow(&[
        &[(10, first.clone()), (11, last.clone())],
        &[(20, whole)],
        &[(30, first), (31, last.clone()), (32, last)],
    ]);
    let timestamps = passage_times(&followed);
    for at in [30, 31, 32] {
        let times = timestamps
            .iter()
            .filter(|times| times[2] == Some(at))
            .count();
        assert!(times <= 1, "{at} occurs {times} times: {timestamps:?}");
    }
}

#[test]
fn retransmitted_bytes_are_no_pieces() {
    let first = [(0, segment(1, 100, 1_000)), (30, segment(2, 100, 1_000))];
    let second = [(40, segment(2, 100, 1_000))];
    let followed = follow(&[&first, &second]);
    assert_eq!(
        passage_times(&followed),
        [[Some(0), None], [Some(30), Some(40)]]
    );
    assert_eq!(followed.split_or_merged(), 0);
}

proptest! {
    /// With any truncation, repetition or reordering: nothing is reported twice, and everything is counted.
    #[test]
    fn every_timestamp_is_reported_at_most_once(
        observed in prop::collection::vec(prop::collection::vec((0_u16..6, any::<bool>()), 0..30), 2..5),
    ) {
        let points: Vec<Vec<(i64, Vec<u8>)>> = observed
            .iter()
            .map(|packets| {
                let bytes = |(number, is_reverse): &(u16, bool)| {
                    let (from, to) = if *is_reverse { (2, 1) } else { (1, 2) };
                    datagram(*number, from, to)
                };
                (0..).zip(packets.iter().map(bytes)).collect()
            })
            .collect();
        let points: Vec<&[(i64, Vec<u8>)]> = points.iter().map(Vec::as_slice).collect();
        let followed = follow(&points);
        for (point, packets) in points.iter().enumerate() {
            let mut timestamps: Vec<i64> = followed.passages().filter_map(|passage| passage.passed_at(point)).collect();
            let stamp_count = timestamps.len();
            timestamps.sort_unstable();
            timestamps.dedup();
            prop_assert_eq!(timestamps.len(), stamp_count);
            prop_assert!(stamp_count <= packets.len());
        }
        for trip in followed.round_trips() {
            prop_assert!(followed.passage(trip.forward).direction == Some(Direction::Forward));
            prop_assert!(followed.passage(trip.reverse).direction == Some(Direction::Reverse));
        }
    }
}
