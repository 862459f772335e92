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
            Self::Throughput(ask) => ClientMessage::Ask(ask.clone()),
            Self::Rr(ask) => ClientMessage::AskRr(ask.clone()),
        }
    }

    /// Its duration.
    pub fn duration(&self) -> Span {
        let nanos = match self {
            Self::Throughput(ask) => ask.duration_ns,
            Self::Rr(ask) => ask.duration_ns,
        };
        Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX / 2))
    }

    /// Number of streams; of a throughput test, per direction.
    pub const fn streams(&self) -> u16 {
        match self {
            Self::Throughput(ask) => ask.streams,
            Self::Rr(ask) => ask.streams,
        }
    }

    /// Number of streams with a socket before the test starts.
    pub(super) fn carriers(&self) -> u16 {
        match self {
            Self::Throughput(ask) => ask.all_streams(),
            Self::Rr(ask) => ask.carried_streams(),
        }
    }

    /// The protocol of these sockets.
    pub(super) const fn protocol(&self) -> Protocol {
        match self {
            Self::Throughput(ask) => ask.protocol,
            Self::Rr(ask) => match ask.kind {
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
            Self::Throughput(ask) => Carrier::tcp(stream, ask, end.sends(ask, number)),
            Self::Rr(ask) => Carrier::turns(stream, ask),
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
            Self::Throughput(ask) => Carrier::udp(socket, peer, ask, end.sends(ask, number)),
            Self::Rr(ask) => Carrier::turn_datagrams(socket, peer, ask),
        }
    }
}
