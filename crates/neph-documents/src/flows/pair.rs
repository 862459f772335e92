//! Results for an endpoint of a fleet: latency classes, path changes, and how long paths last.

use std::collections::BTreeMap;

use neph_flows::follow::Uncompared;
use neph_flows::{Bimodality, Class, ClassMoves, FlowLatencyBin, PairView};
use neph_model::{Instant, Local, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::FlowsResult;
use super::port_advice::AdviceDocument;
use super::share::{CurveDocument, FlowLatency, QuantilesDocument, ShareDocument};
use super::transfers::CompletionDocument;

/// The results for one endpoint of a fleet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PairDocument {
    /// Name of the endpoint.
    pub endpoint: String,
    /// Address and port of the endpoint.
    pub address: String,
    /// Number of flows to it, replaced ones included.
    pub flows: u64,
    /// Replies after the timeout; null if they were not counted per endpoint.
    pub late_replies: Option<u64>,
    /// Latency classes, the lowest first.
    pub classes: Vec<ClassDocument>,
    /// Number of path changes.
    pub changes: u64,
    /// Path changes whose routes before and after were not compared, by reason; null if none are
    /// traced.
    pub changes_not_compared: Option<BTreeMap<&'static str, u64>>,
    /// Whether flows were too short to detect their path changes: then there is no rate.
    pub too_short_for_changes: bool,
    /// Whether most messages were lost: then nothing is reported about paths.
    pub mostly_lost: bool,
    /// When the last replied message was sent, if nothing has replied since; null if the endpoint
    /// replies.
    pub silent_since_unix_ns: Option<i64>,
    /// Path changes per flow and hour of observable time; null if there is no such time or no rate.
    pub changes_per_flow_hour: Option<f64>,
    /// Time with a known base latency, sum over flows.
    pub observed_ns: Span,
    /// Part of `observed_ns` in which queues hid path changes.
    pub hidden_ns: Span,
    /// Part of `observed_ns` before the first level of each flow was known, without `hidden_ns`.
    pub initial_detection_ns: Span,
    /// Time at lasting latencies that were attributed to queues and not to paths, sum over flows.
    pub attributed_to_queues_ns: Span,
    /// Path changes that were reported for hidden and initial detection time; rates exclude them.
    pub hidden_changes: u64,
    /// Slow drift of the round trips that all flows share.
    pub drift: DriftDocument,
    /// Time before which the history of flows was dropped, because it was too long; null if it is
    /// complete.
    pub history_dropped_until_unix_ns: Option<i64>,
    /// Highest latency class compared to the lowest; null without a class.
    pub inflation: Option<InflationDocument>,
    /// Hartigan's dip test for several groups of base latencies; null if not evaluated.
    pub dip: Option<Bimodality>,
    /// Share of flows that leave a new class within `leave_horizon_ns`; null if not known.
    pub leave_share: Option<ShareDocument>,
    /// Time that `leave_share` refers to.
    pub leave_horizon_ns: Span,
    /// Time from a path change to the next one of the same flow; null if not known.
    pub between_changes: Option<CurveDocument>,
    /// Time from a change of class to the next one of the same flow; null if not known.
    pub persistence: Option<CurveDocument>,
    /// Time from a change of the forward path only to the next such change of the same flow; null
    /// if not known.
    pub persistence_forward: Option<CurveDocument>,
    /// Time from a change of the reverse path only to the next such change of the same flow; null
    /// if not known.
    pub persistence_reverse: Option<CurveDocument>,
    /// Periods in which all flows shared a queue, so that paths were not observable.
    pub congested: Vec<PeriodDocument>,
    /// Whether there were so many of these periods that close ones are merged.
    pub congestion_periods_merged: bool,
    /// Length of a bin of time.
    pub bin_ns: Span,
    /// Latency over flows in each bin of time.
    pub bins: Vec<BinDocument>,
    /// Transfers on the source ports of each class; null if none were made.
    pub transfers: Option<Vec<CompletionDocument>>,
    /// Transfers that took the path of another class than expected; null if none were made.
    pub transfers_moved: Option<u64>,
    /// Advice on source ports; null if not requested.
    pub advice: Option<AdviceDocument>,
}

/// A latency class: flows with the same base latency.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ClassDocument {
    /// Base latency: the median over the time of its flows.
    pub base_ns: Span,
    /// Lowest base latency in it.
    pub lowest_ns: Span,
    /// Highest base latency in it.
    pub highest_ns: Span,
    /// Share of this class in the time of all flows, 0 to 1.
    pub share_of_time: f64,
    /// Number of flows in it at the end.
    pub flows: u32,
    /// Share of its messages that were lost; null without messages.
    pub loss: Option<ShareDocument>,
    /// Path changes away from it.
    pub changes_from: u64,
    /// Path changes to it.
    pub changes_to: u64,
    /// Path changes away from it per flow and hour; null if flows were too short to detect changes.
    pub changes_out_per_flow_hour: Option<f64>,
    /// Share of this class in all path changes away from classes; null without a change.
    pub share_of_moves: Option<ShareDocument>,
}

