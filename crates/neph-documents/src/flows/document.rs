//! The result of a fleet as a document: the summary, each flow and each path change.

use neph_flows::FlowHistory;
use neph_model::{Instant, Own, ProbeKind, Span, Warning};
use schemars::JsonSchema;
use serde::Serialize;

use super::tally::TallyDocument;
use super::{ChangeDocument, FlowsResult, PairDocument};
use crate::lazy::Lazy;
use crate::version::Version;

/// The summary with each flow and each change.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FlowsDocument<'a> {
    /// Everything but the single flows and changes.
    #[serde(flatten)]
    pub summary: FlowsSummary,
    /// Each flow; left out of a brief document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Lazy<'a, FlowDocument>>,
    /// Each path change; left out of a brief document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Lazy<'a, ChangeLine>>,
}

/// A path change in the list of all.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename = "change")]
pub struct ChangeLine {
    #[serde(flatten)]
    pub change: ChangeDocument,
}

/// Everything but the single flows and changes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename = "summary")]
pub struct FlowsSummary {
    /// The version of these keys.
    pub schema: Version,
    /// The version of neph.
    pub neph: &'static str,
    /// The kind of probe.
    pub probe: ProbeKind,
    /// How many flows there are at a time.
    pub concurrent_flows: u32,
    /// The interval between a flow's messages in nanoseconds.
    pub interval_ns: Span,
    /// After which time a flow is replaced by a new one, in nanoseconds.
    pub flow_lifetime_ns: Option<Span>,
    /// The start, Unix time in nanoseconds.
    pub from_unix_ns: Option<i64>,
    /// The end, Unix time in nanoseconds.
    pub until_unix_ns: Option<i64>,
    /// When a path change is detected.
    pub detection: DetectionDocument,
    /// All messages.
    pub tally: TallyDocument,
    /// What the sender counted.
    pub sender: SenderDocument,
    /// The 99th percentile of how long requests stayed at their reflectors, in nanoseconds.
    pub reflector_residence_p99_ns: Option<Span>,
    /// What the caps of reflectors refused.
    pub refused: Vec<RefusedDocument>,
    /// What this host and the reflectors did to the measurement.
    pub warnings: Vec<Warning>,
    /// Why nothing replies, where nothing does.
    pub silence: Vec<String>,
    /// Whether ctrl-C ended it.
    pub interrupted: bool,
    /// Each endpoint.
    pub pairs: Vec<PairDocument>,
}

/// The rule by which a path change is detected: `quorum` of `window` round trips lie within
/// `tolerance` of another level.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct DetectionDocument {
    /// How many round trips have to agree.
    pub quorum: u8,
    /// Of how many.
    pub window: u8,
    /// Within which distance, in nanoseconds.
    pub tolerance_ns: Span,
}

/// What a sender counted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SenderDocument {
    /// Messages that were sent.
    pub sent: u64,
    /// Messages with a reply.
    pub replies: u64,
    /// Messages without a reply in time.
    pub lost: u64,
    /// Messages that could not be sent.
    pub failed: u64,
    /// Why the first of them could not be sent.
    pub not_sent_reason: Option<String>,
    /// Replies that were a refusal (RST).
    pub refused: u64,
    /// Replies after the time-out.
    pub late_replies: u64,
    /// The 99th percentile of the lateness of sends, in nanoseconds.
    pub late_p99_ns: Option<Span>,
    /// Replies that this host dropped because it read too slowly.
    pub dropped_here: u64,
    /// Messages without the kernel's time stamps.
    pub unstamped: u64,
    /// Replies with impossible content or times, which were left out.
    pub implausible_replies: u64,
    /// Whether no core of this machine may sleep; null where that cannot be read.
    pub cpu_idle_disabled: Option<bool>,
}

/// What a reflector's caps refused and its kernel dropped.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RefusedDocument {
    /// The endpoint.
    pub endpoint: String,
    /// Messages that were refused.
    pub messages: u64,
    /// The cap on messages per second.
    pub messages_per_second: u32,
    /// Connections that were refused.
    pub connections: u64,
    /// The cap on connections of one peer.
    pub connections_per_peer: u32,
    /// Packets that its kernel dropped.
    pub dropped: u64,
}

