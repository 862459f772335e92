//! DNS responses and the framing of DNS over TCP: a response that reads repeats its own question and no
//! other; messages of a stream are the same however it is cut, and together no longer than it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::dns::{HEADER_LEN, Question, encode_framed_query, next_message, parse_response};

fn messages(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut unread, mut messages) = (stream, Vec::new());
    while let Some((consumed, message)) = next_message(unread) {
        assert_eq!(consumed, message.len() + 2);
        messages.push(message.to_vec());
        unread = &unread[consumed..];
    }
    messages
}

fuzz_target!(|bytes: &[u8]| {
    let all_messages = messages(bytes);
    let mut received = Vec::new();
    let mut messages_in_pieces = Vec::new();
    for byte in bytes {
        received.push(*byte);
        for message in messages(&received) {
            received.drain(..message.len() + 2);
            messages_in_pieces.push(message);
        }
    }
    assert_eq!(all_messages, messages_in_pieces);
    for message in all_messages.iter().map(Vec::as_slice).chain([bytes]) {
        let Ok(response) = parse_response(message) else {
            continue;
        };
        assert!(response.rcode < 16 && message.len() > HEADER_LEN);
        let other = Question::new("other.example", 1).expect("a name");
        let is_other_question =
            message[HEADER_LEN..].starts_with(b"\x05other\x07example\0\0\x01\0\x01");
        assert!(!is_other_question || response.repeats(&other));
    }
    let Ok(name) = str::from_utf8(bytes) else {
        return;
    };
    let Ok(question) = Question::new(name, 28) else {
        return;
    };
    let mut query = Vec::new();
    encode_framed_query(&question, 7, &mut query);
    let (consumed, message) = next_message(&query).expect("it is whole");
    assert_eq!(
        (consumed, message.len()),
        (query.len(), question.query_len())
    );
    let mut reply = message.to_vec();
    assert!(parse_response(&reply).is_err(), "a query is no response");
    reply[2] |= 0x80;
    assert!(
        parse_response(&reply)
            .expect("a response")
            .repeats(&question)
    );
});
