//! Sockets with kernel timestamps of their packets: when received, queued, sent and acknowledged.
//!
//! Owns `SO_TIMESTAMPING` and its control messages (Documentation/networking/timestamping.rst).
//! Uses software timestamps in `CLOCK_REALTIME`, no hardware clocks. Needs no privilege. For some
//! milliseconds after the first such socket of a machine, receive timestamps may be missing: a work
//! queue switches on a static key. [`KeepAwake`] avoids that.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]
#![expect(clippy::cast_possible_truncation, reason = "sizes of small structs")]

mod asking;
mod batch;

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::clock::WallNanos;
use crate::destination;
use crate::tcp::{self, TcpStats};

pub(crate) use asking::set_option;
pub use asking::{
    Carrier, Family, KeepAwake, dropped, enable, enable_port, enable_receive, enable_ttl,
    make_room, restart_count,
};
pub use batch::{Batch, Patience};

/// `SCM_TSTAMP_SND`, `SCM_TSTAMP_SCHED`, `SCM_TSTAMP_ACK` of linux/errqueue.h.
const SENT_INFO: u32 = 0;
const SCHED_INFO: u32 = 1;
const ACKED_INFO: u32 = 2;
/// Control messages are named after the option that asks for them (asm-generic/socket.h).
const SCM_TIMESTAMPING: libc::c_int = libc::SO_TIMESTAMPING;
const SCM_TIMESTAMPING_OPT_STATS: libc::c_int = 54;
/// Room for a timestamp (64), an error queue entry with addresses (48), statistics (about 400), TTL.
pub(crate) const CONTROL: usize = 1024;

/// What one receive call brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes put into the buffer; 0 on a stream is its end.
    pub len: usize,
    /// When the kernel received the packet (on a stream: the last one this call took from).
    pub stamp: Option<WallNanos>,
    /// The sender (unconnected datagram sockets only).
    pub from: Option<SocketAddr>,
    /// The local address it was sent to, if asked for with [`destination::enable`].
    pub to: Option<IpAddr>,
    /// The local port it was sent to, if asked for with [`enable_port`].
    pub port: Option<u16>,
    /// TTL or hop limit, if asked for with [`enable_ttl`].
    pub ttl: Option<u8>,
    /// The datagram was longer than the buffer.
    pub truncated: bool,
}

/// Receives into `buffer`.
///
/// # Errors
/// As recvmsg(2): `WouldBlock` when there is nothing, `ConnectionReset`, `ConnectionRefused` ...
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let mut control = Control([0; CONTROL]);
    let mut call = Call::new(buffer, &mut control);
    let len = call.receive(socket, 0)?;
    Ok(describe(&call.header, &call.name, len))
}

/// What the kernel reported about a datagram of `len` bytes.
fn describe(header: &libc::msghdr, name: &libc::sockaddr_storage, len: usize) -> Received {
    let mut received = Received {
        len,
        stamp: None,
        from: sender(header, name),
        to: None,
        port: None,
        ttl: None,
        truncated: header.msg_flags & libc::MSG_TRUNC != 0,
    };
    each_control(header, |level, kind, data| match (level, kind) {
        (libc::SOL_SOCKET, SCM_TIMESTAMPING) => received.stamp = software_stamp(data),
        (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
            received.ttl = data.first().copied();
        }
        (libc::IPPROTO_IP, libc::IP_ORIGDSTADDR) | (libc::IPPROTO_IPV6, libc::IPV6_ORIGDSTADDR) => {
            // In both kinds of address the port stands behind the family.
            let port = data.get(2..4).and_then(|port| port.try_into().ok());
            received.port = port.map(u16::from_be_bytes);
        }
        _ => received.to = destination::parse_address(level, kind, data).or(received.to),
    });
    received
}

/// The point of the send path at which a timestamp was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Entered the queueing discipline.
    Queued,
    /// Handed to the driver.
    Sent,
    /// All its bytes were acknowledged by the peer's TCP.
    Acked,
}

/// A timestamp of something that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendStamp {
    /// At which point.
    pub point: Point,
    /// The datagram's number, or the offset of the write's last byte, modulo 2^32.
    pub id: u32,
    /// When.
    pub at: WallNanos,
    /// The connection's statistics at that moment (streams only).
    pub tcp: Option<TcpStats>,
}

/// What waited in a socket's error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A send timestamp.
    Stamp(SendStamp),
    /// Anything else (an ICMP error, an unknown timestamp): taken off the queue.
    Other,
}

/// Takes one notice off the socket's error queue; `None` when it is empty. Never blocks.
///
/// # Errors
/// As recvmsg(2).
pub fn take_notice(socket: BorrowedFd<'_>) -> io::Result<Option<Notice>> {
    let mut control = Control([0; CONTROL]);
    let mut call = Call::new(&mut [], &mut control);
    match call.receive(socket, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    }
    Ok(Some(notice(&call.header)))
}

