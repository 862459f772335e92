//! The rows of `neph export` that are not messages. What is absent is left out of JSON lines and is
//! empty in CSV.

use neph_flows::Detected;
use neph_model::{
    ByteSize, CampaignId, ClassTransfer, Experiment, Fleet, Instant, Outcome, PingBetween, Sample,
    Scenario, Span, Wall,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;

use crate::rows::{Column, Row};

/// A row with the experiment that it belongs to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfExperiment<R> {
    /// The experiment.
    #[serde(flatten)]
    pub whose: Whose,
    /// The row.
    #[serde(flatten)]
    pub row: R,
}

impl<R: Serialize + JsonSchema> Row for OfExperiment<R> {
    fn columns() -> Vec<Column<Self>> {
        Vec::new()
    }
}

/// The experiment that a row belongs to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Whose {
    /// The experiment's id.
    pub experiment_id: String,
    /// The scenario's id.
    pub scenario_id: String,
    /// The scenario's label.
    pub scenario: Option<String>,
    /// The block, from 0.
    pub block: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// `complete`, `interrupted`, `failed` or `running`.
    pub status: &'static str,
}

impl Whose {
    /// Of an experiment and its scenario, where that is known.
    pub fn of(experiment: &Experiment, scenario: Option<&Scenario>) -> Self {
        Self {
            experiment_id: experiment.id.to_string(),
            scenario_id: experiment.scenario.to_string(),
            scenario: scenario.map(Scenario::label),
            block: experiment.block,
            attempt: experiment.attempt,
            status: experiment.status.name(),
        }
    }
}

/// A value of a series.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SampleRow {
    /// The series, with its unit.
    pub series: String,
    /// Nanoseconds since the experiment's start.
    pub at_ns: i64,
    /// Unix time in nanoseconds.
    pub at_unix_ns: Wall,
    /// The value.
    pub value: f64,
}

impl SampleRow {
    /// Of a sample that was taken at this wall time.
    pub fn of(sample: &Sample, at: Wall) -> Self {
        Self {
            series: sample.series.to_string(),
            at_ns: sample.at,
            at_unix_ns: at,
            value: sample.value,
        }
    }
}

/// A transfer on a port of a latency class.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TransferRow {
    /// The endpoint.
    pub endpoint: Option<String>,
    /// The class, from 0.
    pub class: usize,
    /// The source port.
    pub source_port: u16,
    /// When it began, Unix time in nanoseconds.
    pub at_unix_ns: Wall,
    /// Its size in bytes.
    pub bytes: ByteSize,
    /// The time to connect in nanoseconds.
    pub connect_ns: Option<Span>,
    /// The time until it was complete in nanoseconds.
    pub whole_ns: Option<Span>,
    /// Why it failed.
    pub failure: Option<String>,
}

impl TransferRow {
    /// Of a transfer of an experiment that began at this wall time.
    pub fn of(experiment: &Experiment, made: &ClassTransfer, at: Wall) -> Self {
        let endpoints = experiment.fleet.as_ref().map(|fleet| &fleet.endpoints);
        let endpoint = endpoints.and_then(|all| all.get(made.endpoint));
        let transfer = &made.transfer;
        Self {
            endpoint: endpoint.map(|endpoint| endpoint.name.clone()),
            class: made.class,
            source_port: transfer.source_port,
            at_unix_ns: at,
            bytes: made.size,
            connect_ns: transfer.connect(),
            whole_ns: transfer.whole(),
            failure: transfer.failure().map(str::to_owned),
        }
    }
}

/// A path change that a detector found in a fleet's messages.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChangeRow {
    /// The detector.
    pub detector: String,
    /// The endpoint.
    pub endpoint: Option<String>,
    /// The flow's place in the fleet.
    pub slot: u32,
    /// The flow's source port.
    pub source_port: u16,
    /// When the path changed, Unix time in nanoseconds.
    pub at_unix_ns: Wall,
    /// When the change was detected, Unix time in nanoseconds.
    pub detected_unix_ns: Option<Wall>,
    /// The base latency before, in nanoseconds.
    pub before_ns: Span,
    /// The base latency after, in nanoseconds.
    pub after_ns: Span,
    /// The fingerprint of the path before, where it was traced.
    pub path_before: Option<String>,
    /// The fingerprint of the path after, where it was traced.
    pub path_after: Option<String>,
    /// Whether the flow met other routers than before, where both paths were traced.
    pub other_routers: Option<bool>,
}

/// What a trace showed of a path change.
#[derive(Clone, Debug, Default)]
pub struct TracedPaths {
    /// The fingerprint of the path before.
    pub before: Option<String>,
    /// The fingerprint of the path after.
    pub after: Option<String>,
    /// Whether they have other routers.
    pub others: Option<bool>,
}

/// A path change and what found it.
#[derive(Clone, Copy, Debug)]
pub struct Change<'c> {
    /// The fleet.
    pub fleet: &'c Fleet,
    /// The detector's name.
    pub detector: &'c str,
    /// The change.
    pub change: &'c Detected,
}

impl ChangeRow {
    /// Of a path change; `wall` gives wall times.
    pub fn of(
        found: Change<'_>,
        traced: TracedPaths,
        wall: impl Fn(Instant<neph_model::Own>) -> Wall,
    ) -> Self {
        let Change { fleet, change, .. } = found;
        let endpoint = fleet.endpoints.get(fleet.endpoint_of(change.slot));
        Self {
            detector: found.detector.to_owned(),
            endpoint: endpoint.map(|endpoint| endpoint.name.clone()),
            slot: change.slot.0,
            source_port: change.source_port,
            at_unix_ns: wall(change.at),
            detected_unix_ns: change.reported.map(wall),
            before_ns: change.before,
            after_ns: change.after,
            path_before: traced.before,
            path_after: traced.after,
            other_routers: traced.others,
        }
    }
}

crate::rows! {
    /// A ping between blocks.
    pub struct PingRow {
        /// The campaign's id.
        campaign_id: CampaignId,
        /// The block that followed, from 0.
        block: u32,
        /// The destination's name in the plan.
        name: String,
        /// Its address.
        address: IpAddr,
        /// When it was sent, Unix time in nanoseconds.
        sent_unix_ns: Wall,
        /// The round trip in nanoseconds.
        round_trip_ns: Option<Span>,
        /// `reply`, `error`, `lost` or `failed`.
        outcome: Outcome,
    }
}

impl PingRow {
    /// Of a ping of a campaign.
    pub fn of(campaign: CampaignId, ping: &PingBetween) -> Self {
        Self {
            campaign_id: campaign,
            block: ping.block,
            name: ping.name.clone(),
            address: ping.address,
            sent_unix_ns: ping.sent,
            round_trip_ns: ping.round_trip,
            outcome: ping.outcome,
        }
    }
}
