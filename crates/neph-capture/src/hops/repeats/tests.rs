use neph_wire::dissect::{Link, dissect};

use super::super::{Followed, Hops};
use crate::directions::Direction;
use crate::packets::datagram;

/// What a point shows, by its time.
type PointPackets = Vec<(i64, Vec<u8>)>;

/// Ten packets that pass three points, one each us, 100 ns from point to point, in alternating directions.
fn once() -> [PointPackets; 3] {
    [0, 1, 2].map(|point: i64| {
        let mut observed: PointPackets = (0..10_u16)
            .map(|number| {
                let is_there = number.is_multiple_of(2);
                let along = if is_there { point } else { 2 - point };
                let (from, to) = if is_there { (1, 2) } else { (2, 1) };
                let at = i64::from(number) * 1_000 + along * 100;
                (at, datagram(number + 1, from, to))
            })
            .collect();
        observed.sort();
        observed
    })
}

/// One of so many stands there again, 30 ns later.
fn mirrored(of: &PointPackets, every: usize) -> PointPackets {
    let repeats = of.iter().step_by(every);
    let repeats = repeats.map(|(at, bytes)| (at + 30, bytes.clone()));
    let mut packets: PointPackets = of.iter().cloned().chain(repeats).collect();
    packets.sort();
    packets
}

fn follow(points: &[PointPackets; 3]) -> Followed {
    let mut hops = Hops::at(3);
    for (point, packets) in points.iter().enumerate() {
        for (at, bytes) in packets {
            let length = u32::try_from(bytes.len()).unwrap();
            hops.see(point, *at, &dissect(Link::Ip, bytes, length).unwrap());
        }
    }
    hops.end(&[true; 2])
}

/// Marks of all that is followed.
fn marks(followed: &Followed) -> Vec<[Option<i64>; 3]> {
    let passages = followed.passages();
    passages
        .map(|passage| [0, 1, 2].map(|point| passage.mark(point)))
        .collect()
}

fn repeats(followed: &Followed) -> [u64; 3] {
    [0, 1, 2].map(|point| followed.point(point).repeats)
}

#[test]
fn a_duplicate_in_one_capture_is_counted_as_one_passage() {
    let truth = marks(&follow(&once()));
    assert_eq!(truth.iter().flatten().flatten().count(), 30);
    for point in 0..3 {
        let mut points = once();
        points[point] = mirrored(&points[point], 1);
        let followed = follow(&points);
        assert_eq!(marks(&followed), truth, "point {point}");
        assert_eq!(repeats(&followed).iter().sum::<u64>(), 10);
        assert_eq!(repeats(&followed)[point], 10);
        let copies = |segment| {
            let directions = [Direction::Forward, Direction::Reverse];
            directions.map(|direction| followed.copies(segment, direction, |_| true))
        };
        assert_eq!((copies(0), copies(1)), ([0; 2], [0; 2]));
    }
}

#[test]
fn a_capture_concatenated_twice_has_the_same_passages() {
    let truth = marks(&follow(&once()));
    for point in 0..3 {
        let mut points = once();
        points[point] = [points[point].clone(), points[point].clone()].concat();
        let followed = follow(&points);
        assert_eq!(marks(&followed), truth, "point {point}");
    }
}

#[test]
fn some_that_one_point_alone_shows_twice_passed_once() {
    let truth = marks(&follow(&once()));
    let mut points = once();
    points[1] = mirrored(&points[1], 5);
    let followed = follow(&points);
    assert_eq!((marks(&followed), repeats(&followed)), (truth, [0, 2, 0]));
}

#[test]
fn packets_duplicated_at_all_points_are_counted_once() {
    let truth = marks(&follow(&once()));
    let followed = follow(&once().map(|of| mirrored(&of, 1)));
    assert_eq!((marks(&followed), repeats(&followed)), (truth, [10; 3]));
    assert_eq!(followed.identical(), 0);
}

/// Copies of one direction that are at each point behind the first are the network's.
#[test]
fn copies_made_by_the_network_are_not_duplicates_in_a_capture() {
    let mut points = once();
    for point in [1, 2] {
        let second_packets = points[point].iter().filter(|(_, bytes)| bytes[15] == 1);
        let second_packets: PointPackets = second_packets.cloned().collect();
        let mut packets = points[point].clone();
        packets.extend(
            second_packets
                .into_iter()
                .map(|(at, bytes)| (at + 30, bytes)),
        );
        packets.sort();
        points[point] = packets;
    }
    let followed = follow(&points);
    assert_eq!(repeats(&followed), [0; 3]);
    assert_eq!(followed.copies(0, Direction::Forward, |_| true), 5);
    assert_eq!(marks(&followed), marks(&follow(&once())));
}
