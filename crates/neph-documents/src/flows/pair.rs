//! An endpoint of a fleet: its classes, path changes and how they last.

use std::collections::BTreeMap;

use neph_flows::follow::Uncompared;
use neph_flows::{Bimodality, Class, Fairness, Moved, PairView};
use neph_model::{Instant, Own, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::FlowsResult;
use super::advised::AdviceDocument;
use super::share::{CurveDocument, FlowLatency, QuantilesDocument, ShareDocument};
use super::transfers::CompletionDocument;

/// An endpoint of a fleet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PairDocument {
    /// Its name.
    pub endpoint: String,
    /// Its address.
    pub address: String,
    /// How many flows went to it, replaced ones included.
    pub flows: u64,
    /// Replies after the time-out; null where that is not known for each endpoint.
    pub late_replies: Option<u64>,
    /// The classes of base latencies, the lowest first.
    pub classes: Vec<ClassDocument>,
    /// How many path changes were detected.
    pub changes: u64,
    /// Changes whose routes before and after were not compared, by reason; null where none are
    /// traced.
    pub changes_not_compared: Option<BTreeMap<&'static str, u64>>,
    /// The measurement was too short for rates of changes.
    pub too_short_for_changes: bool,
    /// More than half of the messages were lost or late: nothing is reported of paths.
    pub mostly_lost: bool,
    /// Since when nothing has replied, Unix time in nanoseconds; null where something does.
    pub silent_since_unix_ns: Option<i64>,
    /// Path changes per flow and hour.
    pub changes_per_flow_hour: Option<f64>,
    /// The flows' time in all, in nanoseconds.
    pub observed_ns: Span,
    /// Of that, the time during which queues hid changes, in nanoseconds.
    pub hidden_ns: Span,
    /// The time until flows' first base latency was known, in nanoseconds.
    pub learning_ns: Span,
    /// The flows' time above their base latency that was taken for queues, in nanoseconds.
    pub attributed_to_queues_ns: Span,
    /// Changes that were detected for these times; they count in no rate.
    pub hidden_changes: u64,
    /// How far base latencies moved slowly.
    pub drift: DriftDocument,
    /// Until when flows were forgotten because there were too many, Unix time in nanoseconds.
    pub history_dropped_until_unix_ns: Option<i64>,
    /// How much higher the highest base latency is than the lowest.
    pub inflation: Option<InflationDocument>,
    /// A test for several groups of base latencies (Hartigan's dip).
    pub dip: Option<Bimodality>,
    /// The share of flows that leave their path within `leave_horizon_ns`.
    pub leave_share: Option<ShareDocument>,
    /// What soon means, in nanoseconds.
    pub leave_horizon_ns: Span,
    /// The time between two changes of a flow.
    pub between_changes: Option<CurveDocument>,
    /// How long flows stay on a path.
    pub persistence: Option<CurveDocument>,
    /// How long flows stay on a forward path.
    pub persistence_forward: Option<CurveDocument>,
    /// How long flows stay on a reverse path.
    pub persistence_reverse: Option<CurveDocument>,
    /// When queues filled on many flows together.
    pub congested: Vec<PeriodDocument>,
    /// Periods of congestion that were too many to list and were joined.
    pub congestion_periods_merged: bool,
    /// The length of a bin in nanoseconds.
    pub bin_ns: Span,
    /// How unequal flows were over time.
    pub bins: Vec<BinDocument>,
    /// Transfers on the ports of classes; null where none were made.
    pub transfers: Option<Vec<CompletionDocument>>,
    /// Transfers that took the path of another class than expected.
    pub transfers_moved: Option<u64>,
    /// Which source ports to use; null where it was not asked.
    pub advice: Option<AdviceDocument>,
}

/// Flows with the same base latency.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ClassDocument {
    /// The median base latency in nanoseconds.
    pub base_ns: Span,
    /// The lowest base latency in nanoseconds.
    pub lowest_ns: Span,
    /// The highest base latency in nanoseconds.
    pub highest_ns: Span,
    /// Its share of all flows' time, 0 to 1.
    pub share_of_time: f64,
    /// How many flows were in it at the end.
    pub flows: u32,
    /// The share of its messages that were lost.
    pub loss: Option<ShareDocument>,
    /// Path changes away from it.
    pub left: u64,
    /// Path changes to it.
    pub joined: u64,
    /// Path changes away from it per flow and hour; null where the measurement was too short.
    pub changes_out_per_flow_hour: Option<f64>,
    /// Its share of all changes away from a class.
    pub share_of_moves: Option<ShareDocument>,
}

/// How far base latencies moved slowly.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct DriftDocument {
    /// The furthest fall in nanoseconds.
    pub lowest_ns: Span,
    /// The furthest rise in nanoseconds.
    pub highest_ns: Span,
}

/// How much higher the highest base latency is than the lowest.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct InflationDocument {
    /// The highest over the lowest.
    pub ratio: f64,
    /// The lowest base latency in nanoseconds.
    pub lowest_ns: Span,
    /// The highest base latency in nanoseconds.
    pub highest_ns: Span,
    /// Of how many flows.
    pub flows: u64,
}

