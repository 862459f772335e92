//! WebSocket frames. However the bytes are cut, the same messages come out; no message exceeds the
//! cap, nor do all together exceed what came in; a header that parses is what we would write.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::ws::{
    Assembler, Event, MAX_HEADER, Role, Step, WsError, encode_header, parse_header,
};

const CAP: usize = 4096;

fn messages(role: Role, bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<WsError>) {
    let mut assembler = Assembler::new(role, CAP);
    let (mut buffer, mut messages) = (Vec::new(), Vec::new());
    for part in bytes.chunks(piece) {
        buffer.extend_from_slice(part);
        loop {
            let buffered = buffer.len();
            match assembler.step(&mut buffer) {
                Err(error) => return (messages, Some(error)),
                Ok(Step::Incomplete { wanted }) => {
                    assert!(wanted > buffered && wanted <= CAP + MAX_HEADER);
                    break;
                }
                Ok(Step::Frame { consumed, event }) => {
                    assert!(consumed > 0 && consumed <= buffered);
                    if let Event::Message(_, payload) = event {
                        assert!(payload.len() <= CAP);
                        messages.push(payload.to_vec());
                    }
                    buffer.drain(..consumed);
                }
            }
        }
    }
    (messages, None)
}

/// Who wants control frames only keeps less than one of them.
fn check_control_frames_only(role: Role, bytes: &[u8], piece: usize) {
    let mut assembler = Assembler::control_frames(role);
    let mut buffer = Vec::new();
    for part in bytes.chunks(piece) {
        buffer.extend_from_slice(part);
        while let Ok(Step::Frame { consumed, event }) = assembler.step(&mut buffer) {
            assert!(!matches!(event, Event::Message(..)));
            buffer.drain(..consumed);
        }
        if assembler.step(&mut buffer).is_err() {
            return;
        }
        assert!(assembler.buffered() == 0 && buffer.len() < MAX_HEADER + 125);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let piece = usize::from(first >> 1).max(1);
    let role = if first & 1 == 0 {
        Role::Client
    } else {
        Role::Server
    };
    let in_pieces = messages(role, rest, piece);
    assert_eq!(in_pieces, messages(role, rest, rest.len().max(1)));
    assert!(in_pieces.0.iter().map(Vec::len).sum::<usize>() <= rest.len());
    check_control_frames_only(role, rest, piece);
    if let Ok(Some(header)) = parse_header(rest) {
        let mut reencoded = Vec::new();
        let len = usize::try_from(header.len).expect("64 bits");
        encode_header(&mut reencoded, header.opcode, header.fin, header.mask, len);
        assert_eq!(reencoded, rest[..header.header_len]);
    }
});
