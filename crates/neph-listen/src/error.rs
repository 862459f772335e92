//! Errors of capturing and writing: a sentence with the next step.

use std::fmt;

/// Capturing or writing failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// The request is not possible.
    #[error("{0}")]
    InvalidRequest(String),
    /// The system refused.
    #[error("{0}")]
    Refused(String),
    /// It was interrupted before there was a result.
    #[error("{0}")]
    Interrupted(String),
    /// The reader of standard output closed it.
    #[error("standard output was closed")]
    OutputClosed,
}

impl ListenError {
    pub(crate) fn wrong(sentence: impl fmt::Display) -> Self {
        Self::InvalidRequest(sentence.to_string())
    }

    pub(crate) fn refused(sentence: impl fmt::Display) -> Self {
        Self::Refused(sentence.to_string())
    }
}
