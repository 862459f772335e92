//! What goes into watching a fleet, and what comes of it.

use neph_documents::flows::{FlowsResult, FlowsWriter};
use neph_model::Campaign;

use super::keep::{Keep, Kept};
use crate::metrics::flows::FlowsMetrics;

/// What came of it.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) result: FlowsResult,
    /// Whether it was reported while it ran why nothing replies.
    pub(super) is_silence_reported: bool,
    /// Why it ended before it was to.
    pub(super) given_up: Option<String>,
    /// As what its messages are kept, until the transfers are.
    pub(super) kept: Option<Kept>,
    /// The same once nothing more is to be kept.
    pub(super) campaign: Option<Campaign>,
}

/// Where the reports of the fleet go.
#[derive(Debug)]
pub(super) struct FleetSink<'a> {
    pub(super) report: &'a mut FlowsWriter,
    pub(super) keep: Option<Keep>,
    pub(super) metrics: FlowsMetrics,
}
