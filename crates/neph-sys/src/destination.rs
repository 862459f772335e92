//! To which local address a datagram came, and replying from that address.
//!
//! A socket that listens on all addresses leaves the choice of the sender's address to the routes.
//! A peer that asked another local address drops the reply. Owns `IP_PKTINFO` and
//! `IPV6_RECVPKTINFO` (ip(7), RFC 3542). On an IPv6 socket both serve IPv4 peers too, as mapped
//! addresses.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]
#![expect(clippy::cast_possible_truncation, reason = "sizes of small structs")]

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::stamp::{Family, set_option};

/// Asks for the destination of each received datagram.
///
/// # Errors
/// None known on Linux.
pub fn enable(socket: BorrowedFd<'_>, family: Family) -> io::Result<()> {
    match family {
        Family::V4 => set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        Family::V6 => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
    }
}

/// The local address that a control message names. For a multicast or broadcast datagram it is the
/// interface's own one (IPv4), or none.
pub(crate) fn parse_address(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Option<IpAddr> {
    match (level, kind) {
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            // struct in_pktinfo: interface, local address, destination in the header.
            let octets: [u8; 4] = data.get(4..8)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets).into())
        }
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            // struct in6_pktinfo: destination, interface.
            let octets: [u8; 16] = data.get(..16)?.try_into().ok()?;
            let octets = Ipv6Addr::from(octets);
            (!octets.is_multicast()).then_some(octets.into())
        }
        _ => None,
    }
}

/// Whether a datagram gets a send timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamping {
    /// Where timestamps were requested for the socket.
    AsAsked,
    /// Never, for any setting of the socket; the datagram is not counted among those with timestamps.
    Never,
}

/// Sends a datagram from this local address; the routes choose one if it is `None`.
///
/// # Errors
/// As sendmsg(2): `InvalidInput` or `AddrNotAvailable` if `from` is not a local address (any more).
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    from: Option<IpAddr>,
    to: SocketAddr,
    stamping: Stamping,
) -> io::Result<usize> {
    // SAFETY: sockaddr_storage and msghdr are plain data for which all zeros is valid.
    let (mut name, mut header): (libc::sockaddr_storage, libc::msghdr) = unsafe { zeroed() };
    let mut control = Control([0; SPACE]);
    let mut vector = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    header.msg_namelen = match to {
        SocketAddr::V4(to) => put(&mut name, v4(to)),
        SocketAddr::V6(to) => put(&mut name, v6(to)),
    };
    header.msg_name = (&raw mut name).cast();
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    let mut control_len = 0;
    if let Some(from) = from {
        control_len = match from {
            IpAddr::V4(from) => {
                let (level, kind) = (libc::IPPROTO_IP, libc::IP_PKTINFO);
                report(&mut control, control_len, (level, kind), info4(from))
            }
            IpAddr::V6(from) => {
                let (level, kind) = (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO);
                report(&mut control, control_len, (level, kind), info6(from))
            }
        };
    }
    if stamping == Stamping::Never {
        // Of the flags that a datagram may have for itself, none.
        let (level, kind) = (libc::SOL_SOCKET, libc::SO_TIMESTAMPING);
        control_len = report(&mut control, control_len, (level, kind), 0_u32);
    }
    if control_len > 0 {
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control_len as _;
    }
    // SAFETY: the header points at an address, a vector, the caller's bytes (only read) and a
    // control message, all alive for the call, and has their true sizes.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Room for the larger of the two structures and for a word, each in a control message.
const SPACE: usize = 64;

/// Control buffers must be aligned as `cmsghdr` is.
#[repr(align(8))]
struct Control([u8; SPACE]);

/// Writes one control message behind `before` bytes of others; returns the length of all, with
/// padding.
fn report<T>(
    control: &mut Control,
    before: usize,
    (level, kind): (libc::c_int, libc::c_int),
    value: T,
) -> usize {
    const HEAD: usize = size_of::<libc::cmsghdr>();
    const { assert!(HEAD.is_multiple_of(8) && align_of::<T>() <= 8) };
    let total_length = before + HEAD + size_of::<T>().next_multiple_of(8);
    assert!(
        before.is_multiple_of(8) && total_length <= SPACE,
        "one message too many"
    );
    // SAFETY: all zeros is a valid cmsghdr.
    let mut head: libc::cmsghdr = unsafe { zeroed() };
    head.cmsg_len = (HEAD + size_of::<T>()) as _;
    head.cmsg_level = level;
    head.cmsg_type = kind;
    // SAFETY: what is before ends within the buffer (asserted above).
    let at = unsafe { (&raw mut *control).byte_add(before) }.cast::<libc::cmsghdr>();
    // SAFETY: head and structure fit the rest of the buffer, which is aligned for both: the lengths
    // before and of the head are multiples of 8 (asserted above).
    unsafe {
        at.write(head);
        at.add(1).cast::<T>().write(value);
    }
    total_length
}

/// Writes a socket address; returns its length.
fn put<T>(name: &mut libc::sockaddr_storage, address: T) -> libc::socklen_t {
    const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
    // SAFETY: a sockaddr_storage is large and aligned enough for every kind of socket address.
    unsafe { (&raw mut *name).cast::<T>().write(address) };
    size_of::<T>() as libc::socklen_t
}

fn v4(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: in_addr(*address.ip()),
        sin_zero: [0; 8],
    }
}

