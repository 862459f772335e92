//! The rows of `neph export` that are not messages. An absent value is left out of JSON lines and
//! is empty in CSV.

use neph_flows::DetectedChange;
use neph_model::{
    ByteSize, CampaignId, ClassTransfer, Experiment, Fleet, Instant, Outcome, PingBetween, Sample,
    Scenario, Span, Wall,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;

use crate::rows::{Column, Row};

/// A row with its experiment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RowWithExperiment<R> {
    /// The experiment.
    #[serde(flatten)]
    pub experiment: RowExperiment,
    /// The row.
    #[serde(flatten)]
    pub row: R,
}

impl<R: Serialize + JsonSchema> Row for RowWithExperiment<R> {
    fn columns() -> Vec<Column<Self>> {
        Vec::new()
    }
}

/// The experiment of a row.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RowExperiment {
    /// Id of the experiment.
    pub experiment_id: String,
    /// Id of the scenario.
    pub scenario_id: String,
    /// Label of the scenario; absent if not known.
    pub scenario: Option<String>,
    /// The block, from 0.
    pub block: u32,
    /// Number of earlier attempts of the scenario in the block: 0 for the first attempt.
    pub attempt: u32,
    /// Status of the experiment: `complete`, `interrupted`, `failed` or `running`.
    pub status: &'static str,
}

impl RowExperiment {
    /// The columns of an experiment and of its scenario, if known.
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

/// A sample of a series.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SampleRow {
    /// Name of the series, with its unit.
    pub series: String,
    /// Time since the experiment's start.
    pub at_ns: i64,
    /// Time of the sample.
    pub at_unix_ns: Wall,
    /// The value, in the unit of the series.
    pub value: f64,
}

impl SampleRow {
    /// The row of a sample that was taken at this wall time.
    pub fn of(sample: &Sample, at: Wall) -> Self {
        Self {
            series: sample.series.to_string(),
            at_ns: sample.at,
            at_unix_ns: at,
            value: sample.value,
        }
    }
}

/// A transfer on a source port of a latency class.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TransferRow {
    /// Name of the endpoint; absent if not known.
    pub endpoint: Option<String>,
    /// Latency class of its path, from 0 (lowest latency).
    pub class: usize,
    /// Local source port.
    pub source_port: u16,
    /// When the transfer began.
    pub at_unix_ns: Wall,
    /// Requested size.
    pub bytes: ByteSize,
    /// Time to connect; absent if the transfer failed.
    pub connect_ns: Option<Span>,
    /// Time until the last byte, connecting included; absent if the transfer failed.
    pub total_ns: Option<Span>,
    /// Why it failed; absent otherwise.
    pub failure: Option<String>,
}

impl TransferRow {
    /// The row of a transfer of an experiment that began at this wall time.
    pub fn of(experiment: &Experiment, class_transfer: &ClassTransfer, at: Wall) -> Self {
        let endpoints = experiment.fleet.as_ref().map(|fleet| &fleet.endpoints);
        let endpoint =
            endpoints.and_then(|fleet_endpoints| fleet_endpoints.get(class_transfer.endpoint));
        let transfer = &class_transfer.transfer;
        Self {
            endpoint: endpoint.map(|endpoint| endpoint.name.clone()),
            class: class_transfer.class,
            source_port: transfer.source_port,
            at_unix_ns: at,
            bytes: class_transfer.size,
            connect_ns: transfer.connect(),
            total_ns: transfer.total(),
            failure: transfer.failure().map(str::to_owned),
        }
    }
}

/// A path change that a detector found in a fleet's messages.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChangeRow {
    /// Name of the detector.
    pub detector: String,
    /// Name of the endpoint; absent if not known.
    pub endpoint: Option<String>,
    /// Slot of the flow.
    pub slot: u32,
    /// Source port of the flow.
    pub source_port: u16,
    /// When the path changed.
    pub at_unix_ns: Wall,
    /// When the change was detected; absent if not known.
    pub detected_unix_ns: Option<Wall>,
    /// Base latency before.
    pub before_ns: Span,
    /// Base latency after.
    pub after_ns: Span,
    /// Hash of the path before; absent if not traced.
    pub path_before: Option<String>,
    /// Hash of the path after; absent if not traced.
    pub path_after: Option<String>,
    /// Whether the path after has other routers; absent if the two paths were not both traced.
    pub other_routers: Option<bool>,
}

/// The paths before and after a path change, as traced.
#[derive(Clone, Debug, Default)]
pub struct TracedPaths {
    /// Hash of the path before.
    pub before: Option<String>,
    /// Hash of the path after.
    pub after: Option<String>,
    /// Whether the path after has other routers.
    pub has_other_routers: Option<bool>,
}

/// A path change with its detector.
#[derive(Clone, Copy, Debug)]
pub struct Change<'c> {
    /// The fleet.
    pub fleet: &'c Fleet,
    /// The detector's name.
    pub detector: &'c str,
    /// The change.
    pub change: &'c DetectedChange,
}

impl ChangeRow {
    /// The row of a path change; `to_wall` converts to wall time.
    pub fn of(
        flow_change: Change<'_>,
        traced: TracedPaths,
        to_wall: impl Fn(Instant<neph_model::Local>) -> Wall,
    ) -> Self {
        let Change { fleet, change, .. } = flow_change;
        let endpoint = fleet.endpoints.get(fleet.endpoint_of(change.slot));
        Self {
            detector: flow_change.detector.to_owned(),
            endpoint: endpoint.map(|endpoint| endpoint.name.clone()),
            slot: change.slot.0,
            source_port: change.source_port,
            at_unix_ns: to_wall(change.at),
            detected_unix_ns: change.reported.map(to_wall),
            before_ns: change.before,
            after_ns: change.after,
            path_before: traced.before,
            path_after: traced.after,
            other_routers: traced.has_other_routers,
        }
    }
}

crate::rows! {
    /// A ping between blocks.
    pub struct PingRow {
        /// Id of the campaign.
        campaign_id: CampaignId,
        /// The block that followed, from 0.
        block: u32,
        /// Name of the destination in the plan.
        name: String,
        /// Address of the destination.
        address: IpAddr,
        /// When it was sent.
        sent_unix_ns: Wall,
        /// Round trip; absent without a reply.
        round_trip_ns: Option<Span>,
        /// Outcome: `reply`, `error`, `lost` or `failed`.
        outcome: Outcome,
    }
}

impl PingRow {
    /// The row of a ping of a campaign.
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
