//! The flows that a ping measures.

use neph_model::FlowRole;
use neph_probe::{Discovery, FlowSpec};

/// One flow that is measured.
#[derive(Debug)]
pub struct PlannedFlow {
    /// How it is measured.
    pub spec: FlowSpec,
    /// What was discovered about its peer.
    pub discovery: Discovery,
}

impl PlannedFlow {
    /// Whether it was requested by the target, and is not only the echo alongside.
    pub fn is_requested(&self) -> bool {
        self.spec.role == FlowRole::Main || !self.spec.target.kind().is_echo()
    }
}

/// All flows that are measured.
#[derive(Debug)]
pub struct PlannedFlows {
    /// The flows, the main one first.
    pub flows: Vec<PlannedFlow>,
    /// Remarks for the user before the start.
    pub remarks: Vec<String>,
}
