//! Retransmissions of data that had arrived, as its receiver reports later.

use super::*;

/// A segment that its sender retransmits after 300 ms. Neither needs the other: the first had arrived.
fn retransmitted_segments() -> TestConnection {
    let mut test = opened();
    test.add(100, Client, stamped(data(100, 10, 500), 1100, 5000));
    test.add(400, Client, stamped(data(100, 10, 500), 1400, 5000));
    assert_eq!(test.recorded.spurious, []);
    test
}

const ONE_SPURIOUS: [(Side, Event); 1] = [(Client, Event::Retransmission)];

#[test]
fn a_timestamp_echo_of_the_original_proves_its_arrival() {
    let mut test = retransmitted_segments();
    test.add(450, Server, stamped(data(500, 0, 110), 5430, 1100));
    assert_eq!(test.recorded.spurious, ONE_SPURIOUS);
    let mut needed = retransmitted_segments();
    needed.add(450, Server, stamped(data(500, 0, 110), 5430, 1400));
    assert_eq!(needed.recorded.spurious, []);
}

#[test]
fn an_acknowledgement_sooner_than_any_round_trip_answers_the_original() {
    let mut test = opened();
    test.add(100, Client, data(100, 10, 500));
    test.add(400, Client, data(100, 10, 500));
    // 30 ms to the server and back, of which a quarter is left for a path that became shorter.
    test.add(421, Server, data(500, 0, 110));
    assert_eq!(test.recorded.spurious, ONE_SPURIOUS);
    let mut later = opened();
    later.add(100, Client, data(100, 10, 500));
    later.add(400, Client, data(100, 10, 500));
    later.add(424, Server, data(500, 0, 110));
    assert_eq!(later.recorded.spurious, []);
}

#[test]
fn a_dsack_reports_a_spurious_retransmission_once() {
    let mut test = opened();
    test.add(100, Client, data(100, 10, 500));
    test.add(400, Client, data(100, 10, 500));
    test.add(430, Server, data(500, 0, 110));
    assert_eq!(test.recorded.spurious, []);
    let twice = data(500, 0, 110).reporting(100, 10);
    test.add(431, Server, twice);
    test.add(432, Server, twice);
    assert_eq!(test.recorded.spurious, ONE_SPURIOUS);
}

#[test]
fn a_second_retransmission_is_not_spurious_if_the_echo_is_of_the_first() {
    let mut test = opened();
    for seq in [100, 110] {
        test.add(100, Client, stamped(data(seq, 10, 500), 1100, 5000));
    }
    test.add(400, Client, stamped(data(100, 10, 500), 1400, 5000));
    test.add(401, Client, stamped(data(110, 10, 500), 1401, 5000));
    // RFC 7323, 4.3: the echo is that of the first segment that is acknowledged.
    test.add(431, Server, stamped(data(500, 0, 120), 5431, 1400));
    assert_eq!(test.recorded.spurious, []);
}