/// The slow drift of the round trips that all flows share, since the start.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct DriftDocument {
    /// Minimum, at most 0.
    pub lowest_ns: Span,
    /// Maximum, at least 0.
    pub highest_ns: Span,
}

/// The highest latency class compared to the lowest.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct InflationDocument {
    /// Highest base latency divided by the lowest, at least 1.
    pub ratio: f64,
    /// Base latency of the lowest class.
    pub lowest_ns: Span,
    /// Base latency of the highest class.
    pub highest_ns: Span,
    /// Number of flows.
    pub flows: u64,
}

/// A period of time.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct PeriodDocument {
    /// Start of the period; null if not known.
    pub from_unix_ns: Option<i64>,
    /// End of the period; null if not known.
    pub until_unix_ns: Option<i64>,
}

/// The flows in one bin of time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BinDocument {
    /// Start of the bin; null if not known.
    pub from_unix_ns: Option<i64>,
    /// Flows with a message in the bin.
    pub flows: u32,
    /// Flows in the bin that lost at least half of their messages.
    pub lost_flows: u32,
    /// Path changes in the bin; null if no longer known.
    pub changes: Option<u32>,
    /// Quantiles over flows of each flow's median round trip.
    pub latency: QuantilesDocument,
    /// Quantiles over flows of the base latency; null if no flow had one, or if no longer known.
    pub base: Option<QuantilesDocument>,
}

impl PairDocument {
    /// The document of the endpoint with this index.
    pub fn of(result: &FlowsResult, index: usize) -> Self {
        let view = &result.view;
        let pair = &view.pairs[index];
        let unix_nanos = |time: Instant<Local>| result.clock.unix_nanos(time);
        let classes = view.classes[index].iter().zip(&pair.moved);
        let congested = pair.congested.iter().map(|(from, until)| PeriodDocument {
            from_unix_ns: unix_nanos(*from),
            until_unix_ns: unix_nanos(*until),
        });
        let bins = view.latency_bins[index].iter();
        let transfers = result.transfers.get(index);
        Self {
            endpoint: pair.endpoint.clone(),
            address: view.fleet.endpoints[index].address.to_string(),
            flows: pair.flows,
            late_replies: pair.late,
            classes: classes
                .map(|(class, moved)| class_document(class, moved, pair))
                .collect(),
            changes: pair.changes,
            changes_not_compared: result.uncompared.get(index).map(uncompared_counts),
            too_short_for_changes: pair.too_short,
            mostly_lost: pair.mostly_lost,
            silent_since_unix_ns: pair.silence.and_then(|(since, _)| unix_nanos(since)),
            changes_per_flow_hour: pair.changes_per_flow_hour(),
            observed_ns: pair.watched,
            hidden_ns: pair.hidden.time,
            initial_detection_ns: pair.hidden.learning,
            attributed_to_queues_ns: pair.unexplained,
            hidden_changes: pair.hidden.changes,
            drift: DriftDocument {
                lowest_ns: pair.drift.lowest,
                highest_ns: pair.drift.highest,
            },
            history_dropped_until_unix_ns: pair.forgotten.and_then(unix_nanos),
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
                .map(|bin| BinDocument::of(bin, unix_nanos(bin.from)))
                .collect(),
            transfers: transfers.map(super::EndpointTransfers::documents),
            transfers_moved: transfers.map(|transfers| transfers.moved),
            advice: view.advice.get(index).map(AdviceDocument::of),
        }
    }
}

fn class_document(class: &Class, moves: &ClassMoves, pair: &PairView) -> ClassDocument {
    ClassDocument {
        base_ns: class.base,
        lowest_ns: class.range.0,
        highest_ns: class.range.1,
        share_of_time: class.share,
        flows: class.flows,
        loss: class.loss().map(ShareDocument::from),
        changes_from: class.left,
        changes_to: class.joined,
        changes_out_per_flow_hour: (!pair.too_short).then_some(moves.per_flow_hour),
        share_of_moves: moves.moved.map(ShareDocument::from),
    }
}

impl BinDocument {
    fn of(bin: &FlowLatencyBin, from_unix_ns: Option<i64>) -> Self {
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
fn uncompared_counts(uncompared: &Uncompared) -> BTreeMap<&'static str, u64> {
    let reasons = uncompared.every_reason();
    reasons
        .map(|(reason, count)| (reason.key(), count))
        .collect()
}
