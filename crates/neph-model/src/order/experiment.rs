//! An order to run an experiment.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block::{EchoTo, TraceLimits};
use crate::{Experiment, Scenario, Span, Wall};

/// A trace of a fleet's flows after the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowTraceOrder {
    /// Maximum number of flows per fleet, from the first slots; at least 1.
    pub flows: u32,
    /// Limits for each flow.
    pub limits: TraceLimits,
}

/// One experiment to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentOrder {
    /// The experiment with its id and its place in the campaign. The executor sets its flows and
    /// its start.
    pub experiment: Experiment,
    /// The scenario of the experiment.
    pub scenario: Scenario,
    /// Lab site in whose network namespace the prober runs; null for the host itself.
    pub site: Option<String>,
    /// Whether a reflector answered at this endpoint earlier in the campaign. Then only a reflector
    /// is accepted: a third-party server would be measured differently.
    pub reflector: bool,
    /// Address of the endpoint in its last experiment of the campaign; null before. neph uses this
    /// address as long as the host has it and it answers.
    pub last_address: Option<IpAddr>,
    /// Time after which a message counts as lost.
    #[serde(rename = "timeout_ns")]
    pub timeout: Span,
    /// Interval of the ICMP echo in addition to the main flow; null without it.
    #[serde(rename = "companion_ns")]
    pub companion: Option<Span>,
    /// Further ICMP echo destinations.
    pub pings: Vec<EchoTo>,
    /// Trace of a fleet's flows after the experiment; null without one.
    pub trace: Option<FlowTraceOrder>,
    /// Start time, if several sites agreed on one; null: as soon as it is ready. An experiment that
    /// is not ready at its start time does not run.
    #[serde(rename = "start_unix_ns")]
    pub start: Option<Wall>,
}
