//! Input and result of running a fleet.

use neph_documents::flows::{FlowsResult, FlowsWriter};
use neph_model::Campaign;

use super::recorder::{FleetRecorder, WaitingFleet};
use crate::metrics::flows::FlowsMetrics;

/// The result.
#[derive(Debug)]
pub(super) struct FleetOutcome {
    pub(super) result: FlowsResult,
    /// Whether the reason of missing replies was reported during the run.
    pub(super) is_silence_reported: bool,
    /// Why the fleet ended early.
    pub(super) early_end_reason: Option<String>,
    /// The stored fleet that waits for its transfers.
    pub(super) waiting_fleet: Option<WaitingFleet>,
    /// The stored campaign, after it is complete.
    pub(super) campaign: Option<Campaign>,
}

/// The receivers of the fleet's reports.
#[derive(Debug)]
pub(super) struct FleetSink<'a> {
    pub(super) report: &'a mut FlowsWriter,
    pub(super) recorder: Option<FleetRecorder>,
    pub(super) metrics: FlowsMetrics,
}
