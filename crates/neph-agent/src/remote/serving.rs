//! A worker on a connection: passes messages to it, and sends its answers and heartbeats.
//!
//! Owns the loop, and decides when a connection is lost. The worker handles the messages.

use neph_model::{Executor, Span, Stop};
use neph_sys::clock;

use super::heartbeat::Beats;
use super::worker::{Worker, WorkerLost};
use super::{Beat, FromAgent, Link, LinkLost, ToAgent};
use crate::wall_clock::now;

/// Maximum wait for a message; after it, the worker handles its running orders.
const RECEIVE_TIMEOUT: Span = Span::from_millis(20);

/// Serves a controller over a connection until `stop` is set. What is measured goes on when the connection is
/// gone, and is reported on the next one.
///
/// # Errors
/// The connection is gone, or the agent cannot go on.
pub fn serve<E: Executor>(
    worker: &mut Worker<E>,
    link: &mut dyn Link,
    stop: &Stop,
) -> Result<(), ServeError> {
    worker.is_connected = true;
    worker.connections += 1;
    let served = exchange_messages(worker, link, stop);
    worker.is_connected = false;
    served
}

fn exchange_messages<E: Executor>(
    worker: &mut Worker<E>,
    link: &mut dyn Link,
    stop: &Stop,
) -> Result<(), ServeError> {
    link.send(worker.hello())?;
    let mut beats = Beats::default();
    while !stop.is_set() {
        if let Some(beat) = beats.next_due(clock::raw(), now(), worker.running()) {
            let refusals = worker.refusals();
            link.send(FromAgent::Beat(Beat { refusals, ..beat }))?;
        }
        if beats.is_silent(clock::raw()) {
            return Err(LinkLost::new("it has answered nothing for 20 s").into());
        }
        let received = link.receive(RECEIVE_TIMEOUT).inspect_err(|lost| {
            if lost.is_unreadable {
                worker.admission.count_refusal("unreadable");
            }
        });
        let answer = match received? {
            Some(ToAgent::Beat { sent, received }) => {
                beats.take_answer(sent, received, clock::raw());
                if let Some(clock_offset) = beats.clock(clock::raw()) {
                    worker.set_clock_offset(clock_offset);
                }
                None
            }
            Some(message) => worker.take(message).map_err(WorkerLost::from)?,
            None => None,
        };
        if let Some(answer) = answer {
            link.send(answer)?;
        }
        for message in worker.work(Span::ZERO)? {
            link.send(message)?;
        }
    }
    Ok(())
}

/// Why a connection is served no more.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The agent makes another one.
    #[error(transparent)]
    Link(#[from] LinkLost),
    /// The agent ends.
    #[error(transparent)]
    Worker(#[from] WorkerLost),
}