/// A period of time.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct PeriodDocument {
    /// The start, Unix time in nanoseconds.
    pub from_unix_ns: Option<i64>,
    /// The end, Unix time in nanoseconds.
    pub until_unix_ns: Option<i64>,
}

/// Flows in one bin of time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BinDocument {
    /// The start, Unix time in nanoseconds.
    pub from_unix_ns: Option<i64>,
    /// Flows with a message in it.
    pub flows: u32,
    /// Of these, flows that lost at least half of their messages.
    pub lost_flows: u32,
    /// Path changes in it; null where they are not known any more.
    pub changes: Option<u32>,
    /// Over flows, quantiles of each flow's median round trip.
    pub latency: QuantilesDocument,
    /// Over flows, quantiles of base latencies; null where no flow had one.
    pub base: Option<QuantilesDocument>,
}

impl PairDocument {
    /// Of the endpoint at this place.
    pub fn of(result: &FlowsResult, index: usize) -> Self {
        let view = &result.view;
        let pair = &view.pairs[index];
        let unix = |at: Instant<Own>| result.clock.unix_nanos(at);
        let classes = view.classes[index].iter().zip(&pair.moved);
        let congested = pair.congested.iter().map(|(from, until)| PeriodDocument {
            from_unix_ns: unix(*from),
            until_unix_ns: unix(*until),
        });
        let bins = view.fairness[index].iter();
        let transfers = result.transfers.get(index);
        Self {
            endpoint: pair.endpoint.clone(),
            address: view.fleet.endpoints[index].address.to_string(),
            flows: pair.flows,
            late_replies: pair.late,
            classes: classes
                .map(|(class, moved)| class_of(class, moved, pair))
                .collect(),
            changes: pair.changes,
            changes_not_compared: result.uncompared.get(index).map(uncompared),
            too_short_for_changes: pair.too_short,
            mostly_lost: pair.mostly_lost,
            silent_since_unix_ns: pair.silence.and_then(|(since, _)| unix(since)),
            changes_per_flow_hour: pair.changes_per_flow_hour(),
            observed_ns: pair.watched,
            hidden_ns: pair.hidden.time,
            learning_ns: pair.hidden.learning,
            attributed_to_queues_ns: pair.unexplained,
            hidden_changes: pair.hidden.changes,
            drift: DriftDocument {
                lowest_ns: pair.drift.lowest,
                highest_ns: pair.drift.highest,
            },
            history_dropped_until_unix_ns: pair.forgotten.and_then(unix),
            inflation: pair.inflation.map(|inflation| InflationDocument {
                ratio: inflation.ratio,
                lowest_ns: inflation.lowest,
                highest_ns: inflation.highest,
                flows: inflation.flows,
            }),
            dip: pair.bimodality,
            leave_share: pair.leave_share.map(ShareDocument::from),
            leave_horizon_ns: view.settings.soon,
            between_changes: pair.between.as_ref().map(CurveDocument::from),
            persistence: pair.persistence.as_ref().map(CurveDocument::from),
            persistence_forward: pair.persistence_forward.as_ref().map(CurveDocument::from),
            persistence_reverse: pair.persistence_reverse.as_ref().map(CurveDocument::from),
            congested: congested.collect(),
            congestion_periods_merged: pair.congestion_periods_merged,
            bin_ns: view.bin(),
            bins: bins
                .map(|bin| BinDocument::of(bin, unix(bin.from)))
                .collect(),
            transfers: transfers.map(super::TransfersFound::documents),
            transfers_moved: transfers.map(|transfers| transfers.moved),
            advice: view.advice.get(index).map(AdviceDocument::of),
        }
    }
}

fn class_of(class: &Class, moved: &Moved, pair: &PairView) -> ClassDocument {
    ClassDocument {
        base_ns: class.base,
        lowest_ns: class.range.0,
        highest_ns: class.range.1,
        share_of_time: class.share,
        flows: class.flows,
        loss: class.loss().map(ShareDocument::from),
        left: class.left,
        joined: class.joined,
        changes_out_per_flow_hour: (!pair.too_short).then_some(moved.per_flow_hour),
        share_of_moves: moved.moved.map(ShareDocument::from),
    }
}

impl BinDocument {
    fn of(bin: &Fairness, from_unix_ns: Option<i64>) -> Self {
        Self {
            from_unix_ns,
            flows: bin.flows,
            lost_flows: bin.lost,
            changes: bin.changes,
            latency: QuantilesDocument::of(bin.latency.map(FlowLatency::from)),
            base: bin
                .base
                .map(|base| QuantilesDocument::of(base.map(FlowLatency::Took))),
        }
    }
}

/// Each reason for which a change was not compared, with its count.
fn uncompared(all: &Uncompared) -> BTreeMap<&'static str, u64> {
    let reasons = all.every_reason();
    reasons.map(|(why, count)| (why.key(), count)).collect()
}
