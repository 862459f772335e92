//! DNS responses and the framing of DNS over TCP: a response that reads repeats its own question and no
//! other; messages of a stream are the same however it is cut, and together no longer than it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::dns::{HEADER_LEN, Question, encode_framed_query, next_message, parse_response};

fn messages(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut found) = (stream, Vec::new());
    while let Some((taken, message)) = next_message(rest) {
        assert_eq!(taken, message.len() + 2);
        found.push(message.to_vec());
        rest = &rest[taken..];
    }
    found
}

fuzz_target!(|bytes: &[u8]| {
    let whole = messages(bytes);
    let mut inbox = Vec::new();
    let mut pieces = Vec::new();
    for byte in bytes {
        inbox.push(*byte);
        for message in messages(&inbox) {
            inbox.drain(..message.len() + 2);
            pieces.push(message);
        }
    }
    assert_eq!(whole, pieces);
    for message in whole.iter().map(Vec::as_slice).chain([bytes]) {
        let Ok(response) = parse_response(message) else { continue };
        assert!(response.rcode < 16 && message.len() > HEADER_LEN);
        let other = Question::new("other.example", 1).expect("a name");
        let asked = message[HEADER_LEN..].starts_with(b"\x05other\x07example\0\0\x01\0\x01");
        assert!(!asked || response.repeats(&other));
    }
    let Ok(name) = str::from_utf8(bytes) else { return };
    let Ok(question) = Question::new(name, 28) else { return };
    let mut query = Vec::new();
    encode_framed_query(&question, 7, &mut query);
    let (taken, message) = next_message(&query).expect("it is whole");
    assert_eq!((taken, message.len()), (query.len(), question.query_len()));
    let mut reply = message.to_vec();
    assert!(parse_response(&reply).is_err(), "a query is no response");
    reply[2] |= 0x80;
    assert!(parse_response(&reply).expect("a response").repeats(&question));
});
