//! Reading of captures: plain, compressed, in parts, in the order of their times.
//!
//! Owns opening and reading them, the messages about their ends, and the assignment of packets to tables.
//! Does not own the output of flows.

pub mod compressed;
pub mod conversations;
pub mod ending;
pub mod file;
pub mod order;
pub mod packets;
pub mod parts;
pub mod snaplen;
pub mod source;

use std::fmt;
use std::io::{self, Read};

use neph_model::Stop;

/// Why a capture cannot be read, or not further: a sentence with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The input is invalid or not supported.
    #[error("{0}")]
    InvalidInput(String),
    /// The operating system reported an error.
    #[error("{0}")]
    Failed(String),
}

impl ReadError {
    pub(crate) fn wrong(sentence: impl fmt::Display) -> Self {
        Self::InvalidInput(sentence.to_string())
    }

    pub(crate) fn failed(sentence: impl fmt::Display) -> Self {
        Self::Failed(sentence.to_string())
    }
}

/// The environment of a reader of captures.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// Ends the reading.
    pub stop: &'a Stop,
    /// Opens standard input, which must end when `stop` is set.
    pub stdin: fn(&Stop) -> io::Result<Box<dyn Read>>,
    /// Receives messages for the user, as sentences without the program's name.
    pub print_message: &'a dyn Fn(&str),
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("stop", self.stop)
            .finish_non_exhaustive()
    }
}
