//! The server's end of transactions that are connections.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};

use neph_model::{Span, Stop};
use neph_sys::clock::{self, RawNanos};
use neph_wire::throughput::{Preamble, RrTestRequest, Token};

use super::super::listening::{AcceptedConnection, Listening};
use super::super::run::TICK;
use super::guard::Guard;
use super::pieces::{Moved, buffer, is_pause, put, take};

/// Timeout of a connection: one that sends nothing would delay others.
const REQUEST_TIMEOUT: Span = Span::from_secs(1);

/// Accepts the connections of a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acceptor<'a> {
    pub(super) listening: &'a Listening,
    pub(super) test_request: &'a RrTestRequest,
    pub(super) token: Token,
    /// The client's address; connections of others are handed back.
    pub(super) client: IpAddr,
}

/// Outcome of a connection.
enum Outcome {
    Answered,
    /// No transaction of this test; this many bytes were read.
    Other(TcpStream, usize),
    Broken,
}

impl Acceptor<'_> {
    /// Accepts and answers until it is stopped.
    pub(super) fn work(&self, stop: &Stop, mut guard: Guard<'_>) -> io::Result<()> {
        let result = self.accept(stop, &mut guard);
        guard.recorder.finish();
        result
    }

    fn accept(&self, stop: &Stop, guard: &mut Guard<'_>) -> io::Result<()> {
        let mut request = buffer(self.test_request.request_bytes);
        let reply = buffer(self.test_request.reply_bytes);
        while !stop.is_set() {
            let (stream, peer) = match self.listening.listener().accept() {
                Ok(accepted) => accepted,
                Err(error) if is_pause(&error) => {
                    guard.idle(clock::raw())?;
                    continue;
                }
                // The connection was aborted before `accept`, or no file descriptor is free.
                Err(_) => {
                    guard.idle(clock::raw())?;
                    clock::nap(Span::from_millis(1).to_duration());
                    continue;
                }
            };
            if !guard.await_permit(stop)? {
                return Ok(());
            }
            let address = peer.ip().to_canonical();
            let outcome = if address == self.client {
                self.serve(stream, &mut request, &reply)
            } else {
                Outcome::Other(stream, 0)
            };
            match outcome {
                Outcome::Answered => guard.answered()?,
                Outcome::Broken => guard.recorder.counted().foreign += 1,
                Outcome::Other(stream, count) => self.listening.hand_back(AcceptedConnection {
                    stream,
                    peer: SocketAddr::new(address, peer.port()),
                    first: request[..count].to_vec(),
                }),
            }
        }
        Ok(())
    }

    /// Reads a request, answers it and closes the connection.
    fn serve(&self, mut stream: TcpStream, request: &mut [u8], reply: &[u8]) -> Outcome {
        let mut count = 0;
        let mut wait_start = None;
        while count < Preamble::LEN {
            match stream.read(&mut request[count..]) {
                Ok(0) => return Outcome::Broken,
                Ok(count_more) => count += count_more,
                Err(error) if is_pause(&error) && !is_late(&mut wait_start) => {}
                Err(_) => return Outcome::Broken,
            }
            // The control connection of another test.
            if count > 0 && request[0] == b'{' {
                return Outcome::Other(stream, count);
            }
        }
        let preamble = request.first_chunk().and_then(Preamble::decode);
        if preamble.is_none_or(|preamble| preamble.token != self.token) {
            return Outcome::Other(stream, count);
        }
        match finish(&stream, self.test_request, count, reply) {
            Ok(Moved::All) => Outcome::Answered,
            Ok(_) | Err(_) => Outcome::Broken,
        }
    }
}

/// Answers a connection from which `read` bytes of the request were read, and closes it.
pub(in crate::throughput) fn answer_connection(
    stream: &TcpStream,
    test_request: &RrTestRequest,
    read: usize,
) {
    // The client counts a broken connection.
    let _ = finish(
        stream,
        test_request,
        read,
        &buffer(test_request.reply_bytes),
    );
}

/// Reads the rest of a request, and writes the reply.
fn finish(
    stream: &TcpStream,
    test_request: &RrTestRequest,
    read: usize,
    reply: &[u8],
) -> io::Result<Moved> {
    // A client that does not read must not block this thread.
    stream.set_read_timeout(Some(TICK.to_duration()))?;
    stream.set_write_timeout(Some(TICK.to_duration()))?;
    let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut wait_start = None;
    let mut go_on = || !is_late(&mut wait_start);
    let remaining = size(test_request.request_bytes).saturating_sub(read);
    if remaining > 0 {
        let moved = take(
            stream,
            &mut buffer(test_request.request_bytes),
            remaining,
            &mut go_on,
        )?;
        if moved != Moved::All {
            return Ok(moved);
        }
    }
    put(stream, reply, size(test_request.reply_bytes), &mut go_on)
}

fn is_late(wait_start: &mut Option<RawNanos>) -> bool {
    let now = clock::raw();
    let wait_start = *wait_start.get_or_insert(now);
    Span::from_nanos(now.0 - wait_start.0) >= REQUEST_TIMEOUT
}
