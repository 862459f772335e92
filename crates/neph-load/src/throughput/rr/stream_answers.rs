//! The server's end of a stream over TCP, on a connection that stays open.

use std::io::{self, ErrorKind};
use std::net::TcpStream;

use neph_model::Stop;
use neph_sys::clock;
use neph_wire::throughput::RrTestRequest;

use super::guard::Guard;
use super::pieces::{Moved, buffer, put, take};

/// Answers each request until the client closes the connection or it is stopped.
pub(super) fn answer(
    stream: &TcpStream,
    ask: &RrTestRequest,
    stop: &Stop,
    mut guard: Guard<'_>,
) -> io::Result<()> {
    stream.set_nonblocking(guard.busy_poll)?;
    let ended = answer_on(stream, ask, stop, &mut guard);
    guard.recorder.finish();
    match ended {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        ended => ended,
    }
}

fn answer_on(
    stream: &TcpStream,
    ask: &RrTestRequest,
    stop: &Stop,
    guard: &mut Guard<'_>,
) -> io::Result<()> {
    let (mut request, reply) = (buffer(ask.request_bytes), buffer(ask.reply_bytes));
    let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    let (requested, answered) = (size(ask.request_bytes), size(ask.reply_bytes));
    while !stop.is_set() {
        let mut fault = None;
        let mut look = || {
            fault = guard.idle(clock::raw()).err();
            fault.is_none() && !stop.is_set()
        };
        let mut moved = take(stream, &mut request, requested, &mut look)?;
        if moved == Moved::All {
            if !guard.await_permit(stop)? {
                return Ok(());
            }
            let mut look = || {
                fault = guard.idle(clock::raw()).err();
                fault.is_none() && !stop.is_set()
            };
            moved = put(stream, &reply, answered, &mut look)?;
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        match moved {
            Moved::All => guard.answered()?,
            Moved::Closed(_) | Moved::Stopped => return Ok(()),
        }
    }
    Ok(())
}
