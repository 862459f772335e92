use proptest::prelude::*;

use super::*;

fn test_request() -> TestRequest {
    TestRequest {
        version: VERSION,
        protocol: Protocol::Udp,
        direction: Direction::Both,
        streams: 3,
        duration_ns: 10_000_000_000,
        rate_bit_s: Some(50_000_000),
        datagram_bytes: 1448,
        congestion: None,
        dscp: None,
    }
}

#[test]
fn a_header_is_32_bytes_in_network_order() {
    let header = Header {
        content: Content::Data,
        stream: 0x0102,
        token: Token(0x1122_3344_5566_7788),
        sequence: 5,
        sent_ns: -2,
    };
    let bytes = header.encode();
    let mut expected = b"NTPd\x01\x01\x01\x02\x11\x22\x33\x44\x55\x66\x77\x88".to_vec();
    expected.extend([0, 0, 0, 0, 0, 0, 0, 5]);
    expected.extend([255, 255, 255, 255, 255, 255, 255, 254]);
    assert_eq!(bytes.to_vec(), expected);
    assert_eq!(Header::decode(&bytes), Ok(header));
}

#[test]
fn short_or_unknown_bytes_are_no_header() {
    let mut bytes = [0; Header::LEN];
    assert_eq!(Header::decode(&bytes), Err(HeaderError::Unrecognised));
    assert_eq!(Header::decode(&bytes[1..]), Err(HeaderError::TooShort(31)));
    bytes[..6].copy_from_slice(b"NTPd\x01\x02");
    assert_eq!(Header::decode(&bytes), Err(HeaderError::Unrecognised));
    bytes[4] = 2;
    assert_eq!(Header::decode(&bytes), Err(HeaderError::Unrecognised));
}

#[test]
fn preambles_roundtrip_and_are_no_json_line() {
    let preamble = Preamble {
        stream: 7,
        token: Token(u64::MAX - 1),
    };
    let bytes = preamble.encode();
    assert_eq!(Preamble::decode(&bytes), Some(preamble));
    assert_ne!(bytes[0], b'{');
    let mut other = bytes;
    other[4] = 9;
    assert_eq!(Preamble::decode(&other), None);
}

#[test]
fn a_token_is_16_hexadecimal_digits_and_never_shown() {
    let granted = ServerMessage::Granted { token: Token(0xab) };
    let line = encode_line(&granted);
    let text = String::from_utf8_lossy(&line);
    assert_eq!(
        text,
        "{\"message\":\"granted\",\"token\":\"00000000000000ab\"}\n"
    );
    assert!(!format!("{granted:?}").contains("ab"));
    let mut lines = Lines::default();
    lines.push(b"{\"message\":\"granted\",\"token\":\"+0000000000000ab\"}\n");
    assert!(lines.next_message::<ServerMessage>().is_err());
}

#[test]
fn an_endless_line_is_refused_at_the_length_limit() {
    let mut lines = Lines::default();
    lines.push(&vec![b' '; MAX_LINE_BYTES]);
    assert!(matches!(lines.next_message::<ClientMessage>(), Ok(None)));
    lines.push(b"  ");
    assert!(matches!(
        lines.next_message::<ClientMessage>(),
        Err(LineError::TooLong)
    ));
}

#[test]
fn streams_of_the_server_are_numbered_after_those_of_the_client() {
    let bidirectional = test_request();
    assert_eq!(bidirectional.all_streams(), 6);
    assert!(bidirectional.is_up(2) && !bidirectional.is_up(3));
    let down = TestRequest {
        direction: Direction::Down,
        ..test_request()
    };
    assert_eq!(down.all_streams(), 3);
    assert!(!down.is_up(0));
}

#[test]
fn each_invalid_field_is_refused_by_its_name() {
    assert_eq!(test_request().check(), Ok(()));
    let refused = |change: fn(&mut TestRequest)| {
        let mut invalid = test_request();
        change(&mut invalid);
        invalid.check().expect_err("it cannot be meant").to_string()
    };
    assert!(refused(|test_request| test_request.version = 2).contains("version 2"));
    assert_eq!(
        refused(|test_request| test_request.streams = 0),
        "streams is 0, from 1 to 64 is possible"
    );
    assert!(refused(|test_request| test_request.duration_ns = 1).starts_with("duration_ns"));
    assert!(refused(|test_request| test_request.datagram_bytes = 31).starts_with("datagram_bytes"));
    assert!(
        refused(|test_request| test_request.datagram_bytes = 65_508).starts_with("datagram_bytes")
    );
    assert!(refused(|test_request| test_request.rate_bit_s = Some(1)).starts_with("rate_bit_s"));
    assert!(refused(|test_request| test_request.dscp = Some(64)).starts_with("dscp"));
    assert!(
        refused(|test_request| test_request.congestion = Some("a b".to_owned()))
            .contains("congestion")
    );
}

fn rr(kind: RrKind) -> RrTestRequest {
    RrTestRequest {
        version: VERSION,
        kind,
        streams: 2,
        duration_ns: 1_000_000_000,
        request_bytes: 16,
        reply_bytes: 16,
        dscp: Some(46),
    }
}

#[test]
fn a_tag_is_16_bytes_in_network_order() {
    let tag = RrTag {
        token: Token(0x1122_3344_5566_7788),
        number: 5,
    };
    let bytes = tag.encode();
    assert_eq!(
        bytes,
        *b"\x11\x22\x33\x44\x55\x66\x77\x88\0\0\0\0\0\0\0\x05"
    );
    assert_eq!(RrTag::decode(&bytes), Some(tag));
    assert_eq!(RrTag::decode(&bytes[1..]), None);
}

