//! Captures at agents: started together, ended together, and fetched after their end.
//!
//! Owns when a capture is given up. Does not know its purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use neph_agent::policy::{self, LARGEST_CAPTURE};
use neph_agent::remote::{REFUSED, Signer};
use neph_listen::recording::{AgentCapture, Agents, AgentsCourse};
use neph_model::{
    AgentName, CaptureOrder, Executor, ExecutorLost, Order, OrderFailed, OrderResult, Span, Ticket,
    Update,
};
use neph_sys::clock::{self, RawNanos};

use crate::{AgentsExecutor, Bus, InboxError, Sites};

/// How long to wait for updates before checking whether all is over.
const POLL_TIMEOUT: Span = Span::from_millis(20);
/// After the end, how long to wait for a capture that has not begun.
const BEGIN_TIMEOUT: Span = Span::from_secs(3);
/// Maximum duration of a capture, even if the process that started it disappears.
pub const LONGEST_CAPTURE: Span =
    Span::from_nanos(policy::LONGEST_CAPTURE.nanos() - END_MARGIN.nanos());
/// Time from the requested end to the agent's own limit.
const END_MARGIN: Span = Span::from_secs(10);

/// Orders captures at the agents of a controller.
#[derive(Debug)]
pub struct AgentCaptures<B: Bus> {
    executor: AgentsExecutor<B>,
}

impl<B: Bus> AgentCaptures<B> {
    /// At these agents. `folder` has open orders and their results; captures that an earlier
    /// process left there are cancelled, and their results are discarded.
    ///
    /// # Errors
    /// A disk operation failed, or another process uses the folder.
    pub fn new(
        folder: &Path,
        agents: BTreeSet<AgentName>,
        bus: B,
        signer: Signer,
    ) -> Result<Self, InboxError> {
        let sites = Sites {
            agents: agents
                .into_iter()
                .map(|agent| (agent.to_string(), agent))
                .collect(),
            ..Sites::default()
        };
        let mut executor = AgentsExecutor::new(folder, sites, bus, signer)?;
        executor.abandon()?;
        Ok(Self { executor })
    }

    /// Processes an update; returns whether it was the capture's last.
    fn process_update(
        capture_run: &mut OpenCapture,
        update: Update,
        course: &mut dyn AgentsCourse,
    ) -> bool {
        match update {
            Update::Progress(progress) => {
                capture_run.has_begun = true;
                course.counted(capture_run.index, progress.due);
            }
            Update::Sampled(sample) => course.sampled(capture_run.index, sample),
            Update::Captured(path) => capture_run.file = Some(path),
            Update::Done(Ok(OrderResult::Captured(captured))) => {
                // The file is complete: it is fetched before this update.
                let file = capture_run.file.take();
                let captured = file.as_deref().map(|file| (captured, file));
                course.ended(
                    capture_run.index,
                    captured.ok_or_else(|| {
                        "the agent sent no file; neph agents show AGENT lists its orders".to_owned()
                    }),
                );
                return true;
            }
            Update::Done(result) => {
                let wrong_result = || OrderFailed::another_result("capture");
                course.ended(
                    capture_run.index,
                    Err(failure_text(&result.err().unwrap_or_else(wrong_result))),
                );
                return true;
            }
            _ => {}
        }
        false
    }
}

/// A capture that is not over.
#[derive(Debug)]
struct OpenCapture {
    index: usize,
    has_begun: bool,
    file: Option<PathBuf>,
}

/// Why there is no capture, as a sentence.
fn failure_text(reason: &OrderFailed) -> String {
    if reason.operation == REFUSED {
        reason.reason.clone()
    } else {
        reason.to_string()
    }
}

/// The order with a limit that the agent enforces.
fn bounded_order(capture: AgentCapture) -> Order {
    let AgentCapture { agent, order } = capture;
    let duration = order.duration.unwrap_or(LONGEST_CAPTURE) + END_MARGIN;
    Order::Capture(CaptureOrder {
        site: Some(agent.to_string()),
        duration: Some(duration.min(policy::LONGEST_CAPTURE)),
        limit: Some(order.limit.unwrap_or(LARGEST_CAPTURE).min(LARGEST_CAPTURE)),
        ..order
    })
}

impl<B: Bus> Agents for AgentCaptures<B> {
    fn capture(&mut self, captures: Vec<AgentCapture>, course: &mut dyn AgentsCourse) {
        let mut open_captures: BTreeMap<Ticket, OpenCapture> = BTreeMap::new();
        for (index, capture) in captures.into_iter().enumerate() {
            let ticket = self.executor.submit(bounded_order(capture));
            let capture_run = OpenCapture {
                index,
                has_begun: false,
                file: None,
            };
            open_captures.insert(ticket, capture_run);
        }
        let mut ended_at: Option<RawNanos> = None;
        while !open_captures.is_empty() {
            let now = clock::raw();
            if course.is_over() && ended_at.is_none() {
                ended_at = Some(now);
                for ticket in open_captures.keys() {
                    self.executor.cancel(*ticket);
                }
            }
            if ended_at.is_some_and(|ended_at| now.0 - ended_at.0 > BEGIN_TIMEOUT.nanos()) {
                open_captures.retain(|_, capture_run| capture_run.has_begun);
            }
            let updates = match self.executor.poll(POLL_TIMEOUT) {
                Ok(updates) => updates,
                Err(ExecutorLost { reason, .. }) => {
                    for capture_run in open_captures.values() {
                        course.ended(capture_run.index, Err(reason.clone()));
                    }
                    break;
                }
            };
            for (ticket, update) in updates {
                let is_last = open_captures
                    .get_mut(&ticket)
                    .is_some_and(|capture_run| Self::process_update(capture_run, update, course));
                if is_last {
                    open_captures.remove(&ticket);
                }
            }
        }
        // Results of abandoned captures are not needed.
        if let Err(error) = self.executor.abandon() {
            tracing::warn!("{error}");
        }
    }
}
