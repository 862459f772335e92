//! Requests timestamps, and other data about each packet, from a socket.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What a socket carries decides which timestamps the kernel can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// UDP, ICMP: one timestamp identity per datagram, counted from 0.
    Datagrams,
    /// As [`Carrier::Datagrams`], but with a send timestamp only, none of queueing: half as much to
    /// read at thousands of packets per second.
    Departures,
    /// TCP: a timestamp's identity is the offset of a write's last byte, counted from the moment of
    /// [`enable`]; acknowledgements and statistics too. The socket must not be closed or listening.
    Stream,
    /// As [`Carrier::Stream`], but with send timestamps only, without statistics.
    StreamDepartures,
}

/// Makes the kernel take timestamps of this socket's packets from now on, in both directions.
///
/// # Errors
/// `EINVAL` for a stream on a socket that was never connected.
pub fn enable(socket: BorrowedFd<'_>, carrier: Carrier) -> io::Result<()> {
    match set_stamping(socket, flags(carrier)) {
        // Unknown before Linux 6.2. Without it offsets count from the first unacknowledged byte,
        // which is the same where nothing has been written yet.
        Err(error)
            if matches!(carrier, Carrier::Stream | Carrier::StreamDepartures)
                && error.kind() == io::ErrorKind::InvalidInput =>
        {
            set_stamping(socket, flags(carrier) & !libc::SOF_TIMESTAMPING_OPT_ID_TCP)
        }
        outcome => outcome,
    }
}

const fn flags(carrier: Carrier) -> libc::c_uint {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_RX_SOFTWARE
        | libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_TX_SCHED
        | libc::SOF_TIMESTAMPING_OPT_CMSG
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    match carrier {
        Carrier::Datagrams => flags,
        Carrier::Departures => flags & !libc::SOF_TIMESTAMPING_TX_SCHED,
        Carrier::StreamDepartures => {
            flags & !libc::SOF_TIMESTAMPING_TX_SCHED | libc::SOF_TIMESTAMPING_OPT_ID_TCP
        }
        Carrier::Stream => {
            flags
                | libc::SOF_TIMESTAMPING_TX_ACK
                | libc::SOF_TIMESTAMPING_OPT_STATS
                | libc::SOF_TIMESTAMPING_OPT_ID_TCP
        }
    }
}

fn set_stamping(socket: BorrowedFd<'_>, flags: libc::c_uint) -> io::Result<()> {
    set_option(
        socket,
        libc::SOL_SOCKET,
        libc::SO_TIMESTAMPING,
        flags.cast_signed(),
    )
}

/// Counts this socket's datagrams from 0 again, after a send if it is unknown whether the kernel
/// counted it.
///
/// # Errors
/// None known on Linux.
pub fn restart_count(socket: BorrowedFd<'_>, carrier: Carrier) -> io::Result<()> {
    // The count starts where the identities are switched on.
    set_stamping(socket, 0)?;
    set_stamping(socket, flags(carrier))
}

/// Asks for receive timestamps only.
///
/// # Errors
/// None known on Linux.
pub fn enable_receive(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
    set_stamping(socket, flags)
}

/// Asks for the TTL or hop limit of each received datagram.
///
/// # Errors
/// None known on Linux.
pub fn enable_ttl(socket: BorrowedFd<'_>, family: Family) -> io::Result<()> {
    match family {
        Family::V4 => set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTTL, 1),
        Family::V6 => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1),
    }
}

/// Requests the local port that each received datagram was sent to: it is reported if it is not the
/// socket's own.
///
/// # Errors
/// None known on Linux.
pub fn enable_port(socket: BorrowedFd<'_>, family: Family) -> io::Result<()> {
    match family {
        Family::V4 => set_option(socket, libc::IPPROTO_IP, libc::IP_RECVORIGDSTADDR, 1),
        Family::V6 => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVORIGDSTADDR, 1),
    }
}

/// Makes room for `bytes` of received data that are not read yet, including notices of sent packets.
/// Takes as much as is permitted (`net.core.rmem_max`; with `CAP_NET_ADMIN` all of it).
///
/// # Errors
/// None known on Linux.
pub fn make_room(socket: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    let force = set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes);
    force.or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// How many packets the kernel dropped so far because this socket's buffer was full.
///
/// # Errors
/// `InvalidInput` before Linux 4.12.
pub fn dropped(socket: BorrowedFd<'_>) -> io::Result<u64> {
    /// `SO_MEMINFO` of asm-generic/socket.h, and its values (`SK_MEMINFO_*`).
    const SO_MEMINFO: libc::c_int = 55;
    const DROPS: usize = 8;
    let mut memory_info = [0_u32; DROPS + 1];
    let mut len = size_of_val(&memory_info) as libc::socklen_t;
    // SAFETY: getsockopt writes at most `len` bytes to `reported`, which has that size.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            memory_info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if outcome == 0 {
        Ok(memory_info[DROPS].into())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The two versions of the internet protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4
    V4,
    /// IPv6
    V6,
}

pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: setsockopt reads one int, alive for the call, and its true size is passed.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A socket that only keeps the machine's receive timestamps switched on. It has no address: it gets
/// no packets, and the namespace needs none (a new one's loopback is down).
#[derive(Debug)]
pub struct KeepAwake(
    #[cfg_attr(not(test), expect(dead_code, reason = "lives for its effect"))] OwnedFd,
);

impl KeepAwake {
    /// Switches it on; sleep a few milliseconds before the first timestamp is needed.
    ///
    /// # Errors
    /// Where no UDP socket can be had.
    pub fn new() -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: socket takes integers only.
        let raw = unsafe { libc::socket(libc::AF_INET, kind, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor and it has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        enable_receive(socket.as_fd())?;
        Ok(Self(socket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_that_keeps_stamping_enabled_has_no_address() {
        let awake = KeepAwake::new().expect("a socket");
        let socket = std::net::UdpSocket::from(awake.0);
        let address = socket.local_addr().expect("of no place");
        assert_eq!(address, ([0, 0, 0, 0], 0).into());
    }
}
