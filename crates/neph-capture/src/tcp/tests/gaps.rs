//! Segments that fill a gap: retransmitted or reordered.

use super::*;

#[test]
fn a_gap_filled_with_a_newer_tcp_timestamp_is_a_retransmission() {
    let events = |stamp| {
        let mut test = opened();
        test.add(100, Client, stamped(data(110, 10, 500), 1100, 5000));
        // New data is sent in the same millisecond as the retransmission.
        test.add(140, Client, stamped(data(120, 10, 500), 1140, 5000));
        test.add(140, Client, stamped(data(100, 10, 500), stamp, 5000));
        test.recorded.events
    };
    let gap = (Client, Event::Gap);
    assert_eq!(events(1140), [gap, (Client, Event::Retransmission)]);
    assert_eq!(events(1099), [gap, (Client, Event::OutOfOrder)]);
}

/// 4 ms to the server and back, 1 ms to the client and back; no timestamps.
fn connection_near_server() -> TestConnection {
    let mut test = TestConnection::default();
    test.add(0, Client, syn(99, None));
    test.add(4, Server, syn(499, Some(100)));
    test.add(5, Client, data(100, 0, 500));
    test
}

/// Of four segments the second and the third do not pass, and the server reports that.
fn with_two_reported_missing() -> TestConnection {
    let mut test = connection_near_server();
    test.add(20, Client, data(100, 10, 500));
    test.add(20, Client, data(130, 10, 500));
    for _ in 0..2 {
        test.add(24, Server, data(500, 0, 110));
    }
    test.add(25, Client, data(110, 10, 500));
    test.add(29, Server, data(500, 0, 120));
    test
}

const EVENTS_OF_TWO_MISSING: [(Side, Event); 3] = [
    (Client, Event::Gap),
    (Server, RepeatedAcknowledgement),
    (Client, Event::Retransmission),
];

#[test]
fn a_reported_gap_stays_reported_after_its_first_hole_is_filled() {
    let mut test = connection_near_server();
    // Three segments do not pass. All are retransmitted as soon as they are reported.
    test.add(20, Client, data(100, 10, 500));
    test.add(20, Client, data(140, 10, 500));
    test.add(24, Server, data(500, 0, 110));
    test.add(24, Server, data(500, 0, 110));
    test.add(25, Client, data(110, 10, 500));
    test.add(29, Server, data(500, 0, 120));
    test.add(30, Client, data(120, 10, 500));
    test.add(30, Client, data(130, 10, 500));
    let retransmission = (Client, Event::Retransmission);
    let begin = [(Client, Event::Gap), (Server, RepeatedAcknowledgement)];
    assert_eq!(
        test.recorded.events,
        [&begin[..], &[retransmission; 3]].concat()
    );
}

#[test]
fn segments_in_reverse_order_after_a_reported_gap_are_out_of_order() {
    let mut test = with_two_reported_missing();
    // These have not been reported yet.
    test.add(30, Client, data(150, 10, 500));
    test.add(40, Client, data(140, 10, 500));
    let out_of_order = [(Client, Event::Gap), (Client, Event::OutOfOrder)];
    let expected = [&EVENTS_OF_TWO_MISSING[..], &out_of_order].concat();
    assert_eq!(test.recorded.events, expected);
}

#[test]
fn reported_gaps_are_forgotten_when_sequence_numbers_wrap() {
    const HALF: u32 = 1 << 30;
    let mut test = with_two_reported_missing();
    test.add(30, Client, data(120, 10, 500));
    test.add(34, Server, data(500, 0, 140));
    test.recorded.events.clear();
    for (at, seq) in [(40, HALF), (50, 2 * HALF), (60, 2 * HALF + 500)] {
        test.add(at, Client, data(seq, 10, 500));
        test.add(at + 4, Server, data(500, 0, seq + 10));
    }
    test.add(70, Client, data(2 * HALF + 530, 10, 500));
    test.add(80, Client, data(2 * HALF + 520, 10, 500));
    let gaps = [(Client, Event::Gap); 4];
    let expected = [&gaps[..], &[(Client, Event::OutOfOrder)]].concat();
    assert_eq!(test.recorded.events, expected);
}
