//! The client, where datagrams go in both directions: round trips are those of the near end's questions.

use super::follow;
use crate::directions::Direction;
use crate::packets::datagram;

const MICRO: i64 = 1_000;
const MILLI: i64 = 1_000_000;
/// From point to point.
const DELAY: i64 = 100 * MICRO;

/// A datagram between these ports of hosts 1 and 2.
fn between(number: u16, is_there: bool, (near_port, far_port): (u16, u16)) -> Vec<u8> {
    let (from, to) = if is_there { (1, 2) } else { (2, 1) };
    let mut packet = datagram(number, from, to);
    let ports = if is_there {
        [near_port, far_port]
    } else {
        [far_port, near_port]
    };
    packet[20..22].copy_from_slice(&ports[0].to_be_bytes());
    packet[22..24].copy_from_slice(&ports[1].to_be_bytes());
    packet
}

/// Every 10 ms one end asks, and the other one answers after 50 us; host 1 is at the first point. The round
/// trips, in microseconds, of what is seen after the first `skipped` packets.
fn round_trips(asks: Direction, ports: (u16, u16), skipped: usize, began: bool) -> Vec<i64> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    if began {
        // Others, long before.
        first.push((-2_000 * MILLI, datagram(999, 1, 3)));
        second.push((-2_000 * MILLI + DELAY, datagram(999, 1, 3)));
    }
    let mut number = 0;
    let mut packets = Vec::new();
    for round in 0..30 {
        let requested = round * 10 * MILLI;
        let replied = requested + DELAY + 50 * MICRO;
        let other = if asks == Direction::Forward {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        for (left, direction) in [(requested, asks), (replied, other)] {
            packets.push((
                left,
                direction,
                between(number, direction == Direction::Forward, ports),
            ));
            number += 1;
        }
    }
    for (left, direction, bytes) in packets.drain(..).skip(skipped) {
        let (near_times, far_times) = match direction {
            Direction::Forward => (left, left + DELAY),
            Direction::Reverse => (left + DELAY, left),
        };
        first.push((near_times, bytes.clone()));
        second.push((far_times, bytes));
    }
    first.sort();
    second.sort();
    let followed = follow(&[&first, &second]);
    let round_trips = followed.round_trips();
    let duration_of = |pair: &super::RoundTripPair| {
        let [sent, came] = [pair.forward, pair.back].map(|number| followed.passage(number).mark(0));
        (came.unwrap() - sent.unwrap()) / MICRO
    };
    round_trips.iter().map(duration_of).collect()
}

#[test]
fn requests_of_the_near_end_have_round_trips_and_its_replies_have_none() {
    let (same, near_is_low, far_is_low) = ((5_000, 6_000), (53, 40_000), (40_000, 53));
    for (first, began) in [(0, true), (0, false), (1, false)] {
        for ports in [same, far_is_low] {
            let durations = round_trips(Direction::Forward, ports, first, began);
            // Of the first question that is seen at the latest.
            let many = 30 - first;
            assert_eq!(
                durations,
                vec![250; many],
                "{ports:?} from {first}, {began}"
            );
        }
        for ports in [same, near_is_low] {
            let durations = round_trips(Direction::Reverse, ports, first, began);
            assert_eq!(durations, [0; 0], "{ports:?} from {first}, {began}");
        }
    }
    // Whatever the ports are, where the capture had begun before.
    assert_eq!(round_trips(Direction::Reverse, far_is_low, 0, true), [0; 0]);
    assert_eq!(
        round_trips(Direction::Forward, near_is_low, 0, true).len(),
        30
    );
}

#[test]
fn the_end_that_starts_the_flows_is_known_by_echoes_and_ports() {
    let echo = |asks: u8, number: u16, is_there: bool| {
        let mut packet = between(number, is_there, (0, 0));
        (packet[9], packet[20], packet[21]) = (1, asks, 0);
        packet
    };
    let is_from_far = |packets: &[(bool, Vec<u8>)]| {
        let at = |shift: i64| {
            let packets = packets.iter().zip(1_i64..);
            let packets = packets.map(|((is_there, bytes), at)| {
                let late = if *is_there { shift } else { -shift };
                (at * MILLI + late, bytes.clone())
            });
            packets.collect::<Vec<_>>()
        };
        follow(&[&at(0), &at(DELAY)]).is_started_from_far()
    };
    let asked_back = [(false, echo(8, 1, false)), (true, echo(0, 2, true))];
    assert!(is_from_far(&asked_back));
    let asked_there = [(true, echo(8, 1, true)), (false, echo(0, 2, false))];
    assert!(!is_from_far(&asked_there));
    // A port of a service at the near end; ports that say nothing, where the near end sends first.
    let datagrams = |ports| {
        [
            (true, between(1, true, ports)),
            (false, between(2, false, ports)),
        ]
    };
    assert!(is_from_far(&datagrams((53, 40_000))));
    assert!(!is_from_far(&datagrams((40_000, 50_000))));
    assert!(
        !is_from_far(&[asked_back, asked_there].concat()),
        "both ends ask"
    );
    assert!(!is_from_far(&[]), "nobody asks");
}
