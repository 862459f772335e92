//! The server's end of a stream over TCP, on a connection that stays open.

use std::io::{self, ErrorKind};
use std::net::TcpStream;

use neph_model::Stop;
use neph_sys::clock;
use neph_wire::throughput::RrTestRequest;

use super::guard::Guard;
use super::pieces::{Moved, buffer, put, take};

/// Answers each request until the client closes the connection or it is stopped.
pub(super) fn serve(
    stream: &TcpStream,
    test_request: &RrTestRequest,
    stop: &Stop,
    mut guard: Guard<'_>,
) -> io::Result<()> {
    stream.set_nonblocking(guard.busy_poll)?;
    let result = serve_until_end(stream, test_request, stop, &mut guard);
    guard.recorder.finish();
    match result {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        result => result,
    }
}

fn serve_until_end(
    stream: &TcpStream,
    test_request: &RrTestRequest,
    stop: &Stop,
    guard: &mut Guard<'_>,
) -> io::Result<()> {
    let (mut request, reply) = (
        buffer(test_request.request_bytes),
        buffer(test_request.reply_bytes),
    );
    let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    let (request_len, reply_len) = (
        size(test_request.request_bytes),
        size(test_request.reply_bytes),
    );
    while !stop.is_set() {
        let mut fault = None;
        let mut go_on = || {
            fault = guard.idle(clock::raw()).err();
            fault.is_none() && !stop.is_set()
        };
        let mut moved = take(stream, &mut request, request_len, &mut go_on)?;
        if moved == Moved::All {
            if !guard.await_permit(stop)? {
                return Ok(());
            }
            let mut go_on = || {
                fault = guard.idle(clock::raw()).err();
                fault.is_none() && !stop.is_set()
            };
            moved = put(stream, &reply, reply_len, &mut go_on)?;
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
