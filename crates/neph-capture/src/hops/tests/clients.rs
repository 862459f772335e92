//! The client, where datagrams go in both directions: round trips are those of the near end's questions.

use super::follow;
use crate::directions::Direction;
use crate::test_packets::datagram;

const MICRO: i64 = 1_000;
const MILLI: i64 = 1_000_000;
/// From point to point.
const DELAY: i64 = 100 * MICRO;

/// A datagram between these ports of hosts 1 and 2.
fn datagram_between(number: u16, is_forward: bool, (near_port, far_port): (u16, u16)) -> Vec<u8> {
    let (from, to) = if is_forward { (1, 2) } else { (2, 1) };
    let mut packet = datagram(number, from, to);
    let ports = if is_forward {
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
fn round_trips(
    client_direction: Direction,
    ports: (u16, u16),
    skipped: usize,
    has_earlier_packet: bool,
) -> Vec<i64> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    if has_earlier_packet {
        // Others, long before.
        first.push((-2_000 * MILLI, datagram(999, 1, 3)));
        second.push((-2_000 * MILLI + DELAY, datagram(999, 1, 3)));
    }
    let mut number = 0;
    let mut packets = Vec::new();
    for round in 0..30 {
        let requested_at = round * 10 * MILLI;
        let replied_at = requested_at + DELAY + 50 * MICRO;
        let server_direction = if client_direction == Direction::Forward {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        for (sent_at, direction) in [
            (requested_at, client_direction),
            (replied_at, server_direction),
        ] {
            packets.push((
                sent_at,
                direction,
                datagram_between(number, direction == Direction::Forward, ports),
            ));
            number += 1;
        }
    }
    for (sent_at, direction, bytes) in packets.drain(..).skip(skipped) {
        let (near_time, far_time) = match direction {
            Direction::Forward => (sent_at, sent_at + DELAY),
            Direction::Reverse => (sent_at + DELAY, sent_at),
        };
        first.push((near_time, bytes.clone()));
        second.push((far_time, bytes));
    }
    first.sort();
    second.sort();
    let followed = follow(&[&first, &second]);
    let round_trips = followed.round_trips();
    let duration_of = |pair: &super::RoundTripPair| {
        let [sent_at, returned_at] =
            [pair.forward, pair.reverse].map(|number| followed.passage(number).passed_at(0));
        (returned_at.unwrap() - sent_at.unwrap()) / MICRO
    };
    round_trips.iter().map(duration_of).collect()
}

#[test]
fn requests_of_the_near_end_have_round_trips_and_its_replies_have_none() {
    let (ephemeral_ports, near_service_ports, far_service_ports) =
        ((5_000, 6_000), (53, 40_000), (40_000, 53));
    for (skipped, has_earlier_packet) in [(0, true), (0, false), (1, false)] {
        for ports in [ephemeral_ports, far_service_ports] {
            let durations = round_trips(Direction::Forward, ports, skipped, has_earlier_packet);
            // Of the first question that is seen at the latest.
            let expected_count = 30 - skipped;
            assert_eq!(
                durations,
                vec![250; expected_count],
                "{ports:?} from {skipped}, {has_earlier_packet}"
            );
        }
        for ports in [ephemeral_ports, near_service_ports] {
            let durations = round_trips(Direction::Reverse, ports, skipped, has_earlier_packet);
            assert_eq!(
                durations, [0; 0],
                "{ports:?} from {skipped}, {has_earlier_packet}"
            );
        }
    }
    // Whatever the ports are, where the capture had begun before.
    assert_eq!(
        round_trips(Direction::Reverse, far_service_ports, 0, true),
        [0; 0]
    );
    assert_eq!(
        round_trips(Direction::Forward, near_service_ports, 0, true).len(),
        30
    );
}

#[test]
fn the_end_that_starts_the_flows_is_known_by_echoes_and_ports() {
    let echo = |icmp_type: u8, number: u16, is_forward: bool| {
        let mut packet = datagram_between(number, is_forward, (0, 0));
        (packet[9], packet[20], packet[21]) = (1, icmp_type, 0);
        packet
    };
    let is_from_far = |packets: &[(bool, Vec<u8>)]| {
        let capture_shifted_by = |shift: i64| {
            let packets = packets.iter().zip(1_i64..);
            let packets = packets.map(|((is_forward, bytes), at)| {
                let delay = if *is_forward { shift } else { -shift };
                (at * MILLI + delay, bytes.clone())
            });
            packets.collect::<Vec<_>>()
        };
        follow(&[&capture_shifted_by(0), &capture_shifted_by(DELAY)]).is_started_from_far()
    };
    let far_request = [(false, echo(8, 1, false)), (true, echo(0, 2, true))];
    assert!(is_from_far(&far_request));
    let near_request = [(true, echo(8, 1, true)), (false, echo(0, 2, false))];
    assert!(!is_from_far(&near_request));
    // A port of a service at the near end; ports that say nothing, where the near end sends first.
    let datagrams = |ports| {
        [
            (true, datagram_between(1, true, ports)),
            (false, datagram_between(2, false, ports)),
        ]
    };
    assert!(is_from_far(&datagrams((53, 40_000))));
    assert!(!is_from_far(&datagrams((40_000, 50_000))));
    assert!(
        !is_from_far(&[far_request, near_request].concat()),
        "both ends ask"
    );
    assert!(!is_from_far(&[]), "nobody asks");
}