fn v6(address: SocketAddrV6) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: address.port().to_be(),
        sin6_flowinfo: 0,
        sin6_addr: in6_addr(*address.ip()),
        sin6_scope_id: address.scope_id(),
    }
}

const fn in_addr(ip: Ipv4Addr) -> libc::in_addr {
    libc::in_addr {
        s_addr: u32::from_ne_bytes(ip.octets()),
    }
}

const fn in6_addr(ip: Ipv6Addr) -> libc::in6_addr {
    libc::in6_addr {
        s6_addr: ip.octets(),
    }
}

/// The interface is left to the routes.
const fn info4(from: Ipv4Addr) -> libc::in_pktinfo {
    libc::in_pktinfo {
        ipi_ifindex: 0,
        ipi_spec_dst: in_addr(from),
        ipi_addr: in_addr(Ipv4Addr::UNSPECIFIED),
    }
}

const fn info6(from: Ipv6Addr) -> libc::in6_pktinfo {
    libc::in6_pktinfo {
        ipi6_addr: in6_addr(from),
        ipi6_ifindex: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;
    use crate::stamp::{self, Batch, Carrier, Notice};

    /// Asks `requested` of a socket that listens on `all`; returns the answering address.
    fn answers(lines: &str, requested: &str, family: Family) -> io::Result<IpAddr> {
        let server = UdpSocket::bind((lines, 0))?;
        enable(server.as_fd(), family)?;
        let port = server.local_addr()?.port();
        let requested: IpAddr = requested.parse().expect("an address");
        let here: IpAddr = match requested {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let client = UdpSocket::bind((here, 0))?;
        client.set_read_timeout(Some(Duration::from_secs(2)))?;
        client.send_to(b"hello", (requested, port))?;
        let mut buffer = [0; 16];
        let received = stamp::receive(server.as_fd(), &mut buffer)?;
        let (from, to) = (received.from.expect("told"), received.to);
        assert_eq!(to.map(|ip| ip.to_canonical()), Some(requested));
        let sent = send(server.as_fd(), b"world!", to, from, Stamping::Never);
        assert_eq!(sent?, 6);
        let (len, answered) = client.recv_from(&mut buffer)?;
        assert_eq!((&buffer[..len], answered.port()), (&b"world!"[..], port));
        Ok(answered.ip())
    }

    #[test]
    fn a_reply_leaves_from_the_queried_address() {
        for requested in ["127.0.0.1", "127.0.0.2"] {
            let answered = answers("0.0.0.0", requested, Family::V4).expect("loopback");
            assert_eq!(answered.to_string(), requested);
        }
        if UdpSocket::bind("[::1]:0").is_err() {
            // A machine without IPv6 has no such peers either.
            return;
        }
        for requested in ["127.0.0.2", "::1"] {
            let answered = answers("::", requested, Family::V6).expect("loopback");
            assert_eq!(answered.to_string(), requested);
        }
    }

    #[test]
    fn a_source_address_of_another_host_is_refused() {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
        let to = socket.local_addr().expect("bound");
        let from = Some(Ipv4Addr::new(192, 0, 2, 1).into());
        let sent = send(socket.as_fd(), b"x", from, to, Stamping::AsAsked);
        assert!(sent.is_err());
    }

    #[test]
    fn a_datagram_without_timestamp_does_not_increment_the_timestamp_id() {
        for (here, family) in [("127.0.0.1", Family::V4), ("::1", Family::V6)] {
            let Ok(socket) = UdpSocket::bind((here, 0)) else {
                assert_eq!(family, Family::V6, "IPv6 alone may be missing");
                continue;
            };
            stamp::enable(socket.as_fd(), Carrier::Departures).expect("stamps");
            let to = socket.local_addr().expect("bound");
            let from = Some(to.ip());
            for stamping in [Stamping::AsAsked, Stamping::Never, Stamping::AsAsked] {
                send(socket.as_fd(), b"x", from, to, stamping).expect("sent");
            }
            let mut batch = Batch::new(8, 0);
            let count = batch.take_notices(socket.as_fd()).expect("two departures");
            let ids: Vec<_> = (0..count)
                .filter_map(|at| match batch.notice(at) {
                    Notice::Stamp(stamp) => Some(stamp.id),
                    Notice::Other => None,
                })
                .collect();
            assert_eq!(ids, [0, 1], "{here}");
        }
    }
}
