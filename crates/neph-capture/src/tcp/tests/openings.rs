//! Connections that open: again, with data, or seen from one side.

use super::*;

fn ended_by(flags: u8) -> TestConnection {
    let mut test = opened();
    let end = Segment {
        flags,
        ..data(100, 0, 500)
    };
    test.add(50, Client, end);
    test.recorded = RecordedConnection::default();
    test
}

#[test]
fn a_syn_after_a_reset_or_fin_opens_another_connection_with_any_number() {
    for flags in [TcpHeader::RST, TcpHeader::RST | ACK, TcpHeader::FIN | ACK] {
        let mut test = ended_by(flags);
        test.add(1_000, Client, syn(99, None));
        test.add(1_030, Server, syn(499, Some(100)));
        assert_eq!(test.recorded.events, [], "{flags}");
        let expected = [(Half::Server, 30, Handshake)];
        assert_eq!(
            test.recorded.samples_by(Acknowledgement),
            expected,
            "{flags}"
        );
    }
    // Without an end it is the same.
    let mut test = opened();
    test.add(1_000, Client, syn(99, None));
    assert_eq!(test.recorded.events, [(Client, SpuriousRetransmission)]);
}

#[test]
fn with_only_server_packets_each_syn_ack_after_an_end_opens_a_connection() {
    let mut test = TestConnection::default();
    for round in 0..3 {
        let at = i64::from(round) * 1_000;
        test.add(at, Server, syn(499, Some(100)));
        let reset = Segment {
            flags: TcpHeader::RST,
            ..data(500, 0, 100)
        };
        test.add(at + 10, Server, reset);
    }
    assert_eq!(test.recorded.events, [(Server, Event::Reset); 3]);
}

/// A SYN with 50 bytes of data, 20 ms from the server.
fn fast_open() -> TestConnection {
    let mut test = TestConnection::default();
    let opening = Segment {
        length: 50,
        ..stamped(syn(99, None), 1000, 0)
    };
    test.add(0, Client, opening);
    test
}

#[test]
fn a_handshake_whose_data_was_refused_has_a_round_trip() {
    let mut test = fast_open();
    test.add(20, Server, stamped(syn(499, Some(100)), 5000, 1000));
    test.add(21, Client, stamped(data(100, 50, 500), 1021, 5000));
    test.add(41, Server, stamped(data(500, 0, 150), 5041, 1021));
    let expected = [
        (Half::Server, 20, Handshake),
        (Half::Client, 1, WithData),
        (Half::Server, 20, Bare),
    ];
    assert_eq!(test.recorded.samples_by(Acknowledgement), expected);
    assert_eq!(test.recorded.samples_by(Echo), expected);
    assert_eq!(test.recorded.events, [(Client, Event::Retransmission)]);
}

#[test]
fn a_fast_open_handshake_with_accepted_data_has_one_round_trip() {
    let mut test = fast_open();
    test.add(20, Server, stamped(syn(499, Some(150)), 5000, 1000));
    test.add(21, Client, stamped(data(150, 0, 500), 1021, 5000));
    let expected = [(Half::Server, 20, Handshake), (Half::Client, 1, Handshake)];
    assert_eq!(test.recorded.samples_by(Acknowledgement), expected);
    assert_eq!(test.recorded.events, []);
}
