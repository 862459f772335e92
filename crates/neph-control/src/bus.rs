//! The controller's end of what carries messages.

use std::fmt::Debug;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};

use neph_agent::remote::{FromAgent, ToAgent};
use neph_model::{AgentName, Span, Wall};

use crate::now::now;

/// The agent is not there now. What is sent to it later may reach it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("agent {0} is not connected")]
pub struct NotConnected(pub AgentName);

/// What comes from a bus. The name is the one that the agent has proved.
#[derive(Clone, Debug, PartialEq)]
pub enum FromBus {
    /// An agent sent this.
    Message(AgentName, FromAgent),
    /// An agent is gone: what was sent to it last may not have come.
    Gone(AgentName),
    /// The controller takes this campaign's operator no more: nothing else will come.
    Refused(String),
}

/// All that is in a queue; waits at most `patience` for the first.
pub(crate) fn drain<T>(
    queue: &Mutex<Receiver<T>>,
    patience: Span,
) -> Result<Vec<T>, RecvTimeoutError> {
    let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    let first = queue.recv_timeout(patience.to_duration())?;
    Ok(std::iter::once(first).chain(queue.try_iter()).collect())
}

/// Carries messages between a controller and its agents. It may lose messages, and may bring one twice; it
/// never changes one, and never takes one agent for another.
pub trait Bus: Debug + Send {
    /// Sends a message. Returns at once.
    ///
    /// # Errors
    /// The agent is not connected.
    fn send(&mut self, to: &AgentName, message: ToAgent) -> Result<(), NotConnected>;

    /// What came since the last time; waits at most `patience` until something does.
    fn receive(&mut self, patience: Span) -> Vec<FromBus>;

    /// The controller's clock, by which leases and starts are given.
    fn now(&self) -> Wall {
        now()
    }
}
