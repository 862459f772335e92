//! The result of a fleet as a document: the summary, each flow and each path change.

use neph_flows::FlowHistory;
use neph_model::{Instant, Local, ProbeKind, Span, Warning};
use schemars::JsonSchema;
use serde::Serialize;

use super::tally::TallyDocument;
use super::{ChangeDocument, FlowsResult, PairDocument};
use crate::lazy_list::LazyList;
use crate::version::Version;

/// The summary with each flow and each change.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FlowsDocument<'a> {
    /// Everything except the list of flows and the list of path changes.
    #[serde(flatten)]
    pub summary: FlowsSummary,
    /// Each flow; absent from a brief document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<LazyList<'a, FlowDocument>>,
    /// Each path change; absent from a brief document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<LazyList<'a, ChangeLine>>,
}

/// A path change in the list of all changes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename = "change")]
pub struct ChangeLine {
    #[serde(flatten)]
    pub change: ChangeDocument,
}

/// The summary of a fleet, without the lists of flows and path changes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename = "summary")]
pub struct FlowsSummary {
    /// Version of this schema.
    pub schema: Version,
    /// Version of neph.
    pub neph: &'static str,
    /// Kind of probe.
    pub probe: ProbeKind,
    /// Number of concurrent flows.
    pub concurrent_flows: u32,
    /// Time between two messages of a flow.
    pub interval_ns: Span,
    /// Lifetime after which a flow is replaced by a new one; null if flows are not replaced.
    pub flow_lifetime_ns: Option<Span>,
    /// Start of the measurement; null if not known.
    pub from_unix_ns: Option<i64>,
    /// End of the measurement; null if not known.
    pub until_unix_ns: Option<i64>,
    /// Criteria for path changes.
    pub detection: DetectionDocument,
    /// Outcomes of all messages.
    pub tally: TallyDocument,
    /// Counters of the sender.
    pub sender: SenderDocument,
    /// 99th percentile of the time that requests stayed at reflectors; null if not reported.
    pub reflector_residence_p99_ns: Option<Span>,
    /// Refusals by the caps of reflectors.
    pub refused: Vec<RefusedDocument>,
    /// Warnings about the client host and the reflectors.
    pub warnings: Vec<Warning>,
    /// Why no endpoint replied, and since when endpoints stopped replying; empty if all reply.
    pub no_reply_reasons: Vec<String>,
    /// Whether ctrl-C ended the measurement.
    pub interrupted: bool,
    /// Results for each endpoint.
    pub pairs: Vec<PairDocument>,
}

/// The criteria for path changes: a path changed if `quorum` of `window` round trips are within
/// `tolerance_ns` of another level.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct DetectionDocument {
    /// Number of round trips that must agree.
    pub quorum: u8,
    /// Number of round trips in the window.
    pub window: u8,
    /// Largest difference between round trips that agree.
    pub tolerance_ns: Span,
}

/// The counters of the sender.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SenderDocument {
    /// Messages sent.
    pub sent: u64,
    /// Messages with a reply in time.
    pub replies: u64,
    /// Messages without a reply in time.
    pub lost: u64,
    /// Messages that could not be sent.
    pub failed: u64,
    /// Why the first of them could not be sent; null if all were sent.
    pub not_sent_reason: Option<String>,
    /// Replies that refuse the connection (RST to a SYN).
    pub refused: u64,
    /// Replies after the timeout.
    pub late_replies: u64,
    /// 99th percentile of lateness; null if no message was sent.
    pub late_p99_ns: Option<Span>,
    /// Replies that the client host dropped because neph read too slowly.
    pub dropped_by_client_host: u64,
    /// Messages without both kernel timestamps.
    pub without_kernel_timestamps: u64,
    /// Replies with impossible content, which are ignored, or impossible times, whose times are
    /// ignored.
    pub implausible_replies: u64,
    /// Whether the CPU idle states of all cores are disabled; null if they cannot be read.
    pub cpu_idle_disabled: Option<bool>,
}

