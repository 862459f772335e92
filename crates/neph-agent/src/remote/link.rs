//! The agent's end of the link that carries messages.

use std::fmt::Debug;

use neph_model::Span;

use super::{FromAgent, ToAgent};

/// The connection is lost. The last messages may not have arrived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no connection to the controller: {why}")]
pub struct LinkLost {
    /// Why.
    pub why: String,
    /// Something came over it that is no message: too long, cut off, or of another program.
    pub is_unreadable: bool,
}

impl LinkLost {
    /// For this reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_unreadable: false,
        }
    }

    /// Something came over it that is no message.
    pub fn unreadable(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_unreadable: true,
        }
    }
}

/// Carries messages between an agent and its controller. It may lose messages, and may bring one twice; it
/// never changes one, and never brings one to another agent.
pub trait Link: Debug + Send {
    /// Sends a message.
    ///
    /// # Errors
    /// The connection is gone.
    fn send(&mut self, message: FromAgent) -> Result<(), LinkLost>;

    /// The next message; waits at most `patience` for one.
    ///
    /// # Errors
    /// The connection is gone.
    fn receive(&mut self, patience: Span) -> Result<Option<ToAgent>, LinkLost>;
}