#[test]
fn the_size_of_a_request_response_test_has_a_minimum_and_a_maximum() {
    let refused = |kind: RrKind, change: fn(&mut RrTestRequest)| {
        let mut request = rr(kind);
        assert_eq!(request.check(), Ok(()));
        change(&mut request);
        request.check().map_err(|error| error.to_string())
    };
    let short = |name: &str, minimum: u32, maximum: u32| {
        Err(format!(
            "{name} is {}, from {minimum} to {maximum} is possible",
            minimum - 1
        ))
    };
    let set_short_request = |test_request: &mut RrTestRequest| test_request.request_bytes = 15;
    assert_eq!(
        refused(RrKind::UdpRr, set_short_request),
        short("request_bytes", 16, 65_507)
    );
    assert_eq!(
        refused(RrKind::TcpCrr, set_short_request),
        short("request_bytes", 16, 1 << 20)
    );
    assert_eq!(refused(RrKind::TcpRr, set_short_request), Ok(()));
    assert!(refused(RrKind::UdpRr, |test_request| test_request.reply_bytes = 15).is_err());
    assert!(refused(RrKind::TcpCrr, |test_request| test_request.reply_bytes = 0).is_err());
    assert!(
        refused(RrKind::UdpRr, |test_request| test_request.reply_bytes =
            65_508)
        .is_err()
    );
    assert!(
        refused(RrKind::TcpRr, |test_request| test_request.reply_bytes =
            (1 << 20) + 1)
        .is_err()
    );
    assert!(refused(RrKind::TcpRr, |test_request| test_request.streams = 65).is_err());
    assert!(refused(RrKind::TcpRr, |test_request| test_request.duration_ns = 0).is_err());
    assert!(refused(RrKind::TcpRr, |test_request| test_request.dscp = Some(64)).is_err());
    assert!(refused(RrKind::TcpRr, |test_request| test_request.version = 9).is_err());
    let carried = |kind| rr(kind).carried_streams();
    assert_eq!((carried(RrKind::UdpRr), carried(RrKind::TcpCrr)), (2, 0));
}

proptest! {
    #[test]
    fn tags_roundtrip(token: u64, number: u64, payload in prop::collection::vec(any::<u8>(), 0..40)) {
        let tag = RrTag { token: Token(token), number };
        let mut datagram = tag.encode().to_vec();
        datagram.extend(payload);
        prop_assert_eq!(RrTag::decode(&datagram), Some(tag));
    }

    #[test]
    fn headers_roundtrip(stream: u16, token: u64, sequence: u64, sent_ns: i64, is_data: bool) {
        let content = if is_data { Content::Data } else { Content::Hello };
        let header = Header { content, stream, token: Token(token), sequence, sent_ns };
        let mut datagram = header.encode().to_vec();
        datagram.extend([9; 11]);
        prop_assert_eq!(Header::decode(&datagram), Ok(header));
    }

    #[test]
    fn messages_are_parsed_the_same_however_the_bytes_are_split(cuts in prop::collection::vec(1_usize..40, 1..30)) {
        let sent = [
            ClientMessage::Ask(test_request()),
            ClientMessage::AskRr(rr(RrKind::TcpRr)),
            ClientMessage::Start,
            ClientMessage::End,
        ];
        let bytes: Vec<u8> = sent.iter().flat_map(encode_line).collect();
        let (mut lines, mut read, mut remaining) = (Lines::default(), Vec::new(), &bytes[..]);
        for cut in cuts.into_iter().cycle() {
            let (now, later) = remaining.split_at(cut.min(remaining.len()));
            lines.push(now);
            while let Some(message) = lines.next_message::<ClientMessage>().expect("a message") {
                read.push(message);
            }
            remaining = later;
            if remaining.is_empty() {
                break;
            }
        }
        prop_assert_eq!(read, sent);
    }

    /// Like the fuzz target, with changes to valid input.
    #[test]
    fn arbitrary_bytes_are_parsed_the_same_in_pieces_and_never_panic(
        place in 0_usize..2_000,
        byte: u8,
        piece in 1_usize..50,
    ) {
        let cpu = CpuInterval {
            cores: vec![CoreShare::default(); 2],
            ..CpuInterval::default()
        };
        let received = ReceivedInterval {
            udp: Some(UdpCounters::default()),
            ..ReceivedInterval::default()
        };
        let sent = SentInterval {
            tcp: Some(TcpCounters::default()),
            ..SentInterval::default()
        };
        let intervals = Intervals {
            sent: vec![sent],
            received: vec![received],
            exchanged: vec![RrInterval::default()],
            variation: Vec::new(),
            cpu: vec![cpu],
        };
        let mut bytes = encode_line(&ServerMessage::Intervals(intervals));
        if let Some(changed) = bytes.get_mut(place) {
            *changed = byte;
        }
        let _ = Header::decode(&bytes);
        let read = |piece: usize| {
            let (mut lines, mut read) = (Lines::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                lines.push(piece);
                loop {
                    match lines.next_message::<ServerMessage>() {
                        Ok(Some(message)) => read.push(message),
                        Ok(None) => break,
                        Err(_) => return read,
                    }
                }
            }
            read
        };
        prop_assert_eq!(read(bytes.len()), read(piece));
    }
}
