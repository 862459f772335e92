//! An experiment as an order.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block::{EchoTo, TraceLimits};
use crate::{Experiment, Scenario, Span, Wall};

/// The trace of a fleet's flows, when its experiment is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowTraceOrder {
    /// At most so many flows of each fleet, those of its first slots: at least 1.
    pub flows: u32,
    /// How far and how often, per flow.
    pub limits: TraceLimits,
}

/// One experiment to carry out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentOrder {
    /// Its identity and place in the campaign. Flows and start are the executor's to say.
    pub experiment: Experiment,
    /// What it fixes.
    pub scenario: Scenario,
    /// The lab site whose namespace the prober runs in; this host as it is if absent.
    pub site: Option<String>,
    /// A reflector answered at this endpoint earlier in the campaign: a stranger would be measured
    /// differently, so that only a reflector will do.
    pub reflector: bool,
    /// The address at which this endpoint was measured last in the campaign: it stays, as long as the
    /// host has it and it answers.
    pub last_address: Option<IpAddr>,
    /// After how long a message counts as lost.
    #[serde(rename = "timeout_ns")]
    pub timeout: Span,
    /// Interval of the ICMP echo beside the main flow, if there is to be one.
    #[serde(rename = "companion_ns")]
    pub companion: Option<Span>,
    /// Further ICMP destinations.
    pub pings: Vec<EchoTo>,
    /// The routes of a fleet's flows are looked for when it is over.
    pub trace: Option<FlowTraceOrder>,
    /// When it begins, where several places agree on a moment; as soon as it is ready if absent. What is not
    /// ready by then has missed its start, and does not run.
    #[serde(rename = "start_unix_ns")]
    pub start: Option<Wall>,
}
