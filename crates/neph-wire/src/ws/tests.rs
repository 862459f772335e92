//! The examples of RFC 6455, and properties.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::http::parse_request;

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

fn frame(opcode: Opcode, fin: Fin, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(&mut out, opcode, fin, mask, &[payload]);
    out
}

#[test]
fn frames_match_the_examples_of_rfc_6455() {
    // Section 5.7, in its order.
    let hello = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    assert_eq!(frame(Opcode::Text, Fin::Last, None, b"Hello"), hello);
    let masked = [
        0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
    ];
    assert_eq!(frame(Opcode::Text, Fin::Last, Some(KEY), b"Hello"), masked);
    assert_eq!(
        frame(Opcode::Text, Fin::More, None, b"Hel"),
        [0x01, 0x03, 0x48, 0x65, 0x6c]
    );
    assert_eq!(
        frame(Opcode::Continuation, Fin::Last, None, b"lo"),
        [0x80, 0x02, 0x6c, 0x6f]
    );
    assert_eq!(
        frame(Opcode::Ping, Fin::Last, None, b"Hello")[..2],
        [0x89, 0x05]
    );
    let medium = frame(Opcode::Binary, Fin::Last, None, &[0; 256]);
    assert_eq!(medium[..4], [0x82, 0x7e, 0x01, 0x00]);
    let large = frame(Opcode::Binary, Fin::Last, None, &vec![0; 65_536]);
    assert_eq!(large[..10], [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn the_accept_key_matches_the_example_of_rfc_6455() {
    assert_eq!(
        accept_key("dGhlIHNhbXBsZSBub25jZQ=="),
        "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    );
    assert_eq!(client_key(*b"the sample nonce"), "dGhlIHNhbXBsZSBub25jZQ==");
}

#[test]
fn frames_that_the_rfc_forbids_are_refused() {
    let cases: [(&[u8], WsError); 9] = [
        (&[0xc1, 0], WsError::ReservedBits(0x40)),
        (&[0x83, 0], WsError::Opcode(3)),
        (&[0x8b, 0], WsError::Opcode(11)),
        (&[0x09, 0], WsError::FragmentedControl),
        (&[0x89, 126], WsError::LongControl),
        (&[0x82, 126, 0, 125], WsError::LengthForm(125)),
        (
            &[0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
            WsError::LengthForm(65_535),
        ),
        (&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], WsError::LengthSign),
        (
            &[0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0],
            WsError::LengthSign,
        ),
    ];
    for (bytes, error) in cases {
        assert_eq!(parse_header(bytes), Err(error), "{bytes:02x?}");
    }
}

#[test]
fn a_huge_frame_is_refused_by_its_header() {
    let mut assembler = Assembler::new(Role::Client, 1 << 20);
    let mut header = vec![0x82, 127, 0, 0, 0, 2, 0x54, 0x0b, 0xe4, 0];
    let refused = WsError::TooLong {
        length: 10_000_000_000,
        max: 1 << 20,
    };
    assert_eq!(assembler.step(&mut header), Err(refused));
    assert_eq!(assembler.buffer.capacity(), 0);
    assert_eq!(refused.close_code(), CloseCode::TOO_BIG);
}

#[test]
fn fragments_count_together_against_the_cap() {
    let mut assembler = Assembler::new(Role::Client, 5);
    let mut first = frame(Opcode::Binary, Fin::More, None, b"abc");
    assert!(matches!(
        assembler.step(&mut first),
        Ok(Step::Frame {
            event: Event::Fragment,
            ..
        })
    ));
    let mut second = frame(Opcode::Continuation, Fin::Last, None, b"def");
    assert_eq!(
        assembler.step(&mut second),
        Err(WsError::TooLong { length: 6, max: 5 })
    );
}

#[test]
fn a_fragmented_message_releases_its_memory() {
    let mut assembler = Assembler::new(Role::Client, 1 << 20);
    let half = vec![7; 1 << 19];
    let mut first = frame(Opcode::Binary, Fin::More, None, &half);
    assert!(assembler.step(&mut first).is_ok());
    assert_eq!(assembler.buffered(), half.len());
    let mut last = frame(Opcode::Continuation, Fin::Last, None, &half);
    let step = assembler.step(&mut last).expect("nothing is wrong");
    assert!(matches!(
        step,
        Step::Frame { event: Event::Message(Kind::Binary, bytes), .. } if bytes.len() == 1 << 20
    ));
    assert_eq!(assembler.buffered(), 0);
    assert!(assembler.step(&mut []).is_ok());
    assert!(assembler.buffer.capacity() < 1 << 17);
}

#[test]
fn frames_in_the_wrong_order_or_from_the_wrong_side_are_refused() {
    let step = |role, mut bytes: Vec<u8>| {
        Assembler::new(role, 10)
            .step(&mut bytes)
            .map(|step| format!("{step:?}"))
    };
    let unmasked = frame(Opcode::Binary, Fin::Last, None, b"a");
    let masked = frame(Opcode::Binary, Fin::Last, Some(KEY), b"a");
    assert_eq!(step(Role::Server, unmasked), Err(WsError::Masking));
    assert_eq!(step(Role::Client, masked), Err(WsError::Masking));
    let unknown_id = frame(Opcode::Continuation, Fin::Last, None, b"a");
    assert_eq!(step(Role::Client, unknown_id), Err(WsError::FragmentOrder));
    let text = frame(Opcode::Text, Fin::Last, None, &[0xff]);
    assert_eq!(step(Role::Client, text), Err(WsError::Utf8));
    for code in [0u16, 999, 1004, 1005, 1006, 1015, 2999, 5000] {
        let close = frame(Opcode::Close, Fin::Last, None, &code.to_be_bytes());
        assert_eq!(step(Role::Client, close), Err(WsError::CloseCode), "{code}");
    }
    let one_byte = frame(Opcode::Close, Fin::Last, None, &[3]);
    assert_eq!(step(Role::Client, one_byte), Err(WsError::CloseCode));
}

#[test]
fn a_long_reason_is_cut_at_a_character() {
    let reason = "ä".repeat(100);
    let mut out = Vec::new();
    encode_close(
        &mut out,
        None,
        Close {
            code: CloseCode::POLICY,
            reason: &reason,
        },
    );
    let mut assembler = Assembler::new(Role::Client, 0);
    let Ok(Step::Frame {
        event: Event::Close(Some(close)),
        ..
    }) = assembler.step(&mut out)
    else {
        panic!("not a close");
    };
    assert_eq!((close.code, close.reason.len()), (CloseCode::POLICY, 122));
}

/// Reads `bytes` in pieces of `piece` bytes and returns the binary messages.
pub(super) fn assemble(role: Role, bytes: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, WsError> {
    let mut assembler = Assembler::new(role, 1 << 20);
    let (mut buffer, mut messages) = (Vec::new(), Vec::new());
    for part in bytes.chunks(piece.max(1)) {
        buffer.extend_from_slice(part);
        loop {
            let old_len = buffer.len();
            match assembler.step(&mut buffer)? {
                Step::Incomplete { wanted } => {
                    assert!(wanted > old_len && wanted <= MAX_HEADER + (1 << 20));
                    break;
                }
                Step::Frame { consumed, event } => {
                    if let Event::Message(_, payload) = event {
                        messages.push(payload.to_vec());
                    }
                    buffer.drain(..consumed);
                }
            }
        }
    }
    Ok(messages)
}

proptest! {
    #[test]
    fn headers_roundtrip(len in 0usize..1 << 40, mask: Option<[u8; 4]>, cut in 0usize..14) {
        let mut out = Vec::new();
        encode_header(&mut out, Opcode::Binary, Fin::Last, mask, len);
        let header = FrameHeader {
            fin: Fin::Last, opcode: Opcode::Binary, mask, len: len as u64, header_len: out.len(),
        };
        prop_assert_eq!(parse_header(&out), Ok(Some(header)));
        prop_assert_eq!(parse_header(&out[..cut % out.len()]), Ok(None));
    }

    #[test]
    fn masking_works_per_byte_and_is_reversible(bytes in vec(any::<u8>(), 0..100), key: [u8; 4]) {
        let mut masked = bytes.clone();
        mask_in_place(&mut masked, key);
        for (at, (plain, hidden)) in bytes.iter().zip(&masked).enumerate() {
            prop_assert_eq!(plain ^ key[at % 4], *hidden);
        }
        mask_in_place(&mut masked, key);
        prop_assert_eq!(bytes, masked);
    }

    #[test]
    fn messages_in_pieces_are_reassembled(
        messages in vec(vec(vec(any::<u8>(), 0..200), 1..4), 1..5),
        piece in 1usize..400,
        mask: Option<[u8; 4]>,
    ) {
        let mut wire = Vec::new();
        for fragments in &messages {
            for (at, fragment) in fragments.iter().enumerate() {
                let opcode = if at == 0 { Opcode::Binary } else { Opcode::Continuation };
                let fin = if at + 1 == fragments.len() { Fin::Last } else { Fin::More };
                encode_frame(&mut wire, opcode, fin, mask, &[fragment]);
                encode_frame(&mut wire, Opcode::Ping, Fin::Last, mask, &[b"between"]);
            }
        }
        let role = if mask.is_some() { Role::Server } else { Role::Client };
        let whole: Vec<Vec<u8>> = messages.iter().map(|fragments| fragments.concat()).collect();
        prop_assert_eq!(assemble(role, &wire, piece), Ok(whole));
    }

    #[test]
    fn arbitrary_bytes_never_panic_nor_exceed_the_memory_limit(bytes in vec(any::<u8>(), 0..300), piece in 1usize..9) {
        for role in [Role::Client, Role::Server] {
            let payload_bytes: usize = assemble(role, &bytes, piece)
                .map_or(0, |messages| messages.iter().map(Vec::len).sum());
            prop_assert!(payload_bytes <= bytes.len());
        }
    }
}

#[test]
fn a_bad_upgrade_is_refused() {
    let good = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\
        \r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let check = |text: &str| {
        let head = parse_request(text.as_bytes())
            .expect("syntax")
            .expect("whole");
        check_request(&head).map(str::to_owned)
    };
    assert_eq!(check(good), Ok("dGhlIHNhbXBsZSBub25jZQ==".to_owned()));
    let cases = [
        ("GET /", "POST /", HandshakeError::Method),
        ("HTTP/1.1", "HTTP/1.0", HandshakeError::Method),
        (
            "Upgrade: websocket",
            "Upgrade: h2c",
            HandshakeError::Upgrade,
        ),
        ("keep-alive, Upgrade", "keep-alive", HandshakeError::Upgrade),
        ("Version: 13", "Version: 8", HandshakeError::Version),
        (
            "dGhlIHNhbXBsZSBub25jZQ==",
            "dGhlIHNhbXBsZQ==",
            HandshakeError::Key,
        ),
        (
            "dGhlIHNhbXBsZSBub25jZQ==",
            "!!!!!!!!!!!!!!!!!!!!!!!!",
            HandshakeError::Key,
        ),
    ];
    for (from, to, error) in cases {
        assert_eq!(check(&good.replace(from, to)), Err(error), "{to}");
    }
}

#[test]
fn a_control_frame_reader_buffers_no_message_data() {
    let mut frames = Vec::new();
    encode_frame(
        &mut frames,
        Opcode::Text,
        Fin::More,
        None,
        &[&vec![0xff; 70_000]],
    );
    encode_frame(&mut frames, Opcode::Ping, Fin::Last, None, &[b"now"]);
    encode_frame(&mut frames, Opcode::Continuation, Fin::Last, None, &[b""]);
    // A message with an announced length beyond any memory.
    frames.extend_from_slice(&[0x82, 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    frames.extend_from_slice(&[7; 100]);
    for piece in [1, 7, 1_000, frames.len()] {
        let mut assembler = Assembler::control_frames(Role::Client);
        let (mut buffer, mut pings, mut maximum) = (Vec::new(), 0, 0);
        for bytes in frames.chunks(piece) {
            buffer.extend_from_slice(bytes);
            while let Step::Frame { consumed, event } = assembler.step(&mut buffer).expect("frames")
            {
                pings += usize::from(event == Event::Ping(b"now"));
                buffer.drain(..consumed);
            }
            maximum = maximum.max(buffer.len());
        }
        assert_eq!((pings, assembler.buffered()), (1, 0), "pieces of {piece}");
        assert!(maximum < 14, "{maximum} bytes kept");
    }
    let mut control_only = Assembler::control_frames(Role::Client);
    let mut continuation = vec![0x80, 0];
    assert_eq!(
        control_only.step(&mut continuation),
        Err(WsError::FragmentOrder)
    );
}
