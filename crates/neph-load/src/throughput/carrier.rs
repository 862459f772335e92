//! Prepares the socket of a stream before data flows.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use neph_sys::bulk;
use neph_sys::stamp::{self, Family};
use neph_wire::throughput::{RrTestRequest, TestRequest};

use super::run::TICK;
use super::tcp_sender;

/// Receive buffer in bytes: some milliseconds at 70 Gbit/s.
const RECEIVE_BUFFER_BYTES: i32 = 32 << 20;

/// The socket of a stream.
#[derive(Debug)]
pub(super) enum Carrier {
    /// A connection.
    Tcp(TcpStream),
    /// A connected UDP socket.
    Udp(UdpSocket),
}

impl Carrier {
    /// Prepares a connection; `sends`: whether this end sends on it.
    pub(super) fn tcp(
        stream: TcpStream,
        test_request: &TestRequest,
        sends: bool,
    ) -> io::Result<Self> {
        if sends {
            tcp_sender::prepare(&stream, test_request.congestion.as_deref())?;
        }
        mark(stream.as_fd(), stream.peer_addr()?, test_request.dscp)?;
        Ok(Self::Tcp(stream))
    }

    /// Prepares a UDP socket before it is connected to `peer`, so that it is ready for the first
    /// datagrams; `sends`: whether this end sends on it.
    pub(super) fn udp(
        socket: UdpSocket,
        peer: SocketAddr,
        test_request: &TestRequest,
        sends: bool,
    ) -> io::Result<Self> {
        if !sends {
            stamp::make_room(socket.as_fd(), RECEIVE_BUFFER_BYTES)?;
            bulk::enable_stamps(socket.as_fd())?;
            // Kernels before 5.0 return one datagram per call.
            let _ = bulk::join_datagrams(socket.as_fd());
        }
        mark(socket.as_fd(), peer, test_request.dscp)?;
        socket.connect(peer)?;
        Ok(Self::Udp(socket))
    }

    /// Prepares a connection for requests and replies: both ends block for at most a tick.
    pub(super) fn rr_stream(stream: TcpStream, test_request: &RrTestRequest) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TICK.to_duration()))?;
        stream.set_write_timeout(Some(TICK.to_duration()))?;
        mark(stream.as_fd(), stream.peer_addr()?, test_request.dscp)?;
        Ok(Self::Tcp(stream))
    }

    /// Prepares a socket for requests and replies before it is connected to `peer`.
    pub(super) fn rr_datagrams(
        socket: UdpSocket,
        peer: SocketAddr,
        test_request: &RrTestRequest,
    ) -> io::Result<Self> {
        socket.set_read_timeout(Some(TICK.to_duration()))?;
        mark(socket.as_fd(), peer, test_request.dscp)?;
        socket.connect(peer)?;
        Ok(Self::Udp(socket))
    }
}

/// Sets the DSCP of sent packets, if there is one.
pub(super) fn mark(socket: BorrowedFd<'_>, peer: SocketAddr, dscp: Option<u8>) -> io::Result<()> {
    let Some(dscp) = dscp else { return Ok(()) };
    match peer {
        SocketAddr::V4(_) => bulk::set_code_point(socket, Family::V4, dscp),
        SocketAddr::V6(address) => {
            if address.ip().to_ipv4_mapped().is_some() {
                bulk::set_code_point(socket, Family::V4, dscp)?;
            }
            bulk::set_code_point(socket, Family::V6, dscp)
        }
    }
}
