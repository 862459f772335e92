//! The controller's end of a message bus.

use std::fmt::Debug;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};

use neph_agent::remote::{FromAgent, ToAgent};
use neph_model::{AgentName, Span, Wall};

use crate::now::now;

/// The agent is not connected. Later messages may reach it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("agent {0} is not connected")]
pub struct NotConnected(pub AgentName);

/// Received from a bus. The name is authenticated.
#[derive(Clone, Debug, PartialEq)]
pub enum FromBus {
    /// A message of an agent.
    Message(AgentName, FromAgent),
    /// The agent disconnected; the last messages to it may be lost.
    Gone(AgentName),
    /// The agent was revoked: nothing of it follows, and no message reaches it.
    Revoked(AgentName),
    /// The controller rejects this campaign's operator. Nothing follows.
    Refused(String),
}

/// Removes all elements of a queue; waits at most `patience` for the first.
pub(crate) fn drain<T>(
    queue: &Mutex<Receiver<T>>,
    patience: Span,
) -> Result<Vec<T>, RecvTimeoutError> {
    let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    let first = queue.recv_timeout(patience.to_duration())?;
    Ok(std::iter::once(first).chain(queue.try_iter()).collect())
}

/// Carries messages between a controller and its agents. It may lose or duplicate messages; it
/// never changes one, and never confuses agents.
pub trait Bus: Debug + Send {
    /// Sends a message; does not block.
    ///
    /// # Errors
    /// The agent is not connected.
    fn send(&mut self, to: &AgentName, message: ToAgent) -> Result<(), NotConnected>;

    /// Returns everything received since the last call; waits at most `patience` for the first.
    fn receive(&mut self, patience: Span) -> Vec<FromBus>;

    /// The controller's clock, for leases and start times.
    fn now(&self) -> Wall {
        now()
    }
}
