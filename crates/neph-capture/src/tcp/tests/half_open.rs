//! One side has forgotten a connection, the other has not, and the same ports open another.

use super::*;

/// A SYN that is answered with the numbers of the old connection, in which the client had come to `old`.
fn opened_over(old: u32) -> TestConnection {
    let mut test = TestConnection::default();
    test.add(0, Client, syn(1_000_000, None));
    test.add(30, Server, data(9_000, 0, old));
    let reset = Segment {
        flags: TcpHeader::RST,
        ack: None,
        ..data(old, 0, 0)
    };
    test.add(31, Client, reset);
    test.add(40, Client, syn(1_000_000, None));
    test.add(70, Server, syn(5_000, Some(1_000_001)));
    test.add(71, Client, data(1_000_001, 0, 5_001));
    test.add(100, Client, data(1_000_001, 10, 5_001));
    test.add(130, Server, data(5_001, 0, 1_000_011));
    test
}

#[test]
fn the_answer_of_an_old_connection_sets_no_number_of_the_new_one() {
    // Behind the SYN, and ahead of it by less than a window.
    for old in [300_000, 1_000_876] {
        let test = opened_over(old);
        let expected = [
            (Server, Event::AcknowledgedUnseen),
            (Client, Event::Reset),
            (Client, Event::Retransmission),
        ];
        assert_eq!(test.recorded.events, expected, "{old}");
        // It is unknown which of the two SYNs was answered.
        let expected = [(Half::Client, 1, Handshake), (Half::Server, 30, Bare)];
        assert_eq!(test.recorded.samples_by(Acknowledgement), expected, "{old}");
    }
}

#[test]
fn a_retransmitted_syn_clears_bytes_in_flight_of_an_old_connection() {
    let mut test = TestConnection::default();
    test.add(0, Client, stamped(syn(99, None), 1000, 0));
    test.add(
        30,
        Server,
        stamped(data(9_000, 0, 4_000_000_000), 5000, 700),
    );
    test.add(40, Client, stamped(syn(99, None), 1040, 0));
    test.add(70, Server, stamped(syn(499, Some(100)), 5040, 1040));
    assert_eq!(
        test.recorded.samples_by(Echo),
        [(Half::Server, 30, Handshake)]
    );
    assert_eq!(test.recorded.samples[0].in_flight, 1);
}

#[test]
fn a_missed_syn_ack_does_not_make_the_connection_an_older_one() {
    let mut test = TestConnection::default();
    test.add(0, Client, syn(99, None));
    // The SYN-ACK and the client's first ten bytes did not pass.
    test.add(40, Client, data(100, 0, 500));
    test.add(70, Server, data(500, 20, 110));
    test.add(71, Client, data(100, 10, 520));
    let expected = [
        (Server, Event::AcknowledgedUnseen),
        (Client, SpuriousRetransmission),
    ];
    assert_eq!(test.recorded.events, expected);
}
