use neph_wire::dissect::{Link, dissect};

use super::super::{Followed, Hops};
use crate::directions::Direction;
use crate::test_packets::datagram;

/// Packets of a point, by time.
type PointPackets = Vec<(i64, Vec<u8>)>;

/// Ten packets that pass three points, one each us, 100 ns from point to point, in alternating directions.
fn points_without_duplicates() -> [PointPackets; 3] {
    [0, 1, 2].map(|point: i64| {
        let mut observed: PointPackets = (0..10_u16)
            .map(|number| {
                let is_forward = number.is_multiple_of(2);
                let hops_passed = if is_forward { point } else { 2 - point };
                let (from, to) = if is_forward { (1, 2) } else { (2, 1) };
                let at = i64::from(number) * 1_000 + hops_passed * 100;
                (at, datagram(number + 1, from, to))
            })
            .collect();
        observed.sort();
        observed
    })
}

/// One in `interval` packets is a duplicate 30 ns later.
fn mirrored(packets: &PointPackets, interval: usize) -> PointPackets {
    let duplicates = packets.iter().step_by(interval);
    let duplicates = duplicates.map(|(at, bytes)| (at + 30, bytes.clone()));
    let mut all_packets: PointPackets = packets.iter().cloned().chain(duplicates).collect();
    all_packets.sort();
    all_packets
}

fn follow(points: &[PointPackets; 3]) -> Followed {
    let mut hops = Hops::with_points(3);
    for (point, packets) in points.iter().enumerate() {
        for (at, bytes) in packets {
            let length = u32::try_from(bytes.len()).unwrap();
            hops.add_packet(point, *at, &dissect(Link::Ip, bytes, length).unwrap());
        }
    }
    hops.end(&[true; 2])
}

/// When each followed packet passed each point.
fn passage_times(followed: &Followed) -> Vec<[Option<i64>; 3]> {
    let passages = followed.passages();
    passages
        .map(|passage| [0, 1, 2].map(|point| passage.passed_at(point)))
        .collect()
}

fn capture_duplicates(followed: &Followed) -> [u64; 3] {
    [0, 1, 2].map(|point| followed.point(point).capture_duplicates)
}

#[test]
fn a_duplicate_in_one_capture_is_counted_as_one_passage() {
    let truth = passage_times(&follow(&points_without_duplicates()));
    assert_eq!(truth.iter().flatten().flatten().count(), 30);
    for point in 0..3 {
        let mut points = points_without_duplicates();
        points[point] = mirrored(&points[point], 1);
        let followed = follow(&points);
        assert_eq!(passage_times(&followed), truth, "point {point}");
        assert_eq!(capture_duplicates(&followed).iter().sum::<u64>(), 10);
        assert_eq!(capture_duplicates(&followed)[point], 10);
        let copies = |segment| {
            let directions = [Direction::Forward, Direction::Reverse];
            directions.map(|direction| followed.copies(segment, direction, |_| true))
        };
        assert_eq!((copies(0), copies(1)), ([0; 2], [0; 2]));
    }
}

#[test]
fn a_capture_concatenated_twice_has_the_same_passages() {
    let truth = passage_times(&follow(&points_without_duplicates()));
    for point in 0..3 {
        let mut points = points_without_duplicates();
        points[point] = [points[point].clone(), points[point].clone()].concat();
        let followed = follow(&points);
        assert_eq!(passage_times(&followed), truth, "point {point}");
    }
}

#[test]
fn packets_duplicated_at_one_point_only_passed_once() {
    let truth = passage_times(&follow(&points_without_duplicates()));
    let mut points = points_without_duplicates();
    points[1] = mirrored(&points[1], 5);
    let followed = follow(&points);
    assert_eq!(
        (passage_times(&followed), capture_duplicates(&followed)),
        (truth, [0, 2, 0])
    );
}

#[test]
fn packets_duplicated_at_all_points_are_counted_once() {
    let truth = passage_times(&follow(&points_without_duplicates()));
    let followed = follow(&points_without_duplicates().map(|packets| mirrored(&packets, 1)));
    assert_eq!(
        (passage_times(&followed), capture_duplicates(&followed)),
        (truth, [10; 3])
    );
    assert_eq!(followed.identical(), 0);
}

/// Copies of one direction that are at each point behind the first are the network's.
#[test]
fn copies_made_by_the_network_are_not_duplicates_in_a_capture() {
    let mut points = points_without_duplicates();
    for point in [1, 2] {
        let copies = points[point].iter().filter(|(_, bytes)| bytes[15] == 1);
        let copies: PointPackets = copies.cloned().collect();
        let mut packets = points[point].clone();
        packets.extend(copies.into_iter().map(|(at, bytes)| (at + 30, bytes)));
        packets.sort();
        points[point] = packets;
    }
    let followed = follow(&points);
    assert_eq!(capture_duplicates(&followed), [0; 3]);
    assert_eq!(followed.copies(0, Direction::Forward, |_| true), 5);
    assert_eq!(
        passage_times(&followed),
        passage_times(&follow(&points_without_duplicates()))
    );
}
