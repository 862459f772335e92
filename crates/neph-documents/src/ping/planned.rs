//! The flows that a ping measures.

use neph_model::FlowRole;
use neph_probe::{Discovery, FlowSpec};

/// One flow that is measured.
#[derive(Debug)]
pub struct Planned {
    /// How it is measured.
    pub spec: FlowSpec,
    /// What was found out about its peer.
    pub discovery: Discovery,
}

impl Planned {
    /// Whether the target stands for this flow, and it is no mere companion.
    pub fn is_asked_for(&self) -> bool {
        self.spec.role == FlowRole::Main || !self.spec.target.kind().is_echo()
    }
}

/// All flows that are measured.
#[derive(Debug)]
pub struct PlannedFlows {
    /// The flows, the main one first.
    pub flows: Vec<Planned>,
    /// What the person should know before it starts.
    pub remarks: Vec<String>,
}
