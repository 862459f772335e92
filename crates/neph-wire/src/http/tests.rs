//! Unambiguous heads, request smuggling, bodies in pieces.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn request(lines: &str) -> Result<BodyLength, HttpError> {
    let text = format!("POST /echo HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    parse_request(text.as_bytes()).map(|head| head.expect("whole").body())
}

#[test]
fn a_body_has_at_most_one_length() {
    assert_eq!(request(""), Ok(BodyLength::Empty));
    assert_eq!(request("Content-Length: 0\r\n"), Ok(BodyLength::Empty));
    assert_eq!(
        request("content-length: 12\r\n"),
        Ok(BodyLength::Exactly(12))
    );
    assert_eq!(
        request("Content-Length: 12\r\nContent-Length: 12\r\n"),
        Ok(BodyLength::Exactly(12))
    );
    assert_eq!(
        request("Transfer-Encoding: Chunked\r\n"),
        Ok(BodyLength::Chunked)
    );
}

#[test]
fn ambiguous_lengths_and_headers_are_refused() {
    for value in [
        "-1",
        "+5",
        "5, 5",
        "",
        "0x10",
        "5 5",
        "9223372036854775808",
        "1e3",
        "1_0",
    ] {
        let lines = format!("Content-Length: {value}\r\n");
        assert_eq!(request(&lines), Err(HttpError::ContentLength), "{value}");
    }
    let long = format!("Content-Length: {}\r\n", "9".repeat(200));
    assert_eq!(request(&long), Err(HttpError::ContentLength));
    let cases = [
        (
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            HttpError::ContentLength,
        ),
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            HttpError::TwoLengths,
        ),
        ("Transfer-Encoding: gzip\r\n", HttpError::TransferEncoding),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            HttpError::TransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked, chunked\r\n",
            HttpError::TransferEncoding,
        ),
        (
            "Transfer-Encoding: xchunked\r\n",
            HttpError::TransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
            HttpError::TransferEncoding,
        ),
        ("Host: b\r\n", HttpError::Host),
        (
            "Content-Length : 5\r\n",
            HttpError::Syntax(httparse::Error::HeaderName),
        ),
        (
            " folded: 5\r\n",
            HttpError::Syntax(httparse::Error::HeaderName),
        ),
    ];
    for (lines, error) in cases {
        assert_eq!(request(lines), Err(error), "{lines}");
    }
    let old = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(
        parse_request(old).map(|_| ()),
        Err(HttpError::TransferEncoding)
    );
}

#[test]
fn header_size_and_count_are_capped() {
    let endless = vec![b'a'; MAX_HEAD + 1];
    let line = [b"GET /".as_slice(), &endless].concat();
    assert_eq!(
        parse_request(&line).map(|_| ()),
        Err(HttpError::HeadTooLong(MAX_HEAD))
    );
    assert!(
        parse_request(&line[..MAX_HEAD - 1])
            .expect("not too long yet")
            .is_none()
    );
    let many = "a: b\r\n".repeat(MAX_HEADERS);
    assert_eq!(request(&many), Err(HttpError::TooManyHeaders(MAX_HEADERS)));
    assert_eq!(
        request(&"a: b\r\n".repeat(MAX_HEADERS - 1)),
        Ok(BodyLength::Empty)
    );
}

#[test]
fn a_response_body_depends_on_the_request_method() {
    let head = |lines: &str| {
        let text = format!("HTTP/1.1 {lines}\r\n\r\n");
        let head = parse_response(text.as_bytes())
            .expect("syntax")
            .expect("whole");
        (head.body("GET"), head.body("HEAD"), head.keep_alive("GET"))
    };
    let empty = BodyLength::Empty;
    assert_eq!(
        head("200 OK\r\nContent-Length: 9"),
        (BodyLength::Exactly(9), empty, true)
    );
    assert_eq!(head("200 OK"), (BodyLength::UntilClose, empty, false));
    assert_eq!(head("204 No Content"), (empty, empty, true));
    assert_eq!(head("304 X\r\nContent-Length: 9"), (empty, empty, true));
    let closing = "200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x, Close";
    assert_eq!(head(closing), (BodyLength::Chunked, empty, false));
    let gzip = head("200 OK\r\nTransfer-Encoding: gzip");
    assert_eq!(gzip, (BodyLength::UntilClose, empty, false));
}

