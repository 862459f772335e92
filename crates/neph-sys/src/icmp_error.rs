//! What routers and hosts answer to a socket's datagrams with ICMP errors, without privilege.
//!
//! Owns `IP_RECVERR` and its entries in the error queue (ip(7)). On a socket that asks for timestamps
//! too, both kinds of notice share the queue and come out in order.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;

use crate::clock::WallNanos;
use crate::stamp::{
    CONTROL, Call, Control, Family, Notice, SendStamp, point_of, set_option, software_stamp,
};

/// `SO_EE_ORIGIN_ICMP` and `SO_EE_ORIGIN_ICMP6` of linux/errqueue.h.
const ORIGIN_V4: u8 = 2;
const ORIGIN_V6: u8 = 3;
/// `struct sock_extended_err`; the address of the error's sender follows it.
const ENTRY: usize = 16;

/// An ICMP error that one of the socket's datagrams met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// Where that datagram was sent to.
    pub to: Option<SocketAddr>,
    /// The sender of the error.
    pub from: Option<IpAddr>,
    /// ICMP type: 11 (v4) or 3 (v6) is "time exceeded".
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// When the error arrived, if the socket asks for receive timestamps.
    pub at: Option<WallNanos>,
}

/// What waited in the error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// An ICMP error.
    Icmp(IcmpError),
    /// A timestamp, or something else.
    Notice(Notice),
}

/// Asks the kernel to keep ICMP errors for this socket.
///
/// # Errors
/// None known on Linux.
pub fn enable(socket: BorrowedFd<'_>, family: Family) -> io::Result<()> {
    match family {
        Family::V4 => set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1),
        Family::V6 => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
    }
}

/// Takes one entry off the socket's error queue; `None` when it is empty. Never blocks.
///
/// # Errors
/// As recvmsg(2).
pub fn take(socket: BorrowedFd<'_>) -> io::Result<Option<Queued>> {
    Ok(take_quoted(socket, &mut [])?.map(|(queued, _)| queued))
}

/// As [`take`]; also copies into `quoted` what the error quotes of the datagram's payload (on a datagram
/// socket of ICMP: of its message), and returns its length in bytes.
///
/// # Errors
/// As recvmsg(2).
pub fn take_quoted(
    socket: BorrowedFd<'_>,
    quoted: &mut [u8],
) -> io::Result<Option<(Queued, usize)>> {
    let room = quoted.len();
    let mut control = Control([0; CONTROL]);
    let mut call = Call::new(quoted, &mut control);
    let len = match call.receive(socket, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) {
        Ok(len) => len.min(room),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    };
    let (mut at, mut icmp, mut point) = (None, None, None);
    call.each_control(|level, kind, data| match (level, kind) {
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => at = software_stamp(data),
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
            icmp = icmp_of(data);
            point = point_of(data);
        }
        _ => {}
    });
    let queued = match (icmp, point, at) {
        (Some(icmp), ..) => Queued::Icmp(IcmpError {
            to: call.from(),
            at,
            ..icmp
        }),
        (None, Some((point, id)), Some(at)) => Queued::Notice(Notice::Stamp(SendStamp {
            point,
            id,
            at,
            tcp: None,
        })),
        _ => Queued::Notice(Notice::Other),
    };
    Ok(Some((queued, len)))
}

fn icmp_of(data: &[u8]) -> Option<IcmpError> {
    let (origin, kind, code) = (*data.get(4)?, *data.get(5)?, *data.get(6)?);
    (origin == ORIGIN_V4 || origin == ORIGIN_V6).then(|| IcmpError {
        to: None,
        from: data.get(ENTRY..).and_then(address),
        kind,
        code,
        at: None,
    })
}

/// `sockaddr_in`: family u16, port u16, address; `sockaddr_in6` has a flow label before it.
fn address(data: &[u8]) -> Option<IpAddr> {
    let family = u16::from_ne_bytes(data.get(..2)?.try_into().ok()?);
    match libc::c_int::from(family) {
        libc::AF_INET => {
            let bytes: [u8; 4] = data.get(4..8)?.try_into().ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(bytes)))
        }
        libc::AF_INET6 => {
            let bytes: [u8; 16] = data.get(8..24)?.try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use crate::deadline::Deadline;

    #[test]
    fn the_icmp_error_of_a_closed_port_quotes_the_datagram() {
        let closed_socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let to = closed_socket.local_addr().expect("bound");
        // Bound before the other's port is free, so that it is not given that one.
        let sender = UdpSocket::bind("127.0.0.1:0").expect("bind");
        drop(closed_socket);
        enable(sender.as_fd(), Family::V4).expect("errors");
        let deadline = Deadline::after(Duration::from_secs(20));
        let mut due = Deadline::after(Duration::ZERO);
        let error = loop {
            assert!(!deadline.has_passed(), "no error came");
            // Kernels limit how many errors they send: one that is not sent is not made up for.
            if due.has_passed() {
                due = Deadline::after(Duration::from_millis(200));
                // Sending may return the error of the datagram before.
                let _ = sender.send_to(b"hello", to);
            }
            let mut quoted = [0; 16];
            match take_quoted(sender.as_fd(), &mut quoted).expect("the queue can be read") {
                Some((Queued::Icmp(error), len)) => {
                    assert_eq!(&quoted[..len], b"hello");
                    break error;
                }
                _ => std::thread::yield_now(),
            }
        };
        assert_eq!((error.kind, error.code), (3, 3), "port unreachable");
        assert_eq!(error.to, Some(to));
        assert_eq!(error.from, Some(to.ip()));
    }

    #[test]
    fn a_truncated_error_queue_entry_is_ignored() {
        for len in 0..24 {
            let mut data = vec![0; len];
            if let Some(origin) = data.get_mut(4) {
                *origin = ORIGIN_V4;
            }
            let icmp = icmp_of(&data);
            assert_eq!(icmp.is_some(), len >= 7, "{len}");
            assert!(icmp.is_none_or(|error| error.from.is_none()));
        }
    }
}
