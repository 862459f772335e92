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
const PATIENCE: Span = Span::from_secs(5);
/// Pause after a connection that was refused or exceeds the permit.
const PAUSE: Span = Span::from_millis(1);

fn duration(spec: &RrSpec) -> Span {
    Span::from_nanos(i64::try_from(spec.ask.duration_ns).unwrap_or(i64::MAX / 2))
}

fn size(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Runs transactions on one connection until the time is over or it is stopped.
pub(super) fn ask(
    stream: &TcpStream,
    rr_request: RrRequest<'_>,
    stop: &Stop,
    mut recorder: Recorder<'_>,
) -> io::Result<()> {
    stream.set_nonblocking(rr_request.spec.busy_poll)?;
    let ended = ask_on(stream, rr_request, stop, &mut recorder);
    recorder.finish();
    ended
}

fn ask_on(
    stream: &TcpStream,
    of: RrRequest<'_>,
    stop: &Stop,
    recorder: &mut Recorder<'_>,
) -> io::Result<()> {
    let spec = of.spec;
    let (request, mut reply) = (buffer(spec.ask.request_bytes), buffer(spec.ask.reply_bytes));
    let (requested, answered) = (size(spec.ask.request_bytes), size(spec.ask.reply_bytes));
    let end = recorder.moment(duration(spec));
    let latest = recorder.moment(duration(spec) + PATIENCE);
    let mut began = clock::raw();
    while began < end && !stop.is_set() {
        if !of.may_begin(began) {
            clock::nap(PAUSE.to_duration());
            began = recorder.tick(clock::raw());
            continue;
        }
        let mut look = || {
            let now = recorder.tick(clock::raw());
            now < latest && !stop.is_set()
        };
        let mut moved = put(stream, &request, requested, &mut look)?;
        if moved == Moved::All {
            moved = take(stream, &mut reply, answered, &mut look)?;
        }
        match moved {
            Moved::All => began = recorder.reply(began, clock::raw()),
            Moved::Stopped => return Ok(()),
            Moved::Closed(_) => return Err(io::Error::other("the server closed the stream")),
        }
    }
    Ok(())
}

/// Runs transactions, each on its own connection, until the time is over or it is stopped.
pub(super) fn ask_anew(
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
    let mut began = clock::raw();
    let mut ended = Ok(());
    while began < end && !stop.is_set() && ended.is_ok() {
        if !rr_request.may_begin(began) {
            clock::nap(PAUSE.to_duration());
            began = connections.recorder.tick(clock::raw());
            continue;
        }
        match connections.transact(began) {
            Ok(next) => began = next,
            Err(error) => ended = Err(error),
        }
    }
    connections.recorder.finish();
    ended
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
    fn transact(&mut self, began: RawNanos) -> io::Result<RawNanos> {
        match self.carry_out(began) {
            Ok(Moved::All) => {
                let now = clock::raw();
                if now.0 - began.0 <= self.spec.timeout.nanos() {
                    return Ok(self.recorder.reply(began, now));
                }
                // This thread was delayed, so the transaction is late.
                Ok(self.recorder.lose(began, now))
            }
            Ok(Moved::Stopped) if self.stop.is_set() => Ok(clock::raw()),
            Ok(_) => Ok(self.recorder.lose(began, clock::raw())),
            Err(error) if is_passing(&error) => {
                clock::nap(PAUSE.to_duration());
                Ok(self.recorder.lose(began, clock::raw()))
            }
            Err(error) => Err(error),
        }
    }

    /// Connects, sends, receives, and reads the end of the connection. The server closes first, so
    /// that the ports of this host are free at once.
    fn carry_out(&mut self, began: RawNanos) -> io::Result<Moved> {
        let (recorder, stop, timeout) = (&mut self.recorder, self.stop, self.spec.timeout);
        let mut look = || {
            let now = recorder.tick(clock::raw());
            Span::from_nanos(now.0 - began.0) < timeout && !stop.is_set()
        };
        let domain = Domain::for_address(self.server);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        let tick = Some(TICK.min(timeout).to_duration());
        socket.set_write_timeout(tick)?;
        socket.set_read_timeout(tick)?;
        mark(socket.as_fd(), self.server, self.spec.ask.dscp)?;
        if !connect(&socket, &self.to, &mut look)? {
            return Ok(Moved::Stopped);
        }
        let (requested, answered) = (
            size(self.spec.ask.request_bytes),
            size(self.spec.ask.reply_bytes),
        );
        let moved = put(&socket, &self.request, requested, &mut look)?;
        if moved != Moved::All {
            return Ok(moved);
        }
        // One byte more than the reply: the end of the connection belongs to the transaction.
        match take(&socket, &mut self.reply, answered + 1, &mut look)? {
            Moved::Closed(count) if count == answered => Ok(Moved::All),
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
