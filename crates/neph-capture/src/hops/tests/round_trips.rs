//! Requests and their replies.

use super::*;

#[test]
fn a_reply_belongs_to_the_latest_request_before_it() {
    let packets = [
        (0, datagram(0, 1, 2)),
        (10, datagram(1, 1, 2)),
        (20, datagram(2, 2, 1)),
        (30, datagram(3, 2, 1)),
    ];
    let followed = follow(&[&packets, &shifted(&packets, &[2, 2, -2, -2])]);
    let round_trips = followed.round_trips();
    assert_eq!(
        round_trips,
        [RoundTripPair {
            forward: 1,
            reverse: 2
        }]
    );
}

#[test]
fn fragments_after_the_first_are_neither_requests_nor_replies() {
    // A request and a reply of two packets each, and a request of somebody else between the replies.
    let later_fragment = |number: u16, from: u8, to: u8| {
        let mut packet = datagram(number, from, to);
        packet[6..8].copy_from_slice(&[0, 185]);
        packet
    };
    let packets = [
        (0, datagram(1, 1, 2)),
        (1, later_fragment(1, 1, 2)),
        (10, datagram(2, 2, 1)),
        (11, later_fragment(2, 2, 1)),
        (20, later_fragment(3, 1, 2)),
        (90, later_fragment(4, 2, 1)),
    ];
    let followed = follow(&[&packets, &shifted(&packets, &[2, 2, -2, -2, 2, -2])]);
    assert_eq!(
        followed.round_trips(),
        [RoundTripPair {
            forward: 0,
            reverse: 2
        }]
    );
}

#[test]
fn requests_in_flight_together_have_their_own_replies() {
    let datagrams = [(0, 1, 2), (1, 1, 2), (2, 2, 1), (3, 2, 1)];
    let packets_in = |order: [usize; 4], at: [i64; 4]| -> Vec<(i64, Vec<u8>)> {
        let packets = order.map(|index| {
            let (number, from, to) = datagrams[index];
            datagram(number, from, to)
        });
        at.into_iter().zip(packets).collect()
    };
    let first = packets_in([0, 1, 2, 3], [0, 10, 205, 215]);
    let second = packets_in([0, 2, 1, 3], [100, 105, 110, 115]);
    let followed = follow(&[&first, &second]);
    let round_trips = [(0, 2), (1, 3)].map(|(forward, reverse)| RoundTripPair { forward, reverse });
    assert_eq!(followed.round_trips(), round_trips);
}
