//! Opens a client's streams.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};

use neph_model::{Span, Stop};
use neph_wire::throughput::{Ask, Content, Header, Preamble, Protocol, ServerMessage, Token};

use super::carrier::Carrier;
use super::control::Control;
use super::engine::End;
use super::error::{READY, ThroughputError};
use crate::transfer::{connect, now};

/// How long each connection, and all of them, may take.
const PATIENCE: Span = Span::from_secs(10);
/// A hello may be lost.
const HELLO_EVERY: Span = Span::from_millis(100);

/// Opens all streams and waits until the server has them too.
pub(super) fn open(
    control: &mut Control,
    ask: &Ask,
    token: Token,
    stop: &Stop,
) -> Result<BTreeMap<u16, Carrier>, ThroughputError> {
    let mut carriers = BTreeMap::new();
    for stream in 0..ask.all_streams() {
        let carrier = match ask.protocol {
            Protocol::Tcp => connection(control.peer(), ask, Preamble { stream, token })?,
            Protocol::Udp => datagrams(control, ask, stream)?,
        };
        carriers.insert(stream, carrier);
    }
    let latest = now() + PATIENCE;
    let mut hello_at = now();
    loop {
        if now() >= hello_at {
            for (stream, carrier) in &carriers {
                greet(carrier, *stream, token);
            }
            hello_at = now() + HELLO_EVERY;
        }
        match control.poll(READY)? {
            Some(ServerMessage::Ready) => return Ok(carriers),
            Some(other) => return Err(unexpected(control.peer(), other, READY)),
            None => {}
        }
        if stop.is_set() {
            return Err(ThroughputError::Stopped);
        }
        if now() >= latest {
            return Err(ThroughputError::Silent {
                peer: control.peer(),
                awaited: READY,
            });
        }
    }
}

fn connection(
    server: SocketAddr,
    ask: &Ask,
    preamble: Preamble,
) -> Result<Carrier, ThroughputError> {
    let failed = ThroughputError::socket("connect a stream to", server);
    let mut stream: TcpStream = connect(server, PATIENCE).map_err(&failed)?;
    stream.write_all(&preamble.encode()).map_err(&failed)?;
    let sends = End::Client.sends(ask, preamble.stream);
    Carrier::tcp(stream, ask, sends).map_err(ThroughputError::socket("set up a stream to", server))
}

/// From the address that the control connection has: the server sends to no other.
fn datagrams(control: &Control, ask: &Ask, stream: u16) -> Result<Carrier, ThroughputError> {
    let server = control.peer();
    let mut local = control.local()?;
    local.set_port(0);
    let failed = ThroughputError::socket("open a UDP socket to", server);
    let socket = UdpSocket::bind(local).map_err(&failed)?;
    let sends = End::Client.sends(ask, stream);
    Carrier::udp(socket, server, ask, sends).map_err(&failed)
}

/// Shows the server where a UDP stream is. One that is lost is repeated.
fn greet(carrier: &Carrier, stream: u16, token: Token) {
    let Carrier::Udp(socket) = carrier else {
        return;
    };
    let hello = Header {
        content: Content::Hello,
        stream,
        token,
        sequence: 0,
        sent_ns: 0,
    };
    // A port that is closed answers with an ICMP error; the server's silence is reported soon enough.
    let _ = socket.send(&hello.encode());
}

/// The error for a message that was not due.
pub(super) fn unexpected(
    peer: SocketAddr,
    message: ServerMessage,
    awaited: &'static str,
) -> ThroughputError {
    match message {
        ServerMessage::Refused { reason } => ThroughputError::Refused { peer, reason },
        ServerMessage::Failed { reason } => ThroughputError::Failed { peer, reason },
        _ => ThroughputError::Unexpected { peer, awaited },
    }
}
