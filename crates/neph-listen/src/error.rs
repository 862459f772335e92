//! Why nothing is heard, or not written down: a sentence with what to do.

use std::fmt;

/// Listening or writing did not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// What was asked for cannot be.
    #[error("{0}")]
    Wrong(String),
    /// The machine refused.
    #[error("{0}")]
    Refused(String),
    /// It was ended before there was anything.
    #[error("{0}")]
    Interrupted(String),
    /// The reader of standard output went away.
    #[error("standard output was closed")]
    OutputClosed,
}

impl ListenError {
    pub(crate) fn wrong(sentence: impl fmt::Display) -> Self {
        Self::Wrong(sentence.to_string())
    }

    pub(crate) fn refused(sentence: impl fmt::Display) -> Self {
        Self::Refused(sentence.to_string())
    }
}
