//! Tests with tungstenite as the peer, in memory, as client and as server.

use std::io::{self, ErrorKind, Read, Write};

use tungstenite::{Message, accept, client};

use super::tests::assemble;
use super::*;
use crate::http::{parse_request, parse_response};

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// The server of this crate at the end of an in-memory stream: it upgrades, then echoes.
#[derive(Debug, Default)]
struct EchoServer {
    received: Vec<u8>,
    sent: Vec<u8>,
    assembler: Option<Assembler>,
}

impl Write for EchoServer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.received.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for EchoServer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.process_received();
        if self.sent.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = self.sent.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.sent[..count]);
        self.sent.drain(..count);
        Ok(count)
    }
}

impl EchoServer {
    fn process_received(&mut self) {
        let Some(assembler) = &mut self.assembler else {
            if let Some(head) = parse_request(&self.received).expect("a good head") {
                let key = check_request(&head).expect("a good upgrade");
                server_response(key, &mut self.sent);
                let len = head.len();
                self.received.drain(..len);
                self.assembler = Some(Assembler::new(Role::Server, 1 << 20));
            }
            return;
        };
        while let Step::Frame { consumed, event } =
            assembler.step(&mut self.received).expect("good frames")
        {
            let (opcode, payload) = match event {
                Event::Message(Kind::Binary, payload) => (Opcode::Binary, payload.to_vec()),
                Event::Message(Kind::Text, payload) => (Opcode::Text, payload.to_vec()),
                Event::Ping(payload) => (Opcode::Pong, payload.to_vec()),
                Event::Close(close) => {
                    let code = close.expect("a code").code;
                    (Opcode::Close, code.get().to_be_bytes().to_vec())
                }
                Event::Fragment | Event::Pong(_) => panic!("not sent by this test"),
            };
            encode_frame(&mut self.sent, opcode, Fin::Last, None, &[&payload]);
            self.received.drain(..consumed);
        }
    }
}

#[test]
fn a_tungstenite_client_completes_a_session_with_our_server() {
    let (mut socket, response) =
        client("ws://reflector/ws?reply=9", EchoServer::default()).expect("handshake");
    assert_eq!(response.status(), 101);
    for len in [0, 1, 125, 126, 65_535, 65_536, 300_000] {
        let message = Message::binary(vec![0x5a; len]);
        socket.send(message.clone()).expect("send");
        assert_eq!(socket.read().expect("echo"), message);
    }
    socket.send(Message::text("grüße")).expect("send");
    assert_eq!(socket.read().expect("echo"), Message::text("grüße"));
    socket.send(Message::Ping("?".into())).expect("ping");
    assert_eq!(socket.read().expect("pong"), Message::Pong("?".into()));
    let code = tungstenite::protocol::frame::coding::CloseCode::Normal;
    let close = tungstenite::protocol::CloseFrame {
        code,
        reason: "done".into(),
    };
    socket.close(Some(close)).expect("close");
    let Message::Close(Some(answer)) = socket.read().expect("closing handshake") else {
        panic!("no close");
    };
    assert_eq!(answer.code, code);
}

/// A stream that replays recorded bytes and records what is written. The handshake is a separate
/// read, because nothing may follow it before the response.
#[derive(Debug)]
struct RecordedStream {
    input: io::Chain<io::Cursor<Vec<u8>>, io::Cursor<Vec<u8>>>,
    output: Vec<u8>,
}

impl Read for RecordedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer)
    }
}

impl Write for RecordedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const SIZES: [usize; 6] = [0, 1, 125, 126, 65_535, 65_536];

/// The handshake and the bytes after it: fragments with pings between them, a close frame.
fn encode_client_session(key: &str) -> (Vec<u8>, Vec<u8>) {
    let (mut upgrade, mut frames) = (Vec::new(), Vec::new());
    let request = UpgradeRequest {
        host: "reflector:8080",
        target: "/ws",
        key,
    };
    request.encode(&mut upgrade).expect("plain text");
    for size in SIZES {
        encode_frame(
            &mut frames,
            Opcode::Binary,
            Fin::More,
            Some(KEY),
            &[&vec![7; size]],
        );
        encode_frame(&mut frames, Opcode::Ping, Fin::Last, Some(KEY), &[b"!"]);
        encode_frame(
            &mut frames,
            Opcode::Continuation,
            Fin::Last,
            Some(KEY),
            &[b"a", b"b"],
        );
    }
    encode_close(
        &mut frames,
        Some(KEY),
        Close {
            code: CloseCode::NORMAL,
            reason: "done",
        },
    );
    (upgrade, frames)
}

#[test]
fn a_tungstenite_server_completes_a_session_with_our_client() {
    let key = client_key(*b"0123456789abcdef");
    let (upgrade, frames) = encode_client_session(&key);
    let stream = RecordedStream {
        input: io::Cursor::new(upgrade).chain(io::Cursor::new(frames)),
        output: Vec::new(),
    };
    let mut socket = accept(stream).expect("handshake");
    for size in SIZES {
        assert_eq!(socket.read().expect("ping"), Message::Ping("!".into()));
        let mut expected = vec![7; size];
        expected.extend_from_slice(b"ab");
        let message = Message::binary(expected);
        assert_eq!(socket.read().expect("message"), message);
        socket.send(message).expect("echo");
    }
    assert!(socket.read().expect("close").is_close());
    socket.flush().ok();
    let answer = &socket.get_ref().output;
    let head = parse_response(answer)
        .expect("good head")
        .expect("whole head");
    assert_eq!(check_response(&head, &key), Ok(()));
    assert_eq!(
        check_response(&head, "another key"),
        Err(HandshakeError::Accept)
    );
    let echoed = assemble(Role::Client, &answer[head.len()..], 1000).expect("good frames");
    let lengths: Vec<usize> = echoed.iter().map(Vec::len).collect();
    assert_eq!(lengths, SIZES.map(|size| size + 2));
}
