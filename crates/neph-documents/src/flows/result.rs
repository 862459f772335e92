//! What a fleet's measurement came to, before it is a document or text.

use neph_flows::follow::Uncompared;
use neph_flows::{FleetView, FlowTally};
use neph_model::{FleetEndpoint, Own, Span, WallCourse, Warning};
use neph_probe::{FleetTally, Refusals};

use super::TransfersFound;
use crate::origin::Origin;

/// The result of `neph flows`.
#[derive(Debug)]
pub struct FlowsResult {
    /// Which neph measured.
    pub origin: Origin,
    /// Flows, classes and path changes.
    pub view: FleetView,
    /// What the sender counted.
    pub own: FleetTally,
    /// The 99th percentile of how long requests stayed at their reflectors.
    pub stay_p99: Option<Span>,
    /// The 99th percentile of the lateness of sends.
    pub late_p99: Option<Span>,
    /// What this host and the reflectors did to the measurement.
    pub warnings: Vec<Warning>,
    /// What the caps of reflectors refused, and what their kernels dropped.
    pub refused: Vec<(FleetEndpoint, Refusals)>,
    /// The wall clock.
    pub clock: WallCourse<Own>,
    /// Why nothing replies, where nothing does.
    pub silence: Vec<String>,
    /// Why the first message was not sent that was not.
    pub not_sent: Option<String>,
    /// Ctrl-C ended it.
    pub interrupted: bool,
    /// Changes of each endpoint whose routes could not be compared; empty where none are traced.
    pub uncompared: Vec<Uncompared>,
    /// Transfers on the ports of classes, of each endpoint; empty where none were made.
    pub transfers: Vec<TransfersFound>,
}

/// How a measurement goes.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Since the start.
    pub running: Span,
    /// Messages so far.
    pub tally: FlowTally,
    /// Path changes so far.
    pub changes: usize,
}
