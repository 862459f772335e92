//! Request/response tests (UDP_RR, TCP_RR and TCP_CRR of netperf): the request of a client, the tag
//! of datagrams, and the counters.

use serde::{Deserialize, Serialize};

use super::preamble::Preamble;
use super::test_request::{TestRequest, TestRequestError, VERSION, check_range};
use super::token::Token;

/// Smallest datagram, bytes.
const TAG_LEN: u32 = 16;
/// First bytes of each connection.
const PREAMBLE_LEN: u32 = 16;
const _: () = assert!(TAG_LEN as usize == RrTag::LEN && PREAMBLE_LEN as usize == Preamble::LEN);

/// The kind of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RrKind {
    /// A request datagram and a reply datagram.
    UdpRr,
    /// A request and a reply on a connection that remains open.
    TcpRr,
    /// A connection that is opened, carries one request and one reply, and is closed.
    TcpCrr,
}

impl RrKind {
    /// The smallest request, bytes: the identification of test and transaction.
    pub const fn min_request_bytes(self) -> u32 {
        match self {
            Self::UdpRr => TAG_LEN,
            Self::TcpRr => 1,
            Self::TcpCrr => PREAMBLE_LEN,
        }
    }

    /// The smallest reply, bytes.
    pub const fn min_reply_bytes(self) -> u32 {
        match self {
            Self::UdpRr => TAG_LEN,
            Self::TcpRr | Self::TcpCrr => 1,
        }
    }

    /// The largest request or reply, bytes.
    pub const fn max_bytes(self) -> u32 {
        match self {
            Self::UdpRr => TestRequest::MAX_DATAGRAM_BYTES,
            Self::TcpRr | Self::TcpCrr => 1 << 20,
        }
    }

    /// The name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UdpRr => "udp_rr",
            Self::TcpRr => "tcp_rr",
            Self::TcpCrr => "tcp_crr",
        }
    }
}

/// A client's request. Each stream has one outstanding transaction and starts the next one at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RrTestRequest {
    /// [`VERSION`] of the client.
    pub version: u32,
    /// The kind of a transaction.
    pub kind: RrKind,
    /// Streams, numbered from 0.
    pub streams: u16,
    /// Duration in which transactions are started.
    pub duration_ns: u64,
    /// Payload of a request, bytes.
    pub request_bytes: u32,
    /// Payload of a reply, bytes.
    pub reply_bytes: u32,
    /// Differentiated services code point of the sent packets.
    pub dscp: Option<u8>,
}

impl RrTestRequest {
    /// Checks the request without a server's limits.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn check(&self) -> Result<(), TestRequestError> {
        if self.version != VERSION {
            return Err(TestRequestError::UnsupportedVersion {
                requested: self.version,
            });
        }
        check_range(
            "streams",
            self.streams.into(),
            1,
            TestRequest::MAX_STREAMS.into(),
        )?;
        check_range(
            "duration_ns",
            self.duration_ns,
            TestRequest::MIN_DURATION_NS,
            TestRequest::MAX_DURATION_NS,
        )?;
        let maximum = u64::from(self.kind.max_bytes());
        let (request, reply) = (self.request_bytes.into(), self.reply_bytes.into());
        check_range(
            "request_bytes",
            request,
            self.kind.min_request_bytes().into(),
            maximum,
        )?;
        check_range(
            "reply_bytes",
            reply,
            self.kind.min_reply_bytes().into(),
            maximum,
        )?;
        if let Some(dscp) = self.dscp {
            check_range("dscp", dscp.into(), 0, 63)?;
        }
        Ok(())
    }

    /// Streams with a socket before the test starts.
    pub const fn carried_streams(&self) -> u16 {
        match self.kind {
            RrKind::UdpRr | RrKind::TcpRr => self.streams,
            RrKind::TcpCrr => 0,
        }
    }
}

/// The first 16 bytes of each datagram of a UDP request/response test; numbers in network byte
/// order. A reply has the tag of its request.
///
/// | bytes | field |
/// |---|---|
/// | 0-7 | token of the test |
/// | 8-15 | number of the transaction within the stream, from 1 |
///
/// It has no magic number: both ends read it on sockets that are connected to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RrTag {
    /// The token of the test.
    pub token: Token,
    /// The number of the transaction within its stream.
    pub number: u64,
}

impl RrTag {
    /// Length of the tag, bytes.
    pub const LEN: usize = 16;

    /// The encoded tag.
    #[inline]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.token.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    /// Reads the tag of a datagram; the bytes after it have no meaning. `None` if it is too short.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let (token, remaining) = datagram.split_first_chunk()?;
        Some(Self {
            token: Token(u64::from_be_bytes(*token)),
            number: u64::from_be_bytes(*remaining.first_chunk()?),
        })
    }
}

/// Counters of one stream of a request/response test at one end in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RrInterval {
    /// The number of the stream, from 0.
    pub stream: u16,
    /// The number of the interval, from 0.
    pub index: u32,
    /// Start of the interval.
    pub from_ns: u64,
    /// End of the interval.
    pub to_ns: u64,
    /// Transactions with a reply; at the server: requests without duplicates.
    pub transactions: u64,
    /// Transactions without a reply before the timeout; 0 at the server.
    pub lost: u64,
    /// Total time that the client waited for lost transactions.
    pub lost_wait_ns: u64,
    /// Replies after the timeout; 0 at the server.
    pub late: u64,
    /// Duplicate datagrams: replies at the client, requests at the server.
    pub duplicates: u64,
    /// Datagrams that belong to no transaction of the stream.
    pub foreign: u64,
    /// CPU time of the stream's thread.
    pub cpu_ns: u64,
    /// The core that the thread ran on most often.
    pub core: Option<u32>,
}