#[test]
fn http_1_0_closes_unless_keep_alive_is_requested() {
    let keeps = |text: &[u8]| {
        parse_request(text)
            .expect("syntax")
            .expect("whole")
            .keep_alive()
    };
    assert!(!keeps(b"GET / HTTP/1.0\r\n\r\n"));
    assert!(keeps(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
    assert!(keeps(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
}

#[test]
fn built_heads_are_parsed_back() {
    let mut out = Vec::new();
    let line = RequestLine {
        method: "POST",
        target: "/echo?reply=100",
        host: "[::1]:8080",
        content_length: Some(12),
        connection: Connection::Close,
    };
    line.encode(&[("User-Agent", "neph 0.1")], &mut out)
        .expect("plain");
    let head = parse_request(&out).expect("syntax").expect("whole");
    assert_eq!(
        (head.method(), head.target(), head.len()),
        ("POST", line.target, out.len())
    );
    assert_eq!(head.headers().only("user-agent"), Some(&b"neph 0.1"[..]));
    assert_eq!(
        (head.body(), head.keep_alive()),
        (BodyLength::Exactly(12), false)
    );

    let mut out = Vec::new();
    let line = ResponseLine {
        status: 429,
        content_length: Some(0),
        connection: Connection::KeepAlive,
    };
    line.encode(&[], &mut out).expect("plain");
    let head = parse_response(&out).expect("syntax").expect("whole");
    assert_eq!(
        (head.status(), head.body("GET"), head.keep_alive("GET")),
        (429, BodyLength::Empty, true)
    );
}

#[test]
fn user_input_cannot_inject_header_lines() {
    for target in ["", "/a b", "/\r\nX: y", "/ä", "/\0"] {
        let mut out = Vec::new();
        let line = RequestLine {
            method: "GET",
            target,
            host: "h",
            content_length: None,
            connection: Connection::Close,
        };
        assert_eq!(
            line.encode(&[], &mut out),
            Err(HttpError::Text),
            "{target:?}"
        );
        assert!(out.is_empty());
    }
    let line = ResponseLine {
        status: 200,
        content_length: None,
        connection: Connection::Close,
    };
    for extra in [("a:b", "c"), ("a", "b\nc"), ("", "x")] {
        assert_eq!(
            line.encode(&[extra], &mut Vec::new()),
            Err(HttpError::Text),
            "{extra:?}"
        );
    }
}

/// Reads `wire` in pieces; returns the body and the number of bytes left.
fn read(
    length: BodyLength,
    max: u64,
    wire: &[u8],
    piece: usize,
) -> Result<(Vec<u8>, Option<usize>), BodyError> {
    let mut reader = BodyReader::new(length, max)?;
    let (mut body, mut taken) = (Vec::new(), 0);
    for part in wire.chunks(piece.max(1)) {
        let mut remaining = part;
        loop {
            match reader.step(remaining)? {
                BodyStep::More => {
                    taken += remaining.len();
                    break;
                }
                BodyStep::Piece { consumed, payload } => {
                    assert!(!payload.is_empty() && consumed >= payload.len());
                    body.extend_from_slice(payload);
                    taken += consumed;
                    remaining = &remaining[consumed..];
                }
                BodyStep::Done { consumed } => {
                    return Ok((body, Some(wire.len() - taken - consumed)));
                }
            }
        }
    }
    let is_complete = reader.is_done() || reader.at_end_of_stream().is_ok();
    Ok((body, is_complete.then_some(0)))
}

#[test]
fn chunks_are_joined_and_trailers_skipped() {
    let wire = b"5;ext=\"x\"\r\nhello\r\n1 \r\n \r\n006\r\nworld!\r\n0\r\nTrailer: x\r\n\r\nNEXT";
    for piece in 1..wire.len() {
        let result = read(BodyLength::Chunked, 12, wire, piece);
        let (body, left) = result.expect("a good body");
        assert_eq!(body, b"hello world!");
        assert!(left.is_some());
    }
    assert_eq!(
        read(BodyLength::Chunked, 12, wire, 1000).expect("good").1,
        Some(4)
    );
}

#[test]
fn broken_chunks_are_refused() {
    let cases: [(&[u8], BodyError); 9] = [
        (b"\r\n", BodyError::ChunkSize),
        (b"-1\r\n", BodyError::ChunkSize),
        (b"0x5\r\n", BodyError::ChunkSize),
        (b"8000000000000000\r\n", BodyError::ChunkSize),
        (b"00000000000000001\r\n", BodyError::ChunkSize),
        (b"1;\n", BodyError::ChunkEnd),
        (b"1\r\nab", BodyError::ChunkEnd),
        (b"0\r\na: b\n", BodyError::ChunkEnd),
        (
            b"65\r\n",
            BodyError::TooLong {
                length: 101,
                max: 100,
            },
        ),
    ];
    for (wire, error) in cases {
        assert_eq!(
            read(BodyLength::Chunked, 100, wire, 3),
            Err(error),
            "{wire:?}"
        );
    }
    let long = [b"1;".as_slice(), &[b'x'; 300]].concat();
    assert_eq!(
        read(BodyLength::Chunked, 100, &long, 7),
        Err(BodyError::Trailer)
    );
    let long = [b"0\r\na:".as_slice(), &vec![b'x'; 20_000]].concat();
    assert_eq!(
        read(BodyLength::Chunked, 100, &long, 512),
        Err(BodyError::Trailer)
    );
}

#[test]
fn a_body_with_content_length_ends_before_the_next_request() {
    assert_eq!(
        read(BodyLength::Exactly(3), 3, b"abcGET", 2),
        Ok((b"abc".to_vec(), Some(3)))
    );
    assert_eq!(
        read(BodyLength::Exactly(4), 3, b"", 2),
        Err(BodyError::TooLong { length: 4, max: 3 })
    );
    assert_eq!(
        read(BodyLength::Exactly(4), 4, b"abc", 2),
        Ok((b"abc".to_vec(), None))
    );
    assert_eq!(
        read(BodyLength::UntilClose, 4, b"abc", 2),
        Ok((b"abc".to_vec(), Some(0)))
    );
    assert_eq!(
        read(BodyLength::UntilClose, 2, b"abc", 2),
        Err(BodyError::TooLong { length: 3, max: 2 })
    );
}

proptest! {
    #[test]
    fn chunked_bodies_roundtrip(chunks in vec(vec(any::<u8>(), 1..80), 0..6), piece in 1usize..99) {
        let mut wire = Vec::new();
        for chunk in &chunks {
            wire.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
            wire.extend_from_slice(chunk);
            wire.extend_from_slice(b"\r\n");
        }
        wire.extend_from_slice(b"0\r\n\r\n");
        let (body, left) = read(BodyLength::Chunked, 1 << 20, &wire, piece).expect("good");
        prop_assert_eq!((body, left), (chunks.concat(), Some(0)));
        let (_, cut) = read(BodyLength::Chunked, 1 << 20, &wire[..wire.len() - 1], piece)
            .expect("good so far");
        prop_assert_eq!(cut, None);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200), piece in 1usize..50) {
        let _ = parse_request(&bytes).map(|head| head.map(|head| head.body()));
        let _ = parse_response(&bytes).map(|head| head.map(|head| head.body("GET")));
        if let Ok((body, _)) = read(BodyLength::Chunked, 40, &bytes, piece) {
            prop_assert!(body.len() <= 40);
        }
    }

    #[test]
    fn a_truncated_head_is_incomplete(cut in 0usize..51) {
        let text = b"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
        prop_assert!(matches!(parse_request(&text[..cut.min(text.len() - 1)]), Ok(None)));
    }
}

#[test]
fn a_response_may_have_hundreds_of_headers_and_a_long_head() {
    let response = |lines: usize, length: usize| {
        let cookie = "c".repeat(length);
        let lines = format!("Set-Cookie: {cookie}\r\n").repeat(lines);
        format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n")
    };
    for (lines, length) in [(100, 10), (1023, 10), (1, 64 << 10), (3, 80 << 10)] {
        let text = response(lines, length);
        let head = parse_response(text.as_bytes())
            .expect("allowed")
            .expect("whole");
        assert_eq!(
            (head.len(), head.headers().iter().count()),
            (text.len(), lines + 1)
        );
        assert_eq!(head.headers().only("content-length"), Some(&b"0"[..]));
    }
    let maximum = MAX_RESPONSE_HEADERS;
    let refused = parse_response(response(maximum, 1).as_bytes()).map(|_| ());
    assert_eq!(refused, Err(HttpError::TooManyHeaders(maximum)));
    let refused = parse_response(response(1, 256 << 10).as_bytes()).map(|_| ());
    assert_eq!(refused, Err(HttpError::HeadTooLong(MAX_RESPONSE_HEAD)));
}
