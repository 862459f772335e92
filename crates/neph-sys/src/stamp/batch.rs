//! Many datagrams or notices in one system call, into room that is allocated once.
//!
//! Owns `recvmmsg`. Each has the same data as one that was received alone.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{Notice, Received, describe, notice};

/// Room for the control messages of a datagram: a timestamp (64), addresses (20 to 36), TTL, an error
/// queue entry (72).
const CONTROL: usize = 320;

/// Room for a number of datagrams.
pub struct Batch {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    names: Vec<libc::sockaddr_storage>,
    controls: Vec<Control>,
    bytes: Vec<u8>,
    /// Bytes for each datagram.
    size: usize,
    /// How many of the headers the latest call has changed.
    used: usize,
}

/// Control buffers must be aligned as `cmsghdr` is.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Control([u8; CONTROL]);

/// Whether a call waits for a first datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Takes what is there.
    None,
    /// Waits for one as long as the socket does (`SO_RCVTIMEO`), then takes what is there.
    First,
}

// SAFETY: the pointers in the headers and vectors point into the vectors of this struct. Their memory
// stays where it is when the batch moves, and is not used between calls.
unsafe impl Send for Batch {}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch({} of {} bytes)", self.headers.len(), self.size)
    }
}

impl Batch {
    /// Room for `count` datagrams of up to `size` bytes each.
    pub fn new(count: usize, size: usize) -> Self {
        // SAFETY: all of these are plain data for which all zeros is valid.
        let (header, vector, name) = unsafe { (zeroed(), zeroed(), zeroed()) };
        let mut batch = Self {
            headers: vec![header; count],
            vectors: vec![vector; count],
            names: vec![name; count],
            controls: vec![Control([0; CONTROL]); count],
            bytes: vec![0; count * size],
            size,
            used: count,
        };
        batch.point();
        batch
    }

    /// Lets headers and vectors point at what belongs to them; none of it is ever reallocated.
    fn point(&mut self) {
        for (at, header) in self.headers.iter_mut().enumerate() {
            self.vectors[at] = libc::iovec {
                iov_base: self.bytes.as_mut_ptr().wrapping_add(at * self.size).cast(),
                iov_len: self.size,
            };
            header.msg_hdr.msg_name = (&raw mut self.names[at]).cast();
            header.msg_hdr.msg_iov = &raw mut self.vectors[at];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = self.controls[at].0.as_mut_ptr().cast();
        }
    }

    /// Receives datagrams; how many.
    ///
    /// # Errors
    /// As `recvmmsg(2)`: `WouldBlock` when there is none.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, patience: Patience) -> io::Result<usize> {
        self.call(
            socket,
            match patience {
                Patience::None => libc::MSG_DONTWAIT,
                Patience::First => libc::MSG_WAITFORONE,
            },
        )
    }

    /// Takes notices off the socket's error queue; how many. Never blocks.
    ///
    /// # Errors
    /// As `recvmmsg(2)`: `WouldBlock` when there is none.
    pub fn take_notices(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.call(socket, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
    }

    fn call(&mut self, socket: BorrowedFd<'_>, flags: libc::c_int) -> io::Result<usize> {
        // The latest call changed these lengths, which are input and output.
        for header in &mut self.headers[..self.used] {
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_hdr.msg_controllen = CONTROL as _;
            header.msg_hdr.msg_flags = 0;
        }
        self.used = 0;
        // SAFETY: each header points at an address, a vector over bytes of its own and a control buffer,
        // and has their true sizes. self owns all of them and is borrowed for the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error());
        // A call that found nothing may have touched the first one.
        self.used = count
            .as_ref()
            .map_or(1, |count| count + 1)
            .min(self.headers.len());
        count
    }

    /// Datagram `at` of those that the latest call of [`Self::receive`] counted.
    pub fn datagram(&self, at: usize) -> (&[u8], Received) {
        let header = &self.headers[at];
        let len = (header.msg_len as usize).min(self.size);
        let bytes = &self.bytes[at * self.size..][..len];
        (bytes, describe(&header.msg_hdr, &self.names[at], len))
    }

    /// Notice `at` of those that the latest call of [`Self::take_notices`] counted.
    pub fn notice(&self, at: usize) -> Notice {
        notice(&self.headers[at].msg_hdr)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;
    use crate::stamp::{Carrier, Family, enable, enable_port, enable_ttl};

    #[test]
    fn packets_received_in_a_batch_have_the_same_data_as_single_packets() {
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a port");
        enable(sender.as_fd(), Carrier::Departures).expect("stamps");
        enable_ttl(sender.as_fd(), Family::V4).expect("TTL");
        enable_port(sender.as_fd(), Family::V4).expect("port");
        enable(receiver.as_fd(), Carrier::Departures).expect("stamps");
        let to = sender.local_addr().expect("bound");
        for payload in [&b"one"[..], b"second", b"the third is cut off"] {
            receiver.send_to(payload, to).expect("sent");
        }
        let mut batch = Batch::new(8, 8);
        let count = batch
            .receive(sender.as_fd(), Patience::First)
            .expect("some");
        assert_eq!(count, 3);
        let (bytes, metadata) = batch.datagram(1);
        assert_eq!(bytes, b"second");
        assert_eq!(metadata.from, receiver.local_addr().ok());
        assert_eq!((metadata.ttl, metadata.port), (Some(64), Some(to.port())));
        assert!(!metadata.truncated && batch.datagram(2).1.truncated);
        let none = batch
            .receive(sender.as_fd(), Patience::None)
            .expect_err("all were taken");
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        let count = batch.take_notices(receiver.as_fd()).expect("departures");
        let ids: Vec<_> = (0..count)
            .filter_map(|at| match batch.notice(at) {
                Notice::Stamp(stamp) => Some(stamp.id),
                Notice::Other => None,
            })
            .collect();
        assert_eq!(ids, [0, 1, 2]);
    }
}
