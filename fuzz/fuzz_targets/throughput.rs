//! What the ends of a throughput test read from outside: control lines, preambles, datagrams.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::throughput::{
    ClientMessage, Header, MAX_LINE_BYTES, Lines, Preamble, RrTag, ServerMessage, encode_line,
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
    if let Some(first) = bytes.first_chunk()
        && let Some(preamble) = Preamble::decode(first)
    {
        assert_eq!(preamble.encode(), bytes[..Preamble::LEN]);
    }
    let whole = read::<ClientMessage>(bytes, bytes.len().max(1));
    assert_eq!(whole, read(bytes, 1));
    for message in whole {
        if let ClientMessage::Ask(ask) = &message
            && ask.check().is_ok()
        {
            assert!((1..=128).contains(&ask.all_streams()));
        }
        if let ClientMessage::AskRr(ask) = &message
            && ask.check().is_ok()
        {
            assert!(ask.carried_streams() <= 64 && ask.request_bytes.max(ask.reply_bytes) <= 1 << 20);
        }
        survives(&message);
    }
    let whole = read::<ServerMessage>(bytes, bytes.len().max(1));
    assert_eq!(whole, read(bytes, 7));
    whole.iter().for_each(survives);
});

/// The messages of these bytes until the first that is none, in pieces of this size.
fn read<M: DeserializeOwned>(bytes: &[u8], piece: usize) -> Vec<M> {
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
fn survives<M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(message: &M) {
    let line = encode_line(message);
    assert!(line.len() <= MAX_LINE_BYTES);
    let repeats = read::<M>(&line, 3);
    assert_eq!(repeats.iter().collect::<Vec<_>>(), [message]);
}
