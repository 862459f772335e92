//! Connects a socket that blocks for at most a tick.

use std::io;
use std::os::fd::AsFd;

use neph_sys::ppoll::{self, Awaited};
use socket2::{SockAddr, Socket};

use super::super::run::TICK;

const EINPROGRESS: i32 = 115;

/// Returns whether it is connected. Calls `go_on` at each tick; it returns whether to continue.
pub(super) fn connect(
    socket: &Socket,
    address: &SockAddr,
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<bool> {
    match socket.connect(address) {
        Ok(()) => return Ok(true),
        // `connect` returns this after the send timeout (connect(2)).
        Err(error) if error.raw_os_error() == Some(EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    while go_on() {
        let mut poll_fds = [Awaited::writable(socket.as_fd())];
        ppoll::wait(&mut poll_fds, Some(TICK.to_duration()))?;
        if poll_fds[0].has_something() {
            return socket.take_error()?.map_or(Ok(true), Err);
        }
    }
    Ok(false)
}