/// Refusals by a reflector's caps, and packets that its kernel dropped.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RefusedDocument {
    /// Name of the endpoint.
    pub endpoint: String,
    /// Number of refused messages.
    pub messages: u64,
    /// Cap on messages per second.
    pub messages_per_second: u32,
    /// Number of refused connections.
    pub connections: u64,
    /// Cap on concurrent connections of one peer.
    pub connections_per_peer: u32,
    /// Packets that the reflector's kernel dropped.
    pub dropped: u64,
}

/// A flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowDocument {
    /// Name of the endpoint.
    pub endpoint: String,
    /// Slot of the flow.
    pub slot: u32,
    /// Local source port.
    pub source_port: u16,
    /// Outcomes of its messages.
    pub tally: TallyDocument,
    /// Periods with one base latency each.
    pub periods: Vec<BasePeriodDocument>,
}

/// A period in which a flow had one base latency.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct BasePeriodDocument {
    /// Start of the period; null if not known.
    pub from_unix_ns: Option<i64>,
    /// End of the period; null if not known.
    pub until_unix_ns: Option<i64>,
    /// Base latency.
    pub base_ns: Span,
    /// Latency class, from 0; null if it belongs to none.
    pub class: Option<u16>,
}

impl<'a> FlowsDocument<'a> {
    /// The summary only.
    pub fn summary_only(result: &FlowsResult) -> Self {
        Self {
            summary: FlowsSummary::of(result),
            flows: None,
            changes: None,
        }
    }

    /// With each flow and each change.
    pub fn of_result(result: &'a FlowsResult) -> Self {
        let view = &result.view;
        let flows = || view.flows.iter().map(|flow| FlowDocument::of(result, flow));
        let changes = || {
            let changes = view.changes.iter();
            let change_document = |change| ChangeDocument::of(&view.fleet, change, &result.clock);
            changes.map(move |change| ChangeLine {
                change: change_document(change),
            })
        };
        Self {
            summary: FlowsSummary::of(result),
            flows: Some(LazyList::new(flows)),
            changes: Some(LazyList::new(changes)),
        }
    }
}

impl FlowDocument {
    fn of(result: &FlowsResult, flow: &FlowHistory) -> Self {
        let fleet = &result.view.fleet;
        let unix_nanos = |time: Instant<Local>| result.clock.unix_nanos(time);
        let periods = flow.segments.iter().map(|segment| BasePeriodDocument {
            from_unix_ns: unix_nanos(segment.from),
            until_unix_ns: unix_nanos(segment.until),
            base_ns: segment.base,
            class: segment.class,
        });
        Self {
            endpoint: fleet.endpoints[fleet.endpoint_of(flow.slot)].name.clone(),
            slot: flow.slot.0,
            source_port: flow.source_port,
            tally: (&flow.tally).into(),
            periods: periods.collect(),
        }
    }
}

impl FlowsSummary {
    /// The summary of a result.
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
            sender: sender_document(result),
            reflector_residence_p99_ns: result.residence_p99,
            refused: refused_documents(result),
            warnings: result.warnings.clone(),
            no_reply_reasons: result.no_reply_reasons.clone(),
            interrupted: result.interrupted,
            pairs: pairs.map(|index| PairDocument::of(result, index)).collect(),
        }
    }
}

fn sender_document(result: &FlowsResult) -> SenderDocument {
    let host_tally = &result.sender_tally;
    SenderDocument {
        sent: host_tally.sent,
        replies: host_tally.replies,
        lost: host_tally.lost,
        failed: host_tally.failed,
        not_sent_reason: result.not_sent_reason.clone(),
        refused: host_tally.refused,
        late_replies: host_tally.late,
        late_p99_ns: result.late_p99,
        dropped_by_client_host: host_tally.dropped_here,
        without_kernel_timestamps: host_tally.unstamped,
        implausible_replies: host_tally.implausible_replies,
        cpu_idle_disabled: result.origin.cpu_idle_disabled,
    }
}

fn refused_documents(result: &FlowsResult) -> Vec<RefusedDocument> {
    let refusals = result.refused.iter();
    let documents = refusals.map(|(endpoint, refusals)| RefusedDocument {
        endpoint: endpoint.name.clone(),
        messages: refusals.messages,
        messages_per_second: refusals.messages_per_second,
        connections: refusals.connections,
        connections_per_peer: refusals.connections_per_peer,
        dropped: refusals.dropped,
    });
    documents.collect()
}
