//! Events while a fleet runs: path changes, traces and status, as a line of JSON each.

use neph_flows::follow::{UncomparedReason, Verdict};
use neph_flows::{Direction, Evidence, PathChange, PathEvent};
use neph_model::{Fleet, Local, Span, WallCourse};
use schemars::JsonSchema;
use serde::Serialize;

use super::Status;
use super::tally::TallyDocument;

/// An NDJSON line before the summary.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FlowsEvent {
    /// A path change was detected.
    Change(ChangeDocument),
    /// A reported path change was withdrawn.
    Withdrawn(ChangeDocument),
    /// A flow was traced after its path changed.
    Traced {
        /// The path change.
        #[serde(flatten)]
        change: ChangeDocument,
        /// Whether the change was withdrawn.
        withdrawn: bool,
        /// When the route before the change was traced; null if the routes were not compared.
        before_unix_ns: Option<i64>,
        /// Why the routes before and after were not compared; null if they were.
        not_compared: Option<&'static str>,
    },
    /// Status of the measurement.
    Status {
        /// Time since the start.
        running_ns: Span,
        /// Outcomes of the messages until now.
        tally: TallyDocument,
        /// Number of path changes until now.
        changes: usize,
    },
}

/// A path change of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChangeDocument {
    /// Name of the endpoint.
    pub endpoint: String,
    /// Slot of the flow.
    pub slot: u32,
    /// Source port of the flow.
    pub source_port: u16,
    /// When the path changed; null if not known.
    pub at_unix_ns: Option<i64>,
    /// When the change was detected; null if not known.
    pub detected_unix_ns: Option<i64>,
    /// Base latency before.
    pub before_ns: Span,
    /// Base latency after.
    pub after_ns: Span,
    /// Evidence in addition to the latency.
    pub evidence: EvidenceDocument,
}

/// The evidence of a path change in addition to the latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvidenceDocument {
    /// Whether messages were reordered when the latency fell.
    pub reordered: bool,
    /// Whether the TTL of requests or replies changed.
    pub ttl: bool,
    /// Whether a trace found other routers than before; null without a trace that could be
    /// compared.
    pub other_routers: Option<bool>,
    /// Direction whose latency changed; null if not known.
    pub direction: Option<Direction>,
}

impl From<Evidence> for EvidenceDocument {
    fn from(evidence: Evidence) -> Self {
        Self {
            reordered: evidence.reordered,
            ttl: evidence.ttl,
            other_routers: evidence.trace,
            direction: evidence.direction,
        }
    }
}

impl ChangeDocument {
    /// The document of a path change of a flow of this fleet.
    pub fn of(fleet: &Fleet, change: &PathChange, clock: &WallCourse<Local>) -> Self {
        Self {
            endpoint: fleet.endpoints[fleet.endpoint_of(change.slot)].name.clone(),
            slot: change.slot.0,
            source_port: change.source_port,
            at_unix_ns: clock.unix_nanos(change.at),
            detected_unix_ns: clock.unix_nanos(change.reported),
            before_ns: change.before,
            after_ns: change.after,
            evidence: change.evidence.into(),
        }
    }
}

impl FlowsEvent {
    /// The event of a path change, or of its withdrawal.
    pub fn of_path_event(fleet: &Fleet, event: &PathEvent, clock: &WallCourse<Local>) -> Self {
        match event {
            PathEvent::Changed(change) => Self::Change(ChangeDocument::of(fleet, change, clock)),
            PathEvent::Withdrawn(change) => {
                Self::Withdrawn(ChangeDocument::of(fleet, change, clock))
            }
        }
    }

    /// The event of a trace after a path change.
    pub fn of_verdict(fleet: &Fleet, verdict: &Verdict, clock: &WallCourse<Local>) -> Self {
        let mut change = verdict.change;
        change.evidence.trace = verdict.comparison.ok().map(|comparison| comparison.others);
        let before = verdict.comparison.ok().map(|comparison| comparison.before);
        Self::Traced {
            change: ChangeDocument::of(fleet, &change, clock),
            withdrawn: verdict.is_withdrawn,
            before_unix_ns: before.and_then(|time| clock.unix_nanos(time)),
            not_compared: verdict.comparison.err().map(UncomparedReason::key),
        }
    }
}

impl From<&Status> for FlowsEvent {
    fn from(status: &Status) -> Self {
        Self::Status {
            running_ns: status.running,
            tally: (&status.tally).into(),
            changes: status.changes,
        }
    }
}
