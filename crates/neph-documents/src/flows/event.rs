//! What is reported while a fleet runs: path changes, traces and status, a line of JSON each.

use neph_flows::follow::{Verdict, Why};
use neph_flows::{Direction, Evidence, PathChange, PathEvent};
use neph_model::{Fleet, Own, Span, WallCourse};
use schemars::JsonSchema;
use serde::Serialize;

use super::Status;
use super::tally::TallyDocument;

/// A line of NDJSON before the summary.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FlowsEvent {
    /// A path change was detected.
    Change(ChangeDocument),
    /// A path change that was reported turned out to be none.
    Withdrawn(ChangeDocument),
    /// A flow whose path changed was traced.
    Traced {
        /// The change.
        #[serde(flatten)]
        change: ChangeDocument,
        /// Whether the change was withdrawn.
        withdrawn: bool,
        /// When the route before the change was traced, Unix time in nanoseconds.
        before_unix_ns: Option<i64>,
        /// Why the routes before and after were not compared.
        not_compared: Option<&'static str>,
    },
    /// How the measurement goes.
    Status {
        /// Nanoseconds since the start.
        running_ns: Span,
        /// Messages so far.
        tally: TallyDocument,
        /// Path changes so far.
        changes: usize,
    },
}

/// A path change of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChangeDocument {
    /// The endpoint.
    pub endpoint: String,
    /// The flow's place in the fleet.
    pub slot: u32,
    /// The flow's source port.
    pub source_port: u16,
    /// When the path changed, Unix time in nanoseconds.
    pub at_unix_ns: Option<i64>,
    /// When the change was detected, Unix time in nanoseconds.
    pub detected_unix_ns: Option<i64>,
    /// The base latency before, in nanoseconds.
    pub before_ns: Span,
    /// The base latency after, in nanoseconds.
    pub after_ns: Span,
    /// What else than the latency changed.
    pub evidence: EvidenceDocument,
}

/// What else than the latency speaks for a path change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvidenceDocument {
    /// Messages were reordered when the latency fell.
    pub reordered: bool,
    /// The TTL changed.
    pub ttl: bool,
    /// Whether a trace met other routers than before; null without a trace that could be compared.
    pub other_routers: Option<bool>,
    /// The direction whose latency changed; null where it is unknown.
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
    /// Of a change of a flow of this fleet.
    pub fn of(fleet: &Fleet, change: &PathChange, clock: &WallCourse<Own>) -> Self {
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
    /// Something about paths is new.
    pub fn events(fleet: &Fleet, events: &PathEvent, clock: &WallCourse<Own>) -> Self {
        match events {
            PathEvent::Changed(change) => Self::Change(ChangeDocument::of(fleet, change, clock)),
            PathEvent::Withdrawn(change) => {
                Self::Withdrawn(ChangeDocument::of(fleet, change, clock))
            }
        }
    }

    /// A flow whose path changed was traced.
    pub fn traced(fleet: &Fleet, verdict: &Verdict, clock: &WallCourse<Own>) -> Self {
        let mut change = verdict.change;
        change.evidence.trace = verdict.printed.ok().map(|printed| printed.others);
        let before = verdict.printed.ok().map(|printed| printed.before);
        Self::Traced {
            change: ChangeDocument::of(fleet, &change, clock),
            withdrawn: verdict.is_withdrawn,
            before_unix_ns: before.and_then(|at| clock.unix_nanos(at)),
            not_compared: verdict.printed.err().map(Why::key),
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
