//! The result of a fleet, before it is written.

use neph_flows::follow::Uncompared;
use neph_flows::{FleetView, FlowTally};
use neph_model::{FleetEndpoint, Local, Span, WallCourse, Warning};
use neph_probe::{FleetTally, Refusals};

use super::EndpointTransfers;
use crate::origin::Origin;

/// The result of `neph flows`.
#[derive(Debug)]
pub struct FlowsResult {
    /// The neph that measured.
    pub origin: Origin,
    /// Flows, classes and path changes.
    pub view: FleetView,
    /// Counters of the sender.
    pub sender_tally: FleetTally,
    /// 99th percentile of the time that requests stayed at reflectors.
    pub residence_p99: Option<Span>,
    /// 99th percentile of lateness.
    pub late_p99: Option<Span>,
    /// Warnings about the client host and the reflectors.
    pub warnings: Vec<Warning>,
    /// Refusals by the caps of reflectors, and packets that their kernels dropped.
    pub refused: Vec<(FleetEndpoint, Refusals)>,
    /// The wall clock.
    pub clock: WallCourse<Local>,
    /// Why no endpoint replied, and since when endpoints stopped replying.
    pub no_reply_reasons: Vec<String>,
    /// Why the first message that was not sent could not be sent.
    pub not_sent_reason: Option<String>,
    /// Whether ctrl-C ended the measurement.
    pub interrupted: bool,
    /// Path changes of each endpoint whose routes could not be compared; empty if none are traced.
    pub uncompared: Vec<Uncompared>,
    /// Transfers on the source ports of classes, by endpoint; empty if none were made.
    pub transfers: Vec<EndpointTransfers>,
}

/// The status of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Time since the start.
    pub running: Span,
    /// Outcomes of the messages until now.
    pub tally: FlowTally,
    /// Number of path changes until now.
    pub changes: usize,
}
