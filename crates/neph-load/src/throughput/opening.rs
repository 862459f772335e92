//! Requests a test from a server, and opens a client's streams.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};

use neph_model::{Span, Stop};
use neph_wire::throughput::{
    ClientMessage, Content, Header, Preamble, Protocol, ServerMessage, Token,
};

use super::carrier::Carrier;
use super::control::Control;
use super::engine::TestEnd;
use super::error::{AWAITED_READY, ThroughputError};
use super::job::Job;
use crate::transfer::{connect, now};

/// Timeout of each connection, and of all together.
const REPLY_TIMEOUT: Span = Span::from_secs(10);
/// Interval of repeated hellos, which may be lost.
const HELLO_INTERVAL: Span = Span::from_millis(100);

const AWAITED_GRANT: &str = "the permission for the test";
const AWAITED_START: &str = "the start message";

/// A test that the server has started.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) control: Control,
    pub(super) token: Token,
    pub(super) carriers: BTreeMap<u16, Carrier>,
}

/// Requests a test, opens its streams and lets the server start it.
pub(super) fn start(
    server: SocketAddr,
    job: &Job,
    stop: &Stop,
) -> Result<Started, ThroughputError> {
    let stream = connect(server, REPLY_TIMEOUT);
    let stream = stream.map_err(ThroughputError::socket("connect to", server))?;
    let mut control = Control::new(stream, server, &[])?;
    if let Job::Throughput(test_request) = job
        && let Some(name) = test_request
            .congestion
            .as_deref()
            .filter(|_| test_request.direction.has_up())
    {
        let refused = |reason| ThroughputError::Refused {
            peer: server,
            reason,
        };
        control.try_congestion(name).map_err(refused)?;
    }
    control.send(&job.message())?;
    let token = match control.await_message(AWAITED_GRANT, REPLY_TIMEOUT, stop)? {
        ServerMessage::Granted { token } => token,
        other => return Err(unexpected(server, other, AWAITED_GRANT)),
    };
    let carriers = open(&mut control, job, token, stop)?;
    control.send(&ClientMessage::Start)?;
    match control.await_message(AWAITED_START, REPLY_TIMEOUT, stop)? {
        ServerMessage::Started => {}
        other => return Err(unexpected(server, other, AWAITED_START)),
    }
    Ok(Started {
        control,
        token,
        carriers,
    })
}

/// Opens all streams and waits until the server has them too.
fn open(
    control: &mut Control,
    job: &Job,
    token: Token,
    stop: &Stop,
) -> Result<BTreeMap<u16, Carrier>, ThroughputError> {
    let mut carriers = BTreeMap::new();
    for stream in 0..job.carriers() {
        let carrier = match job.protocol() {
            Protocol::Tcp => connection(control.peer(), job, Preamble { stream, token })?,
            Protocol::Udp => datagrams(control, job, stream)?,
        };
        carriers.insert(stream, carrier);
    }
    let deadline = now() + REPLY_TIMEOUT;
    let mut hello_at = now();
    loop {
        if now() >= hello_at {
            for (stream, carrier) in &carriers {
                greet(carrier, *stream, token);
            }
            hello_at = now() + HELLO_INTERVAL;
        }
        match control.poll(AWAITED_READY)? {
            Some(ServerMessage::Ready) => return Ok(carriers),
            Some(other) => return Err(unexpected(control.peer(), other, AWAITED_READY)),
            None => {}
        }
        if stop.is_set() {
            return Err(ThroughputError::Stopped);
        }
        if now() >= deadline {
            return Err(ThroughputError::Silent {
                peer: control.peer(),
                awaited: AWAITED_READY,
            });
        }
    }
}

fn connection(
    server: SocketAddr,
    job: &Job,
    preamble: Preamble,
) -> Result<Carrier, ThroughputError> {
    let failed = ThroughputError::socket("connect a stream to", server);
    let mut stream: TcpStream = connect(server, REPLY_TIMEOUT).map_err(&failed)?;
    stream.write_all(&preamble.encode()).map_err(&failed)?;
    let carrier = job.connection(stream, TestEnd::Client, preamble.stream);
    carrier.map_err(ThroughputError::socket("set up a stream to", server))
}

/// Uses the address of the control connection: the server sends to no other.
fn datagrams(control: &Control, job: &Job, stream: u16) -> Result<Carrier, ThroughputError> {
    let server = control.peer();
    let mut local = control.local()?;
    local.set_port(0);
    let failed = ThroughputError::socket("open a UDP socket to", server);
    let socket = UdpSocket::bind(local).map_err(&failed)?;
    let carrier = job.datagrams(socket, server, TestEnd::Client, stream);
    carrier.map_err(&failed)
}

/// Shows the server the source address of a UDP stream; repeated because a datagram may be lost.
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
    // A closed port causes an ICMP error; the missing answer is reported soon.
    let _ = socket.send(&hello.encode());
}

/// The error for an unexpected message.
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
