//! The header of each UDP datagram of a throughput test.

use super::token::Token;

const MAGIC: [u8; 4] = *b"NTPd";
const VERSION: u8 = 1;

/// The purpose of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Gives the server the address of the client's stream: a server sends only to an address that
    /// has the token.
    Hello,
    /// Counted data.
    Data,
}

/// The first 32 bytes of each datagram; numbers in network byte order.
///
/// | bytes | field |
/// |---|---|
/// | 0-3 | `NTPd` |
/// | 4 | version, 1 |
/// | 5 | 0 hello, 1 data |
/// | 6-7 | stream |
/// | 8-15 | token of the test |
/// | 16-23 | sequence number within the stream, from 0 |
/// | 24-31 | the sender's monotonic clock, nanoseconds |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Hello or data.
    pub content: Content,
    /// The number of the stream, from 0.
    pub stream: u16,
    /// The token of the test.
    pub token: Token,
    /// The sequence number within the stream, from 0.
    pub sequence: u64,
    /// Send time by the sender's monotonic clock, nanoseconds since an unspecified start.
    pub sent_ns: i64,
}

/// Why bytes are no datagram of a throughput test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Fewer bytes than a header has.
    #[error("a throughput datagram has at least 32 bytes, this one has {0}")]
    TooShort(usize),
    /// Another protocol, version or content.
    #[error("no throughput datagram of version {VERSION}")]
    Unrecognised,
}

impl Header {
    /// Length of the header, bytes.
    pub const LEN: usize = 32;

    /// The encoded header.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = match self.content {
            Content::Hello => 0,
            Content::Data => 1,
        };
        bytes[6..8].copy_from_slice(&self.stream.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.token.0.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[24..].copy_from_slice(&self.sent_ns.to_be_bytes());
        bytes
    }

    /// Reads the header of a datagram; the bytes after it have no meaning.
    ///
    /// # Errors
    /// It is too short or something else.
    pub fn decode(datagram: &[u8]) -> Result<Self, HeaderError> {
        let Some(bytes) = datagram.first_chunk::<{ Self::LEN }>() else {
            return Err(HeaderError::TooShort(datagram.len()));
        };
        if bytes[..4] != MAGIC || bytes[4] != VERSION {
            return Err(HeaderError::Unrecognised);
        }
        let content = match bytes[5] {
            0 => Content::Hello,
            1 => Content::Data,
            _ => return Err(HeaderError::Unrecognised),
        };
        let long = |at: usize| {
            let mut part = [0; 8];
            part.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(part)
        };
        Ok(Self {
            content,
            stream: u16::from_be_bytes([bytes[6], bytes[7]]),
            token: Token(long(8)),
            sequence: long(16),
            sent_ns: long(24).cast_signed(),
        })
    }
}
