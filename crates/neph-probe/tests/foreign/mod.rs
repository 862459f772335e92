//! Servers that are not ours.

use std::net::TcpListener;
use std::thread;

use neph_probe::FlowSpec;
use tungstenite::Message as WsMessage;
use tungstenite::protocol::frame::coding::CloseCode;

use crate::loopback::{flow, measure};

/// Answers pings until the client closes; returns what the client said last.
fn serve_one(listener: &TcpListener) -> Option<CloseCode> {
    // The first connection asks what answers here, the second measures.
    drop(listener.accept().expect("a connection"));
    let (stream, _) = listener.accept().expect("a connection");
    let mut socket = tungstenite::accept(stream).expect("a handshake");
    let mut close_code = None;
    while let Ok(message) = socket.read() {
        if let WsMessage::Close(close) = message {
            close_code = close.map(|close| close.code);
        }
    }
    close_code
}

#[test]
fn a_websocket_ends_with_a_normal_close() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("bound");
    let server = thread::spawn(move || serve_one(&listener));
    let spec = FlowSpec {
        reflector: false,
        ..flow(&format!("ws://{address}/"), 3)
    };
    let (messages, tally) = measure(spec);
    assert_eq!((messages.len(), tally.replies), (3, 3));
    let close_code = server.join().expect("the server ran");
    assert_eq!(close_code, Some(CloseCode::Normal));
}
