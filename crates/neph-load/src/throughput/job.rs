//! The request of a client: a throughput test or a request/response test.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};

use neph_model::Span;
use neph_wire::throughput::{ClientMessage, Protocol, RrKind, RrTestRequest, TestRequest};

use super::carrier::Carrier;
use super::engine::TestEnd;

/// A test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Data in one direction or both.
    Throughput(TestRequest),
    /// Requests and replies.
    Rr(RrTestRequest),
}

impl Job {
    /// The message that requests it.
    pub(super) fn message(&self) -> ClientMessage {
        match self {
            Self::Throughput(test_request) => ClientMessage::Ask(test_request.clone()),
            Self::Rr(test_request) => ClientMessage::AskRr(test_request.clone()),
        }
    }

    /// Its duration.
    pub fn duration(&self) -> Span {
        let nanos = match self {
            Self::Throughput(test_request) => test_request.duration_ns,
            Self::Rr(test_request) => test_request.duration_ns,
        };
        Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX / 2))
    }

    /// Number of streams; of a throughput test, per direction.
    pub const fn streams(&self) -> u16 {
        match self {
            Self::Throughput(test_request) => test_request.streams,
            Self::Rr(test_request) => test_request.streams,
        }
    }

    /// Number of streams with a socket before the test starts.
    pub(super) fn carriers(&self) -> u16 {
        match self {
            Self::Throughput(test_request) => test_request.all_streams(),
            Self::Rr(test_request) => test_request.carried_streams(),
        }
    }

    /// The protocol of these sockets.
    pub(super) const fn protocol(&self) -> Protocol {
        match self {
            Self::Throughput(test_request) => test_request.protocol,
            Self::Rr(test_request) => match test_request.kind {
                RrKind::UdpRr => Protocol::Udp,
                RrKind::TcpRr | RrKind::TcpCrr => Protocol::Tcp,
            },
        }
    }

    /// Prepares the connection of a stream at this end.
    pub(super) fn connection(
        &self,
        stream: TcpStream,
        end: TestEnd,
        number: u16,
    ) -> io::Result<Carrier> {
        match self {
            Self::Throughput(test_request) => {
                Carrier::tcp(stream, test_request, end.sends(test_request, number))
            }
            Self::Rr(test_request) => Carrier::rr_stream(stream, test_request),
        }
    }

    /// Prepares the UDP socket of a stream at this end, and connects it to its peer.
    pub(super) fn datagrams(
        &self,
        socket: UdpSocket,
        peer: SocketAddr,
        end: TestEnd,
        number: u16,
    ) -> io::Result<Carrier> {
        match self {
            Self::Throughput(test_request) => {
                Carrier::udp(socket, peer, test_request, end.sends(test_request, number))
            }
            Self::Rr(test_request) => Carrier::rr_datagrams(socket, peer, test_request),
        }
    }
}
