//! What comes back from an executor: plain data that crosses processes.
//!
//! Owns the answers to orders. How they are measured, and where they are kept, is not known here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Event, Fleet, FleetMessage, Flow, FlowTrace, HostFacts, Load, Message, Quantities, RecordError,
    Recorder, Sample, Span, Wall, Warning,
};

/// What is known when everything is ready and before the first message goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    /// The moment from which this experiment's own marks count.
    pub started: Wall,
    /// The flows with their addresses; the main flow is the first. A source port may still be
    /// open. They are stored at once, so that messages that survive a crash have their flows.
    pub flows: Vec<Flow>,
    /// The fleet in the place of a main flow; `flows` holds only what runs with it then.
    pub fleet: Option<Fleet>,
}

/// How a carried-out experiment came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The whole schedule was gone through.
    Complete,
    /// It was cancelled.
    Interrupted,
    /// It could not go on, and why.
    Failed(String),
}

/// An experiment that has been carried out, to whatever end. Its messages, events and samples came
/// before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentResult {
    /// How it ended.
    pub ending: Ending,
    /// When.
    pub ended: Wall,
    /// The flows as they were in the end.
    pub flows: Vec<Flow>,
    /// Of a transfer: what it came to.
    #[serde(default)]
    pub quantities: Option<Quantities>,
    /// Of a fleet: replies that came after their message was counted lost.
    pub late: Option<u64>,
    /// The routes of a fleet's flows, where the order asks for them and they could be had.
    pub trace: Option<FlowTrace>,
    /// (monotonic since start, wall) pairs in nanoseconds, one a second; of more than an hour fewer.
    pub anchors: Vec<(i64, i64)>,
    /// The host that sent.
    pub host: HostFacts,
    /// How busy it was.
    pub load: Load,
    /// What only the executor can see: clock steps, a late lab link.
    pub warnings: Vec<Warning>,
}

impl ExperimentResult {
    /// One of which nothing is known but its end and its flows.
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
            load: Load::default(),
            warnings: Vec::new(),
        }
    }
}

/// What was ordered did not come about: a name without an address, a connection refused. Unless it is
/// permanent, it may be tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{operation} failed: {reason}")]
#[serde(deny_unknown_fields)]
pub struct OrderFailed {
    /// What was tried, on which subject.
    pub operation: String,
    /// Why it did not work.
    pub reason: String,
    /// Another try would fail in the same way: a policy refuses it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_permanent: bool,
}

impl OrderFailed {
    /// What may succeed at another try.
    pub fn new(operation: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self {
            operation: operation.into(),
            reason: reason.to_string(),
            is_permanent: false,
        }
    }

    /// It fails at every try where `is_permanent`.
    #[must_use]
    pub fn permanent_if(self, is_permanent: bool) -> Self {
        Self {
            is_permanent,
            ..self
        }
    }

    /// The operation of an experiment that was not ready when the timetable has it begin.
    pub const MISSED_START: &str = "begin at the agreed moment";

    /// The executor answered something that was not asked.
    pub fn another_result(operation: &str) -> Self {
        let reason = "the executor reported the result of another kind of order";
        Self::new(operation, reason)
    }
}

/// How far running experiments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Since their start.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
    /// Messages of the first one's main flow that are due by now; of a capture its packets so far.
    pub due: u64,
}

/// What was measured since the last time, of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Records {
    /// Messages of flows.
    pub messages: Vec<Message>,
    /// Messages of the fleet.
    pub fleet: Vec<FleetMessage>,
    /// What happened.
    pub events: Vec<Event>,
    /// Samples of series.
    pub samples: Vec<Sample>,
}

impl Records {
    /// Gives all of them to a recorder; they are safe when this returns.
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
