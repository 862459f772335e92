//! A connection of a load: opening, sending, receiving. Never waits.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::failure::RequestFailure;
use super::http::{Response, ResponseReader};
use super::recorder::Request;
use super::spec::Exchange;
use super::transport::Transport;

const EINPROGRESS: i32 = 115;
/// Reads of one connection before others have their turn: a body may be endless.
const MAX_READS: usize = 16;

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is being opened.
    Opening,
    /// Its request is not sent completely.
    Sending,
    /// It waits for the response.
    Receiving,
    /// It has no request.
    Idle,
}

/// A connection with at most one request.
#[derive(Debug)]
pub(super) struct Connection {
    transport: Transport,
    pub(super) phase: Phase,
    /// The request that it carries; `None` while it is idle.
    pub(super) request: Option<Request>,
    reader: ResponseReader,
    /// Bytes of the request that are sent.
    sent: usize,
    /// Whether it had a response already.
    pub(super) is_used: bool,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing to do until the socket is ready.
    Waits,
    /// More bytes may be there: other connections come first.
    HasMore,
    /// The request has its response.
    Done(Response),
    /// The request has no response, and the connection is of no more use.
    Failed(RequestFailure),
}

impl Connection {
    /// Opens a connection for this request; it may be complete at once.
    pub(super) fn open(exchange: &Exchange, request: Request) -> Result<Self, RequestFailure> {
        let failure = |error| RequestFailure::of(&error);
        let to = exchange.target;
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP));
        let socket = socket.map_err(failure)?;
        socket.set_nonblocking(true).map_err(failure)?;
        socket.set_tcp_nodelay(true).map_err(failure)?;
        let phase = match socket.connect(&SockAddr::from(to)) {
            Ok(()) => Phase::Sending,
            Err(error) if error.raw_os_error() == Some(EINPROGRESS) => Phase::Opening,
            Err(error) => return Err(failure(error)),
        };
        Ok(Self {
            transport: Transport::new(socket.into(), exchange.tls.as_ref())?,
            phase,
            request: Some(request),
            reader: ResponseReader::new(&exchange.method),
            sent: 0,
            is_used: false,
        })
    }

    /// Whether the next step of sending needs room in the socket, and not bytes of the peer.
    pub(super) fn waits_for_room(&self) -> bool {
        self.transport.waits_for_room()
    }

    /// Whether bytes of the peer can let it go on sending: during a TLS handshake.
    pub(super) fn sends_after_reading(&self) -> bool {
        self.phase == Phase::Sending && self.transport.is_handshaking()
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.transport.tcp().as_fd()
    }

    /// Gives an idle connection its next request.
    pub(super) fn assign(&mut self, request: Request) {
        self.request = Some(request);
        self.phase = Phase::Sending;
        self.sent = 0;
    }

    /// Takes the request of a connection that has its response, so that it is idle.
    pub(super) fn release(&mut self) -> Option<Request> {
        self.phase = Phase::Idle;
        self.is_used = true;
        self.request.take()
    }

    /// Whether a failure may only mean that the peer closed the idle connection before it had the request.
    pub(super) fn is_stale(&self, failure: RequestFailure) -> bool {
        self.is_used
            && self.reader.is_empty()
            && matches!(failure, RequestFailure::Closed | RequestFailure::Reset)
    }

    /// Completes the opening, if the socket became writable.
    pub(super) fn opened(&mut self) -> Progress {
        match self.transport.tcp().take_error() {
            Ok(None) => {
                self.phase = Phase::Sending;
                Progress::Waits
            }
            Ok(Some(error)) | Err(error) => Progress::Failed(RequestFailure::of(&error)),
        }
    }

    /// Sends as much of the request as the socket takes.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Progress {
        while self.sent < bytes.len() {
            match self.transport.write(&bytes[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Waits,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Progress::Failed(RequestFailure::of(&error)),
            }
        }
        match self.transport.flush() {
            Ok(()) => self.phase = Phase::Receiving,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Progress::Failed(RequestFailure::of(&error)),
        }
        Progress::Waits
    }

    /// Receives what has arrived; returns the number of bytes, too.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> (Progress, usize) {
        let mut total = 0;
        for _ in 0..MAX_READS {
            let count = match self.transport.read(buffer) {
                Ok(0) => {
                    let ended = self.reader.end();
                    let failed = Progress::Failed(RequestFailure::Closed);
                    return (ended.map_or(failed, Progress::Done), total);
                }
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return (Progress::Waits, total);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return (Progress::Failed(RequestFailure::of(&error)), total),
            };
            total += count;
            match self.reader.feed(&buffer[..count]) {
                Ok(Some(response)) => return (Progress::Done(response), total),
                // A full buffer may not be all. A partly filled one is, but TLS returns single records.
                Ok(None) if count < buffer.len() && !self.transport.is_tls() => {
                    return (Progress::Waits, total);
                }
                Ok(None) => {}
                Err(_) => return (Progress::Failed(RequestFailure::Invalid), total),
            }
        }
        (Progress::HasMore, total)
    }
}
