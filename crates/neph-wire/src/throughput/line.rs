//! Messages as lines of JSON, and reading them from a stream of bytes however it is cut.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A line is at most so long, bytes: the counters of 128 streams and 1,024 cores fit.
pub const LONGEST_LINE: usize = 256 << 10;

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The peer sends no end of line.
    #[error("a line of more than {LONGEST_LINE} bytes")]
    Long,
    /// It is no message of this protocol.
    #[error("a line that is no message of a throughput test: {0}")]
    Foreign(#[from] serde_json::Error),
}

/// A message as a line, with its end.
///
/// # Panics
/// A message has keys that are no strings; none has.
pub fn encode_line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages have no keys but strings");
    line.push(b'\n');
    line
}

/// Collects bytes until a line is whole. Holds at most [`LONGEST_LINE`] bytes and what was pushed last.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Bytes that were looked at and hold no end of line.
    searched: usize,
}

impl Lines {
    /// Takes bytes in as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, if its line is whole.
    ///
    /// # Errors
    /// The line is too long, or no message. It is taken out all the same.
    pub fn next_message<M: DeserializeOwned>(&mut self) -> Result<Option<M>, LineError> {
        let rest = self.bytes.get(self.searched..).unwrap_or_default();
        let Some(found) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return if self.bytes.len() > LONGEST_LINE {
                Err(LineError::Long)
            } else {
                Ok(None)
            };
        };
        let end = self.searched + found;
        self.searched = 0;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        if end > LONGEST_LINE {
            return Err(LineError::Long);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }
}