fn notice(header: &libc::msghdr) -> Notice {
    let mut at = None;
    let mut point = None;
    let mut tcp = None;
    each_control(header, |level, kind, data| match (level, kind) {
        (libc::SOL_SOCKET, SCM_TIMESTAMPING) => at = software_stamp(data),
        (libc::SOL_SOCKET, SCM_TIMESTAMPING_OPT_STATS) => tcp = Some(tcp::from_netlink(data)),
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
            point = point_of(data);
        }
        _ => {}
    });
    match (at, point) {
        (Some(at), Some((point, id))) => Notice::Stamp(SendStamp { point, id, at, tcp }),
        _ => Notice::Other,
    }
}

/// `struct scm_timestamping` is three timespecs; the first is the software timestamp.
pub(crate) fn software_stamp(data: &[u8]) -> Option<WallNanos> {
    let word = |at: usize| -> Option<i64> {
        Some(i64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?))
    };
    let nanos = word(0)?.checked_mul(1_000_000_000)?.checked_add(word(8)?)?;
    (nanos != 0).then_some(WallNanos(nanos))
}

/// `struct sock_extended_err`: errno u32, origin u8, type u8, code u8, pad, info u32, data u32.
pub(crate) fn point_of(data: &[u8]) -> Option<(Point, u32)> {
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?))
    };
    if *data.get(4)? != libc::SO_EE_ORIGIN_TIMESTAMPING {
        return None;
    }
    let point = match word(8)? {
        SENT_INFO => Point::Sent,
        SCHED_INFO => Point::Queued,
        ACKED_INFO => Point::Acked,
        _ => return None,
    };
    Some((point, word(12)?))
}

/// Control buffers must be aligned as `cmsghdr` is.
#[repr(align(8))]
pub(crate) struct Control(pub(crate) [u8; CONTROL]);

/// The arguments of one recvmsg call, which point at each other.
pub(crate) struct Call<'a> {
    header: libc::msghdr,
    /// The header points here from [`Call::receive`] on; reading it back needs no pointer.
    name: libc::sockaddr_storage,
    vector: libc::iovec,
    _borrowed: std::marker::PhantomData<&'a mut [u8]>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(buffer: &'a mut [u8], control: &'a mut Control) -> Self {
        // SAFETY: msghdr and sockaddr_storage are plain data for which all zeros is valid.
        let (mut header, name): (libc::msghdr, libc::sockaddr_storage) = unsafe { zeroed() };
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL as _;
        let vector = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        Self {
            header,
            name,
            vector,
            _borrowed: std::marker::PhantomData,
        }
    }

    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        flags: libc::c_int,
    ) -> io::Result<usize> {
        self.header.msg_iov = &raw mut self.vector;
        self.header.msg_iovlen = 1;
        self.header.msg_name = (&raw mut self.name).cast();
        self.header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: the header points at an address, a vector, a buffer and a control buffer, and has their
        // true sizes. self owns or exclusively borrows all of them during the call.
        let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut self.header, flags) };
        usize::try_from(len).map_err(|_| io::Error::last_os_error())
    }

    pub(crate) fn each_control(&self, see: impl FnMut(libc::c_int, libc::c_int, &[u8])) {
        each_control(&self.header, see);
    }

    pub(crate) fn from(&self) -> Option<SocketAddr> {
        sender(&self.header, &self.name)
    }
}

/// The control messages of a header that a receiving call filled.
fn each_control(header: &libc::msghdr, mut see: impl FnMut(libc::c_int, libc::c_int, &[u8])) {
    // SAFETY: the kernel filled msg_control with msg_controllen bytes of well-formed control
    // messages; the CMSG functions stay within them, and each data slice within its message.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(std::ptr::from_ref(header));
        while !at.is_null() {
            let length = (*at).cmsg_len as usize;
            let data = libc::CMSG_DATA(at);
            let head = data as usize - at as usize;
            let slice = std::slice::from_raw_parts(data, length.saturating_sub(head));
            see((*at).cmsg_level, (*at).cmsg_type, slice);
            at = libc::CMSG_NXTHDR(std::ptr::from_ref(header), at);
        }
    }
}

/// The address that a receiving call wrote.
fn sender(header: &libc::msghdr, name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    if header.msg_namelen == 0 {
        return None;
    }
    let family = name.ss_family;
    let name = std::ptr::from_ref(name);
    match libc::c_int::from(family) {
        libc::AF_INET => {
            // SAFETY: the family shows that the storage holds a sockaddr_in.
            let v4 = unsafe { &*name.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family shows that the storage holds a sockaddr_in6.
            let v6 = unsafe { &*name.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            // The scope is the interface of a link-local peer: no reply is sent without it.
            Some(SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Writes to a stream. The end of a message is marked: the kernel then does not append the next
/// message to the same packet, and every message has its own timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// More of this message follows.
    Open,
    /// These bytes end a message (`MSG_EOR`).
    Message,
}

/// Writes as much as the kernel takes without blocking.
///
/// # Errors
/// As sendmsg(2): `WouldBlock` when the send buffer is full, `BrokenPipe`, `ConnectionReset` ...
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], ending: Ending) -> io::Result<usize> {
    let end = match ending {
        Ending::Open => 0,
        Ending::Message => libc::MSG_EOR,
    };
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | end;
    // SAFETY: send reads `bytes`, whose true length is passed.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            flags,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
#[path = "stamp/tests.rs"]
mod tests;
