//! Messages as lines of JSON, and reading them from a stream in pieces of any size.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest line in bytes: the counters of 128 streams and 1,024 cores fit.
pub const MAX_LINE_BYTES: usize = 256 << 10;

/// Why a line is no message.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The line exceeds the limit.
    #[error("a line of more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The line is no message of this protocol.
    #[error("a line that is no message of a throughput test: {0}")]
    InvalidMessage(#[from] serde_json::Error),
}

/// Encodes a message as a line, with its line end.
///
/// # Panics
/// If a message has keys that are not strings; no message type has.
pub fn encode_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages have no keys but strings");
    line.push(b'\n');
    line
}

/// Collects bytes up to a line end. Stores at most [`MAX_LINE_BYTES`] bytes and the last piece.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Bytes that were searched and have no line end.
    searched: usize,
}

impl Lines {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, if its line is complete.
    ///
    /// # Errors
    /// The line is too long, or no message. It is removed in both cases.
    pub fn next_message<M: DeserializeOwned>(&mut self) -> Result<Option<M>, LineError> {
        let remaining = self.bytes.get(self.searched..).unwrap_or_default();
        let Some(newline) = remaining.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return if self.bytes.len() > MAX_LINE_BYTES {
                Err(LineError::TooLong)
            } else {
                Ok(None)
            };
        };
        let end = self.searched + newline;
        self.searched = 0;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        if end > MAX_LINE_BYTES {
            return Err(LineError::TooLong);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }
}
