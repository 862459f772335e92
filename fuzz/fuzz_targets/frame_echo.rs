//! TCP hellos, frames and our own messages: what decodes encodes to the same bytes, and no frame
//! exceeds the cap.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::echo::{REPLY_MIN, REQUEST_MIN, Reply, Request};
use neph_wire::frame::{HELLO_LEN, Hello, HelloReply, next_frame};

const CAP: u32 = 2048;

fuzz_target!(|bytes: &[u8]| {
    let mut reencoded = Vec::new();
    if let Ok(hello) = Hello::decode(bytes) {
        hello.encode(&mut reencoded);
        assert_eq!(reencoded, bytes[..HELLO_LEN]);
    }
    reencoded.clear();
    if let Ok(reply) = HelloReply::decode(bytes) {
        reply.encode(&mut reencoded);
        assert_eq!(reencoded, bytes[..HELLO_LEN]);
    }
    let mut rest = bytes;
    while let Ok(Some((consumed, payload))) = next_frame(rest, CAP) {
        assert!(payload.len() <= CAP as usize && consumed == payload.len() + 4);
        check_message(payload);
        rest = &rest[consumed..];
    }
    check_message(bytes);
});

fn check_message(bytes: &[u8]) {
    let mut reencoded = Vec::new();
    if let Ok(request) = Request::decode(bytes) {
        request.encode_into(REQUEST_MIN, &mut reencoded);
        assert_eq!(reencoded, bytes[..REQUEST_MIN]);
    }
    reencoded.clear();
    if let Ok(reply) = Reply::decode(bytes) {
        reply.encode_into(REPLY_MIN, &mut reencoded);
        assert_eq!(reencoded, bytes[..REPLY_MIN]);
    }
}
