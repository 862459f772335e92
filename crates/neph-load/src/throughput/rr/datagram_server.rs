//! The server's end of a stream over UDP.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;

use neph_model::Stop;
use neph_sys::clock;
use neph_wire::throughput::{Header, RrTag, RrTestRequest, Token};

use super::guard::Guard;
use super::pieces::is_pause;
use super::recorder::Recorder;
use super::window::Window;

/// Answers each request with a reply of the requested size, until it is stopped.
pub(super) fn serve(
    socket: &UdpSocket,
    test_request: &RrTestRequest,
    token: Token,
    stop: &Stop,
    mut guard: Guard<'_>,
) -> io::Result<()> {
    socket.set_nonblocking(guard.busy_poll)?;
    let result = serve_until_end(socket, test_request, token, stop, &mut guard);
    guard.recorder.finish();
    result
}

fn serve_until_end(
    socket: &UdpSocket,
    test_request: &RrTestRequest,
    token: Token,
    stop: &Stop,
    guard: &mut Guard<'_>,
) -> io::Result<()> {
    let request_len = usize::try_from(test_request.request_bytes).unwrap_or(usize::MAX);
    let mut request = vec![0; request_len + 1];
    let mut reply = vec![0x5a; usize::try_from(test_request.reply_bytes).unwrap_or(usize::MAX)];
    let mut window = Window::default();
    while !stop.is_set() {
        match socket.recv(&mut request) {
            Ok(length) => {
                let tag = RrTag::decode(&request[..length]);
                let tag = tag.filter(|tag| tag.token == token && length == request_len);
                let Some(tag) = tag else {
                    count_foreign(&request[..length], &mut guard.recorder);
                    guard.idle(clock::raw())?;
                    continue;
                };
                // A duplicate request gets no second reply: clients do not retransmit.
                if window.is_new(tag.number) {
                    reply[..RrTag::LEN].copy_from_slice(&tag.encode());
                    // A reply that cannot be sent is lost, and the client counts it.
                    if guard.take_permit() {
                        let _ = socket.send(&reply);
                    }
                    guard.answered()?;
                } else {
                    guard.recorder.counted().duplicates += 1;
                    guard.idle(clock::raw())?;
                }
            }
            Err(error) if is_pause(&error) => guard.idle(clock::raw())?,
            // An ICMP error about a reply.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Hellos from before the start of the test may still arrive.
fn count_foreign(datagram: &[u8], recorder: &mut Recorder<'_>) {
    if Header::decode(datagram).is_err() {
        recorder.counted().foreign += 1;
    }
}
