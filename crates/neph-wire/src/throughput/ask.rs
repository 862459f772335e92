//! What a client asks for.

use serde::{Deserialize, Serialize};

use super::datagram::Header;

/// The version of control messages, preambles and headers together.
pub const VERSION: u32 = 1;

/// What carries the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// A connection for each stream and direction.
    Tcp,
    /// Datagrams of one size, a socket for each stream and direction.
    Udp,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The client.
    Up,
    /// The server.
    Down,
    /// Both at the same time, each on streams of its own.
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

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// [`VERSION`] of the client.
    pub version: u32,
    /// What carries the data.
    pub protocol: Protocol,
    /// Who sends.
    pub direction: Direction,
    /// Streams for each direction. Those that the client sends on are numbered from 0, those that the
    /// server sends on go on from there.
    pub streams: u16,
    /// For how long data is sent.
    pub duration_ns: u64,
    /// The rate of payload of all streams of a direction together; absent for as much as goes.
    pub rate_bit_s: Option<u64>,
    /// Payload of each UDP datagram with its header.
    pub datagram_bytes: u32,
    /// TCP's congestion control; absent for the system's.
    pub congestion: Option<String>,
    /// Differentiated services code point of what is sent.
    pub dscp: Option<u8>,
}

/// Why a test cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The two ends are of different versions.
    #[error(
        "throughput protocol version {asked} is asked for, version {VERSION} is spoken here; use the \
         same version of neph at both ends"
    )]
    Version {
        /// Of the client.
        asked: u32,
    },
    /// There is no such number.
    #[error("{what} is {value}, from {least} to {most} is possible")]
    Range {
        /// The field.
        what: &'static str,
        /// What was asked.
        value: u64,
        /// The least that is possible.
        least: u64,
        /// The most that is possible.
        most: u64,
    },
    /// It is no name of a congestion control.
    #[error("a congestion control has a name of 1 to 15 letters, digits, '_' and '-'")]
    Congestion,
}

impl Ask {
    /// Streams of a direction, at most.
    pub const MOST_STREAMS: u16 = 64;
    /// The longest test, nanoseconds: a day.
    pub const LONGEST_NS: u64 = 86_400 * 1_000_000_000;
    /// The shortest test, nanoseconds.
    pub const SHORTEST_NS: u64 = 100_000_000;
    /// The largest UDP payload over IPv4.
    pub const LARGEST_DATAGRAM: u32 = 65_507;

    /// How many streams there are in both directions.
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

    /// Checks what can be checked without knowing a server's limits.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn check(&self) -> Result<(), AskError> {
        if self.version != VERSION {
            return Err(AskError::Version {
                asked: self.version,
            });
        }
        within("streams", self.streams.into(), 1, Self::MOST_STREAMS.into())?;
        within(
            "duration_ns",
            self.duration_ns,
            Self::SHORTEST_NS,
            Self::LONGEST_NS,
        )?;
        within(
            "datagram_bytes",
            self.datagram_bytes.into(),
            Header::LEN as u64,
            Self::LARGEST_DATAGRAM.into(),
        )?;
        if let Some(rate) = self.rate_bit_s {
            within("rate_bit_s", rate, 1_000, 1_000_000_000_000)?;
        }
        if let Some(dscp) = self.dscp {
            within("dscp", dscp.into(), 0, 63)?;
        }
        let named = |name: &String| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            (1..=15).contains(&name.len()) && name.bytes().all(known)
        };
        if self.congestion.as_ref().is_some_and(|name| !named(name)) {
            return Err(AskError::Congestion);
        }
        Ok(())
    }
}

pub(super) fn within(
    what: &'static str,
    value: u64,
    least: u64,
    most: u64,
) -> Result<(), AskError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(AskError::Range {
        what,
        value,
        least,
        most,
    })
}
