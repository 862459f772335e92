//! The client's end of a stream over TCP: on a connection that stays open, or on one per
//! transaction.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

use neph_model::{Span, Stop};
use neph_sys::clock::{self, RawNanos};
use neph_wire::throughput::Preamble;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::super::carrier::mark;
use super::super::run::TICK;
use super::connecting::connect;
use super::pieces::{Moved, buffer, put, take};
use super::recorder::Recorder;
use super::spec::{RrRequest, RrSpec};

/// Timeout of the last reply after the end of the test.
const LAST_REPLY_TIMEOUT: Span = Span::from_secs(5);
/// Pause after a connection that was refused or exceeds the permit.
const RETRY_PAUSE: Span = Span::from_millis(1);

fn duration(spec: &RrSpec) -> Span {
    Span::from_nanos(i64::try_from(spec.ask.duration_ns).unwrap_or(i64::MAX / 2))
}

fn size(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Runs transactions on one connection until the time is over or it is stopped.
pub(super) fn run_transactions(
    stream: &TcpStream,
    rr_request: RrRequest<'_>,
    stop: &Stop,
    mut recorder: Recorder<'_>,
) -> io::Result<()> {
    stream.set_nonblocking(rr_request.spec.busy_poll)?;
    let result = transact_until_end(stream, rr_request, stop, &mut recorder);
    recorder.finish();
    result
}

fn transact_until_end(
    stream: &TcpStream,
    rr_request: RrRequest<'_>,
    stop: &Stop,
    recorder: &mut Recorder<'_>,
) -> io::Result<()> {
    let spec = rr_request.spec;
    let (request, mut reply) = (buffer(spec.ask.request_bytes), buffer(spec.ask.reply_bytes));
    let (request_len, reply_len) = (size(spec.ask.request_bytes), size(spec.ask.reply_bytes));
    let end = recorder.moment(duration(spec));
    let deadline = recorder.moment(duration(spec) + LAST_REPLY_TIMEOUT);
    let mut start = clock::raw();
    while start < end && !stop.is_set() {
        if !rr_request.may_begin(start) {
            clock::nap(RETRY_PAUSE.to_duration());
            start = recorder.tick(clock::raw());
            continue;
        }
        let mut go_on = || {
            let now = recorder.tick(clock::raw());
            now < deadline && !stop.is_set()
        };
        let mut moved = put(stream, &request, request_len, &mut go_on)?;
        if moved == Moved::All {
            moved = take(stream, &mut reply, reply_len, &mut go_on)?;
        }
        match moved {
            Moved::All => start = recorder.reply(start, clock::raw()),
            Moved::Stopped => return Ok(()),
            Moved::Closed(_) => return Err(io::Error::other("the server closed the stream")),
        }
    }
    Ok(())
}

/// Runs transactions, each on its own connection, until the time is over or it is stopped.
pub(super) fn run_connections(
    rr_request: RrRequest<'_>,
    preamble: Preamble,
    stop: &Stop,
    recorder: Recorder<'_>,
) -> io::Result<()> {
    let RrRequest { server, spec, .. } = rr_request;
    let mut request = buffer(spec.ask.request_bytes);
    request[..Preamble::LEN].copy_from_slice(&preamble.encode());
    let end = recorder.moment(duration(spec));
    let mut connections = Connections {
        reply: buffer(spec.ask.reply_bytes.saturating_add(1)),
        to: server.into(),
        server,
        spec,
        stop,
        request,
        recorder,
    };
    let mut start = clock::raw();
    let mut result = Ok(());
    while start < end && !stop.is_set() && result.is_ok() {
        if !rr_request.may_begin(start) {
            clock::nap(RETRY_PAUSE.to_duration());
            start = connections.recorder.tick(clock::raw());
            continue;
        }
        match connections.transact(start) {
            Ok(next) => start = next,
            Err(error) => result = Err(error),
        }
    }
    connections.recorder.finish();
    result
}

struct Connections<'a> {
    server: SocketAddr,
    to: SockAddr,
    spec: &'a RrSpec,
    stop: &'a Stop,
    request: Vec<u8>,
    reply: Vec<u8>,
    recorder: Recorder<'a>,
}

impl Connections<'_> {
    fn transact(&mut self, start: RawNanos) -> io::Result<RawNanos> {
        match self.carry_out(start) {
            Ok(Moved::All) => {
                let now = clock::raw();
                if now.0 - start.0 <= self.spec.timeout.nanos() {
                    return Ok(self.recorder.reply(start, now));
                }
                // This thread was delayed, so the transaction is late.
                Ok(self.recorder.lose(start, now))
            }
            Ok(Moved::Stopped) if self.stop.is_set() => Ok(clock::raw()),
            Ok(_) => Ok(self.recorder.lose(start, clock::raw())),
            Err(error) if is_passing(&error) => {
                clock::nap(RETRY_PAUSE.to_duration());
                Ok(self.recorder.lose(start, clock::raw()))
            }
            Err(error) => Err(error),
        }
    }

    /// Connects, sends, receives, and reads the end of the connection. The server closes first, so
    /// that the ports of this host are free at once.
    fn carry_out(&mut self, start: RawNanos) -> io::Result<Moved> {
        let (recorder, stop, timeout) = (&mut self.recorder, self.stop, self.spec.timeout);
        let mut go_on = || {
            let now = recorder.tick(clock::raw());
            Span::from_nanos(now.0 - start.0) < timeout && !stop.is_set()
        };
        let domain = Domain::for_address(self.server);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        let tick = Some(TICK.min(timeout).to_duration());
        socket.set_write_timeout(tick)?;
        socket.set_read_timeout(tick)?;
        mark(socket.as_fd(), self.server, self.spec.ask.dscp)?;
        if !connect(&socket, &self.to, &mut go_on)? {
            return Ok(Moved::Stopped);
        }
        let (request_len, reply_len) = (
            size(self.spec.ask.request_bytes),
            size(self.spec.ask.reply_bytes),
        );
        let moved = put(&socket, &self.request, request_len, &mut go_on)?;
        if moved != Moved::All {
            return Ok(moved);
        }
        // One byte more than the reply: the end of the connection belongs to the transaction.
        match take(&socket, &mut self.reply, reply_len + 1, &mut go_on)? {
            Moved::Closed(count) if count == reply_len => Ok(Moved::All),
            Moved::Stopped => Ok(Moved::Stopped),
            Moved::All | Moved::Closed(_) => Ok(Moved::Closed(0)),
        }
    }
}

/// Whether the next transaction may succeed.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::TimedOut
    )
}
