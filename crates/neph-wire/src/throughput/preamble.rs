//! The first bytes of the client on a TCP data connection.

use super::token::Token;

/// The test and stream of a connection: 16 bytes, numbers in network byte order.
///
/// | bytes | field |
/// |---|---|
/// | 0-3 | `NTPs` |
/// | 4 | version, 1 |
/// | 5 | 0 |
/// | 6-7 | stream |
/// | 8-15 | token of the test |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// The number of the stream, from 0.
    pub stream: u16,
    /// The token of the test.
    pub token: Token,
}

impl Preamble {
    /// Length of the preamble, bytes.
    pub const LEN: usize = 16;
    /// The first bytes.
    pub const MAGIC: [u8; 4] = *b"NTPs";

    /// The encoded preamble.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&Self::MAGIC);
        bytes[4] = 1;
        bytes[6..8].copy_from_slice(&self.stream.to_be_bytes());
        bytes[8..].copy_from_slice(&self.token.0.to_be_bytes());
        bytes
    }

    /// Reads a preamble; `None` for other bytes.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Option<Self> {
        if bytes[..4] != Self::MAGIC || bytes[4..6] != [1, 0] {
            return None;
        }
        let mut token = [0; 8];
        token.copy_from_slice(&bytes[8..]);
        Some(Self {
            stream: u16::from_be_bytes([bytes[6], bytes[7]]),
            token: Token(u64::from_be_bytes(token)),
        })
    }
}
