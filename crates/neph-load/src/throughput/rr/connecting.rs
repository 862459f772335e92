//! Connects a socket that blocks for a tick at most.

use std::io;
use std::os::fd::AsFd;

use neph_sys::ppoll::{self, Awaited};
use socket2::{SockAddr, Socket};

use super::super::run::TICK;

const EINPROGRESS: i32 = 115;

/// Whether it is connected; `look` is asked at each tick without whether to go on.
pub(super) fn connect(
    socket: &Socket,
    to: &SockAddr,
    look: &mut dyn FnMut() -> bool,
) -> io::Result<bool> {
    match socket.connect(to) {
        Ok(()) => return Ok(true),
        // So ends a connect call after the send timeout (connect(2)).
        Err(error) if error.raw_os_error() == Some(EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    while look() {
        let mut awaited = [Awaited::writable(socket.as_fd())];
        ppoll::wait(&mut awaited, Some(TICK.to_duration()))?;
        if awaited[0].has_something() {
            return socket.take_error()?.map_or(Ok(true), Err);
        }
    }
    Ok(false)
}