/// A flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowDocument {
    /// The endpoint.
    pub endpoint: String,
    /// The flow's place in the fleet.
    pub slot: u32,
    /// Its source port.
    pub source_port: u16,
    /// How its messages ended.
    pub tally: TallyDocument,
    /// The times during which it had one base latency.
    pub segments: Vec<SegmentDocument>,
}

/// A time during which a flow had one base latency.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct SegmentDocument {
    /// The start, Unix time in nanoseconds.
    pub from_unix_ns: Option<i64>,
    /// The end, Unix time in nanoseconds.
    pub until_unix_ns: Option<i64>,
    /// The base latency in nanoseconds.
    pub base_ns: Span,
    /// Its class, from 0; null where it belongs to none.
    pub class: Option<u16>,
}

impl<'a> FlowsDocument<'a> {
    /// The summary alone.
    pub fn brief(result: &FlowsResult) -> Self {
        Self {
            summary: FlowsSummary::of(result),
            flows: None,
            changes: None,
        }
    }

    /// With each flow and each change.
    pub fn whole(result: &'a FlowsResult) -> Self {
        let view = &result.view;
        let flows = || view.flows.iter().map(|flow| FlowDocument::of(result, flow));
        let changes = || {
            let changes = view.changes.iter();
            let of = |change| ChangeDocument::of(&view.fleet, change, &result.clock);
            changes.map(move |change| ChangeLine { change: of(change) })
        };
        Self {
            summary: FlowsSummary::of(result),
            flows: Some(Lazy::new(flows)),
            changes: Some(Lazy::new(changes)),
        }
    }
}

impl FlowDocument {
    fn of(result: &FlowsResult, flow: &FlowHistory) -> Self {
        let fleet = &result.view.fleet;
        let unix = |at: Instant<Own>| result.clock.unix_nanos(at);
        let segments = flow.segments.iter().map(|segment| SegmentDocument {
            from_unix_ns: unix(segment.from),
            until_unix_ns: unix(segment.until),
            base_ns: segment.base,
            class: segment.class,
        });
        Self {
            endpoint: fleet.endpoints[fleet.endpoint_of(flow.slot)].name.clone(),
            slot: flow.slot.0,
            source_port: flow.source_port,
            tally: (&flow.tally).into(),
            segments: segments.collect(),
        }
    }
}

impl FlowsSummary {
    /// Of a result.
    pub fn of(result: &FlowsResult) -> Self {
        let view = &result.view;
        let detection = view.settings.detection;
        let pairs = 0..view.pairs.len();
        Self {
            schema: Version,
            neph: result.origin.version,
            probe: view.fleet.probe,
            concurrent_flows: view.fleet.slots,
            interval_ns: view.fleet.interval,
            flow_lifetime_ns: view.fleet.lifetime,
            from_unix_ns: result.clock.unix_nanos(view.from),
            until_unix_ns: result.clock.unix_nanos(view.until),
            detection: DetectionDocument {
                quorum: detection.quorum,
                window: detection.window,
                tolerance_ns: detection.tolerance,
            },
            tally: (&view.tally).into(),
            sender: sender(result),
            reflector_residence_p99_ns: result.stay_p99,
            refused: refused(result),
            warnings: result.warnings.clone(),
            silence: result.silence.clone(),
            interrupted: result.interrupted,
            pairs: pairs.map(|index| PairDocument::of(result, index)).collect(),
        }
    }
}

fn sender(result: &FlowsResult) -> SenderDocument {
    let own = &result.own;
    SenderDocument {
        sent: own.sent,
        replies: own.replies,
        lost: own.lost,
        failed: own.failed,
        not_sent_reason: result.not_sent.clone(),
        refused: own.refused,
        late_replies: own.late,
        late_p99_ns: result.late_p99,
        dropped_here: own.dropped_here,
        unstamped: own.unstamped,
        implausible_replies: own.implausible_replies,
        cpu_idle_disabled: result.origin.cpu_idle_disabled,
    }
}

fn refused(result: &FlowsResult) -> Vec<RefusedDocument> {
    let refused = result.refused.iter();
    let documents = refused.map(|(endpoint, refused)| RefusedDocument {
        endpoint: endpoint.name.clone(),
        messages: refused.messages,
        messages_per_second: refused.messages_per_second,
        connections: refused.connections,
        connections_per_peer: refused.connections_per_peer,
        dropped: refused.dropped,
    });
    documents.collect()
}
