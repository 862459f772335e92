//! The request for a throughput test.

use serde::{Deserialize, Serialize};

use super::datagram::Header;

/// The common version of control messages, preambles and headers.
pub const VERSION: u32 = 1;

/// The transport protocol of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// One connection for each stream and direction.
    Tcp,
    /// Datagrams of one size, one socket for each stream and direction.
    Udp,
}

/// The sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The client.
    Up,
    /// The server.
    Down,
    /// Both at the same time, each on its own streams.
    Both,
}

impl Direction {
    /// Whether the client sends on some streams.
    pub const fn has_up(self) -> bool {
        matches!(self, Self::Up | Self::Both)
    }

    /// Whether the server sends on some streams.
    pub const fn has_down(self) -> bool {
        matches!(self, Self::Down | Self::Both)
    }
}

/// A client's request for a throughput test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRequest {
    /// [`VERSION`] of the client.
    pub version: u32,
    /// The transport protocol.
    pub protocol: Protocol,
    /// The sending side.
    pub direction: Direction,
    /// Streams per direction. The client's sending streams are numbered from 0, the server's
    /// follow.
    pub streams: u16,
    /// Duration of sending, nanoseconds.
    pub duration_ns: u64,
    /// Payload rate of all streams of a direction together; absent for no limit.
    pub rate_bit_s: Option<u64>,
    /// Payload of each UDP datagram, header included.
    pub datagram_bytes: u32,
    /// TCP congestion control; absent for the system's default.
    pub congestion: Option<String>,
    /// Differentiated services code point of the sent packets.
    pub dscp: Option<u8>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TestRequestError {
    /// Client and server have different versions.
    #[error(
        "throughput protocol version {requested} is asked for, version {VERSION} is spoken here; use the \
         same version of neph at both ends"
    )]
    UnsupportedVersion {
        /// The client's version.
        requested: u32,
    },
    /// A number is out of range.
    #[error("{field} is {value}, from {min} to {max} is possible")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The requested value.
        value: u64,
        /// The smallest possible value.
        min: u64,
        /// The largest possible value.
        max: u64,
    },
    /// Not a name of a congestion control.
    #[error("a congestion control has a name of 1 to 15 letters, digits, '_' and '-'")]
    InvalidCongestionControl,
}

impl TestRequest {
    /// Maximum number of streams of a direction.
    pub const MAX_STREAMS: u16 = 64;
    /// The longest test, nanoseconds: a day.
    pub const MAX_DURATION_NS: u64 = 86_400 * 1_000_000_000;
    /// The shortest test, nanoseconds.
    pub const MIN_DURATION_NS: u64 = 100_000_000;
    /// The largest UDP payload over IPv4.
    pub const MAX_DATAGRAM_BYTES: u32 = 65_507;

    /// Number of streams of both directions.
    pub fn all_streams(&self) -> u16 {
        match self.direction {
            Direction::Both => self.streams.saturating_mul(2),
            Direction::Up | Direction::Down => self.streams,
        }
    }

    /// Whether the client sends on this stream.
    pub fn is_up(&self, stream: u16) -> bool {
        self.direction.has_up() && stream < self.streams
    }

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
        check_range("streams", self.streams.into(), 1, Self::MAX_STREAMS.into())?;
        check_range(
            "duration_ns",
            self.duration_ns,
            Self::MIN_DURATION_NS,
            Self::MAX_DURATION_NS,
        )?;
        check_range(
            "datagram_bytes",
            self.datagram_bytes.into(),
            Header::LEN as u64,
            Self::MAX_DATAGRAM_BYTES.into(),
        )?;
        if let Some(rate) = self.rate_bit_s {
            check_range("rate_bit_s", rate, 1_000, 1_000_000_000_000)?;
        }
        if let Some(dscp) = self.dscp {
            check_range("dscp", dscp.into(), 0, 63)?;
        }
        let is_name = |name: &String| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            (1..=15).contains(&name.len()) && name.bytes().all(known)
        };
        if self.congestion.as_ref().is_some_and(|name| !is_name(name)) {
            return Err(TestRequestError::InvalidCongestionControl);
        }
        Ok(())
    }
}

pub(super) fn check_range(
    quantity: &'static str,
    value: u64,
    minimum: u64,
    maximum: u64,
) -> Result<(), TestRequestError> {
    if (minimum..=maximum).contains(&value) {
        return Ok(());
    }
    Err(TestRequestError::OutOfRange {
        field: quantity,
        value,
        min: minimum,
        max: maximum,
    })
}
