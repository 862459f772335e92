//! The results of an executor: plain data that processes exchange.
//!
//! Owns the results of orders. Does not know how they are measured, nor where they are stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Event, Fleet, FleetMessage, Flow, FlowTrace, HostFacts, Load, Message, Quantities, RecordError,
    Recorder, Sample, Span, Wall, Warning,
};

/// An experiment that is ready to send its first message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    /// Start time of the experiment, Unix nanoseconds; its client timestamps count from it.
    pub started: Wall,
    /// The flows with their addresses; the main flow is first. A source port may not be known yet.
    /// They are stored immediately, so that messages that survive a crash have their flows.
    pub flows: Vec<Flow>,
    /// The fleet that replaces the main flow; `flows` then has only the other flows. null without
    /// one.
    pub fleet: Option<Fleet>,
}

/// How an experiment ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The whole schedule was executed.
    Complete,
    /// It was cancelled.
    Interrupted,
    /// It could not continue, with the reason.
    Failed(String),
}

/// An experiment that ended. Its messages, events and samples were reported before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentResult {
    /// How it ended.
    pub ending: Ending,
    /// End time, Unix nanoseconds.
    pub ended: Wall,
    /// The flows at the end.
    pub flows: Vec<Flow>,
    /// Results of a transfer; null if it measured messages.
    #[serde(default)]
    pub quantities: Option<Quantities>,
    /// Replies of a fleet that arrived after their message was counted as lost; null without a
    /// fleet.
    pub late: Option<u64>,
    /// Routes of a fleet's flows; null if they were not requested or could not be traced.
    pub trace: Option<FlowTrace>,
    /// Pairs of clock readings at one moment: nanoseconds since the start on the monotonic clock,
    /// and Unix nanoseconds. One pair per second; fewer beyond an hour.
    pub anchors: Vec<(i64, i64)>,
    /// The client host.
    pub host: HostFacts,
    /// CPU load of the client host; null if not known.
    pub load: Option<Load>,
    /// Warnings that only the executor can detect: clock steps, a late emulated link.
    pub warnings: Vec<Warning>,
}

impl ExperimentResult {
    /// A result with only an ending, its time and the flows.
    pub fn of_end(ending: Ending, ended: Wall, flows: Vec<Flow>) -> Self {
        Self {
            ending,
            ended,
            flows,
            quantities: None,
            late: None,
            trace: None,
            anchors: Vec::new(),
            host: HostFacts::default(),
            load: None,
            warnings: Vec::new(),
        }
    }
}

/// An order that failed: a name without an address, a refused connection. It may be retried unless
/// the failure is permanent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{operation} failed: {reason}")]
#[serde(deny_unknown_fields)]
pub struct OrderFailed {
    /// The operation that failed, with its object.
    pub operation: String,
    /// Why it failed.
    pub reason: String,
    /// Whether every retry would fail in the same way, because a policy refuses the order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_permanent: bool,
}

impl OrderFailed {
    /// A failure that a retry may resolve.
    pub fn new(operation: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self {
            operation: operation.into(),
            reason: reason.to_string(),
            is_permanent: false,
        }
    }

    /// Sets whether every retry would fail.
    #[must_use]
    pub fn permanent_if(self, is_permanent: bool) -> Self {
        Self {
            is_permanent,
            ..self
        }
    }

    /// The operation of an experiment that was not ready at its start time in the timetable.
    pub const MISSED_START: &str = "begin at the agreed moment";

    /// The failure of an executor that returned the result of another kind of order.
    pub fn another_result(operation: &str) -> Self {
        let reason = "the executor reported the result of another kind of order";
        Self::new(operation, reason)
    }
}

/// The progress of running experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Time since their start.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
    /// Number of messages that were due until now, of the first experiment's main flow. For a
    /// capture, its packets until now.
    pub due: u64,
}

/// Measurements of one experiment since the last report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Records {
    /// Messages of flows.
    pub messages: Vec<Message>,
    /// Messages of a fleet.
    pub fleet: Vec<FleetMessage>,
    /// Events.
    pub events: Vec<Event>,
    /// Samples of series.
    pub samples: Vec<Sample>,
}

impl Records {
    /// Passes all of them to a recorder; they are safe when this returns.
    ///
    /// # Errors
    /// The recorder refuses.
    pub fn keep_in(&self, recorder: &mut dyn Recorder) -> Result<(), RecordError> {
        if !self.messages.is_empty() {
            recorder.messages(&self.messages)?;
        }
        if !self.fleet.is_empty() {
            recorder.fleet(&self.fleet)?;
        }
        for event in &self.events {
            recorder.event(event)?;
        }
        for sample in &self.samples {
            recorder.sample(sample)?;
        }
        Ok(())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.fleet.is_empty()
            && self.events.is_empty()
            && self.samples.is_empty()
    }
}
