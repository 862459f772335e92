//! What the ends of a throughput test read from outside: control lines, preambles, datagrams.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::throughput::{
    ClientMessage, Header, Lines, MAX_LINE_BYTES, Preamble, RrTag, ServerMessage, encode_line,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = Header::decode(bytes) {
        assert_eq!(header.encode(), bytes[..Header::LEN]);
    }
    if let Some(tag) = RrTag::decode(bytes) {
        assert_eq!(tag.encode(), bytes[..RrTag::LEN]);
    }
    if let Some(preamble_bytes) = bytes.first_chunk()
        && let Some(preamble) = Preamble::decode(preamble_bytes)
    {
        assert_eq!(preamble.encode(), bytes[..Preamble::LEN]);
    }
    let messages = decode_messages::<ClientMessage>(bytes, bytes.len().max(1));
    assert_eq!(messages, decode_messages(bytes, 1));
    for message in messages {
        if let ClientMessage::Ask(request) = &message
            && request.check().is_ok()
        {
            assert!((1..=128).contains(&request.all_streams()));
        }
        if let ClientMessage::AskRr(request) = &message
            && request.check().is_ok()
        {
            let largest = request.request_bytes.max(request.reply_bytes);
            assert!(request.carried_streams() <= 64 && largest <= 1 << 20);
        }
        assert_round_trip(&message);
    }
    let messages = decode_messages::<ServerMessage>(bytes, bytes.len().max(1));
    assert_eq!(messages, decode_messages(bytes, 7));
    messages.iter().for_each(assert_round_trip);
});

/// The messages of these bytes until the first that is none, in pieces of this size.
fn decode_messages<M: DeserializeOwned>(bytes: &[u8], piece: usize) -> Vec<M> {
    let (mut lines, mut messages) = (Lines::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        lines.push(piece);
        loop {
            match lines.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => return messages,
            }
        }
    }
    messages
}

/// Written as a line it is the same message, and fits.
fn assert_round_trip<M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(message: &M) {
    let line = encode_line(message);
    assert!(line.len() <= MAX_LINE_BYTES);
    let decoded = decode_messages::<M>(&line, 3);
    assert_eq!(decoded.iter().collect::<Vec<_>>(), [message]);
}
