//! Room for what a socket receives: what finds none is dropped, send stamps included.

use std::io;
use std::os::fd::BorrowedFd;

use crate::stamp::set_option;

/// Asks for this many bytes of room; with `CAP_NET_ADMIN` they are had, otherwise no more than
/// `net.core.rmem_max`. The kernel takes twice as much for its own book-keeping.
///
/// # Errors
/// None known on Linux: what is too much is made less.
pub fn for_received(socket: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn room_is_had_with_or_without_privilege() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        for_received(socket.as_fd(), 1 << 24).expect("room");
    }
}
