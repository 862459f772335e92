//! Response heads and bodies. What needs no body has none; a reused connection always has a body
//! whose end is known; the count of body bytes agrees with what was handed out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::http::{BodyLength, BodyReader, BodyStep, MAX_HEAD, parse_response};
use neph_wire::marks::{HEADER, PeerMarks};
use neph_wire::ws::check_response;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(head)) = parse_response(bytes) else { return };
    assert!(head.len() <= MAX_HEAD && head.len() <= bytes.len());
    assert_eq!(head.body("HEAD"), BodyLength::Empty);
    if head.keep_alive("GET") {
        assert_ne!(head.body("GET"), BodyLength::UntilClose);
    }
    if check_response(&head, "dGhlIHNhbXBsZSBub25jZQ==").is_ok() {
        assert_eq!(head.status(), 101);
    }
    if let Some(text) = head.headers().only(HEADER)
        && let Ok(marks) = PeerMarks::decode_hex(text)
    {
        let mut reencoded = Vec::new();
        marks.encode_hex(&mut reencoded);
        assert!(reencoded.eq_ignore_ascii_case(text));
    }
    let Ok(mut reader) = BodyReader::new(head.body("GET"), 1 << 16) else { return };
    let (mut rest, mut count) = (&bytes[head.len()..], 0u64);
    while let Ok(BodyStep::Piece { consumed, payload }) = reader.step(rest) {
        count += payload.len() as u64;
        rest = &rest[consumed..];
        assert_eq!(reader.received(), count);
    }
    if let (BodyLength::Exactly(length), true) = (head.body("GET"), reader.is_done()) {
        assert_eq!(count, length);
    }
});
