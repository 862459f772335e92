//! Captures as they lie about: plain, packed, in parts, one after the other in the order of their times.
//!
//! Owns opening and reading them, what is said of how each ended, and which table takes a packet. Does not
//! own what is shown of flows.

pub mod conversations;
pub mod ending;
pub mod enough;
pub mod file;
pub mod order;
pub mod packed;
pub mod packets;
pub mod parts;
pub mod source;

use std::fmt;
use std::io::{self, Read};

use neph_model::Stop;

/// Why a capture cannot be read, or not further: a sentence with what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// What was given is none that is read here.
    #[error("{0}")]
    Wrong(String),
    /// The machine failed.
    #[error("{0}")]
    Failed(String),
}

impl ReadError {
    pub(crate) fn wrong(sentence: impl fmt::Display) -> Self {
        Self::Wrong(sentence.to_string())
    }

    pub(crate) fn failed(sentence: impl fmt::Display) -> Self {
        Self::Failed(sentence.to_string())
    }
}

/// What a reader of captures is given from outside.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// Ends the reading.
    pub stop: &'a Stop,
    /// Opens standard input, which is to end when `stop` is set.
    pub stdin: fn(&Stop) -> io::Result<Box<dyn Read>>,
    /// Takes what people should know, a sentence without the program's name.
    pub say: &'a dyn Fn(&str),
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("stop", self.stop)
            .finish_non_exhaustive()
    }
}
