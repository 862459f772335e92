//! Packets that IP fragmented on the way, against the times that their bytes passed.

use proptest::prelude::*;

use super::{follow, passage_times};
use crate::test_packets::{ICMP, TCP, UDP, body, datagram, packets};

/// When each fragment passes, in their order or turned.
fn times(packets: Vec<Vec<u8>>, from: i64, is_reversed: bool) -> Vec<(i64, Vec<u8>)> {
    let packets: Vec<Vec<u8>> = if is_reversed {
        packets.into_iter().rev().collect()
    } else {
        packets
    };
    (from..).zip(packets).collect()
}

#[test]
fn a_packet_fragmented_on_the_path_passes_with_its_last_byte() {
    for (is_ipv6, protocol) in [
        (false, ICMP),
        (false, UDP),
        (false, TCP),
        (true, UDP),
        (true, TCP),
    ] {
        for is_reversed in [false, true] {
            let body = body(protocol, 3, 3_000);
            let fragments =
                |max, from| times(packets(is_ipv6, protocol, 5, &body, max), from, is_reversed);
            // In three parts, and in five others.
            for (first_mtu, second_mtu) in [(4_000, 1_400), (1_400, 4_000), (1_400, 640)] {
                let (first, second) = (fragments(first_mtu, 10), fragments(second_mtu, 50));
                let followed = follow(&[&first, &second]);
                let last_times = [first.last(), second.last()].map(|last| last.map(|(at, _)| *at));
                assert_eq!(
                    passage_times(&followed),
                    [last_times],
                    "{is_ipv6} {protocol} {is_reversed}"
                );
                let passage = followed.passages().next().unwrap();
                let ports = (passage.flow.source.port(), passage.flow.destination.port());
                assert_eq!(ports.0 > 0, protocol != ICMP, "{ports:?}");
                let spread = i64::try_from(second.len()).unwrap() - 1;
                assert_eq!(followed.spread(&passage, 1), Some(spread));
            }
        }
    }
}

#[test]
fn a_packet_with_a_missing_fragment_does_not_arrive() {
    let other = || datagram(99, 1, 2);
    let body = body(ICMP, 3, 3_000);
    let unfragmented = vec![
        (10, packets(false, ICMP, 5, &body, 4_000).remove(0)),
        (20, other()),
    ];
    let mut incomplete = times(packets(false, ICMP, 5, &body, 1_400), 50, false);
    incomplete.remove(1);
    incomplete.push((60, other()));
    let followed = follow(&[&unfragmented, &incomplete]);
    let first = followed.passages().next().unwrap();
    assert_eq!((first.passed_at(0), first.passed_at(1)), (Some(10), None));
    assert_eq!(followed.split_or_merged(), 0);
}

#[test]
fn a_packet_with_the_same_fragments_at_all_points_stays_in_fragments() {
    let body = body(UDP, 3, 3_000);
    let first = times(packets(false, UDP, 5, &body, 1_400), 10, false);
    let second = times(packets(false, UDP, 5, &body, 1_400), 50, true);
    let followed = follow(&[&first, &second]);
    assert_eq!(
        passage_times(&followed),
        [[10, 52], [11, 51], [12, 50]].map(|both| both.map(Some))
    );
}

proptest! {
    /// Many packets at a time, cut where one likes at each point, and in any order.
    #[test]
    fn packets_are_matched_however_they_are_fragmented(
        is_ipv6 in any::<bool>(),
        lengths in prop::collection::vec(1_000_u16..4_000, 1..6),
        mtus in prop::array::uniform2(100_usize..600),
        shuffle in prop::collection::vec(any::<u16>(), 300),
    ) {
        let protocol = if is_ipv6 { UDP } else { ICMP };
        let at_point = |mtu: usize, from: i64| {
            let mut fragments: Vec<Vec<u8>> = (1..).zip(&lengths).flat_map(|(nth, bytes)| {
                packets(is_ipv6, protocol, nth, &body(protocol, nth, *bytes), mtu * 8)
            }).collect();
            let mut keys = shuffle.iter();
            fragments.sort_by_cached_key(|_| keys.next().copied());
            times(fragments, from, false)
        };
        let (first, second) = (at_point(mtus[0], 0), at_point(mtus[1], 1_000));
        let followed = follow(&[&first, &second]);
        let passed = followed.passages().filter(|passage| passage.passed_at(0).is_some() && passage.passed_at(1).is_some());
        let crossing_count = passed.count();
        if mtus[0] == mtus[1] {
            prop_assert_eq!(crossing_count, first.len());
        } else {
            // Those in the same fragments at both points stay these.
            prop_assert!(crossing_count >= lengths.len());
        }
        for passage in followed.passages() {
            prop_assert!(passage.passed_at(0).is_some() && passage.passed_at(1).is_some());
        }
    }
}
