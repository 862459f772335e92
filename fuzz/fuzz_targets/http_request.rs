//! Request heads and chunked bodies. A head that parses has one length of body and stays within
//! the caps; the query's reply size stays within its cap; a body is the same however it is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::http::{
    BodyError, BodyLength, BodyReader, BodyStep, MAX_HEAD, parse_request, reply_size,
};

const CAP: u64 = 1000;

fn body(length: BodyLength, wire: &[u8], piece: usize) -> Result<(Vec<u8>, bool), BodyError> {
    let mut reader = BodyReader::new(length, CAP)?;
    let mut out = Vec::new();
    for mut part in wire.chunks(piece) {
        loop {
            match reader.step(part)? {
                BodyStep::More => break,
                BodyStep::Done { consumed } => {
                    assert!(consumed <= part.len());
                    return Ok((out, true));
                }
                BodyStep::Piece { consumed, payload } => {
                    assert!(!payload.is_empty());
                    out.extend_from_slice(payload);
                    assert!(out.len() as u64 <= CAP);
                    part = &part[consumed..];
                }
            }
        }
    }
    Ok((out, reader.is_done()))
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(head)) = parse_request(bytes) else { return };
    assert!(head.len() <= MAX_HEAD && head.len() <= bytes.len());
    let lengths = head.headers().get_all("content-length").count();
    let codings = head.headers().get_all("transfer-encoding").count();
    assert!(lengths == 0 || codings == 0, "two lengths");
    match head.body() {
        BodyLength::Empty => assert_eq!(codings, 0),
        BodyLength::Exactly(length) => assert!(lengths > 0 && length > 0 && length >> 63 == 0),
        BodyLength::Chunked => assert_eq!(codings, 1),
        BodyLength::UntilClose => panic!("a request cannot end with the connection"),
    }
    if let Ok(Some(size)) = reply_size(head.target(), CAP) {
        assert!(size <= CAP);
    }
    let rest = &bytes[head.len()..];
    assert_eq!(body(head.body(), rest, 3), body(head.body(), rest, rest.len().max(1)));
});
