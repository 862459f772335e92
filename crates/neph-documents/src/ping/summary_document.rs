//! The summary as a document, with unrounded numbers.

use std::collections::BTreeMap;

use neph_analysis::{Diagnosis, NotEvaluated, Note};
use neph_model::{Span, Tally, Unanswered};
use neph_stats::{Quantile, RunningSummary, StatsError};
use schemars::JsonSchema;
use serde::Serialize;

use super::answers::answer_counts;
use super::causes::find_causes;
use super::columns::Column;
use super::summary::column_values;
use super::{FlowTotals, PingResult, PlannedFlow, PlannedFlows};
use crate::origin::Origin;
use crate::version::Version;

/// The summary of all flows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PingSummary {
    /// Version of this schema.
    pub schema: Version,
    /// Version of neph.
    pub version: &'static str,
    /// Commit of neph.
    pub commit: &'static str,
    /// Whether the CPU idle states of all cores are disabled; null if they cannot be read.
    pub cpu_idle_disabled: Option<bool>,
    /// Summary of each flow.
    pub(super) flows: Vec<FlowSummary>,
    /// Root causes, ordered by added latency.
    pub diagnoses: Vec<Diagnosis>,
    /// Observations that are no root cause.
    pub notes: Vec<Note>,
    /// Rules that were not evaluated, and why.
    pub not_evaluated: Vec<NotEvaluated>,
}

/// The summary of a flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowSummary {
    /// The target.
    pub(super) target: String,
    /// Address and port of the target.
    pub address: String,
    /// Whether the peer is a neph reflector.
    pub reflector: bool,
    /// Whether both sides read the same clock.
    pub same_clock: bool,
    /// Number of servers that answer behind the address; null unless several were distinguished.
    pub backends: Option<usize>,
    /// Time between two messages.
    pub interval_ns: Span,
    /// Payload of a request.
    pub request_bytes: usize,
    /// Payload of a reply.
    pub response_bytes: usize,
    /// Outcomes of the messages.
    pub(super) tally: Tally,
    /// Number of each answer, by its name.
    pub answers: BTreeMap<String, u64>,
    /// RST replies to a SYN; null for other probes.
    pub refused: Option<u64>,
    /// Response time: from the scheduled send time to the reply; null without a reply.
    pub(super) response_ns: Option<NumbersDocument>,
    /// Service time: from dialling or sending to the reply; null without a reply.
    pub(super) service_ns: Option<NumbersDocument>,
    /// TCP RTT: from the departure of the request to its acknowledgement; null if not known.
    pub(super) tcp_ns: Option<NumbersDocument>,
    /// Network RTT: both directions, without the time at the peer; null without the peer's
    /// timestamps.
    pub(super) network_ns: Option<NumbersDocument>,
    /// RTT of network and peer together; null if the peer gives timestamps, or if not known.
    pub(super) network_and_peer_ns: Option<NumbersDocument>,
    /// Retransmitted segments; null without TCP.
    pub retransmissions: Option<u64>,
    /// Retransmitted segments that the peer had received already (DSACK); null without TCP.
    pub spurious_retransmissions: Option<u64>,
    /// Entries of the ledgers, by stage.
    pub(super) stages: Vec<StageSummary>,
}

/// An entry of the ledgers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StageSummary {
    /// Names of its stages.
    pub(super) stage: String,
    /// Whether the entry consists of several stages, because a timestamp between them is missing.
    pub merged: bool,
    /// Share of the response times of all replies, 0 to 1.
    pub share: f64,
    /// Distribution of the entry's time; null without a value.
    pub(super) ns: Option<NumbersDocument>,
}

/// A distribution in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct NumbersDocument {
    /// Number of values.
    pub(super) n: usize,
    /// Messages of the population that have no value; they rank above all values.
    pub without_value: usize,
    /// Outcome of the messages without a value; null if there are none.
    pub without_value_outcome: Option<&'static str>,
    /// Whether percentiles are exact; else they are within 0.2 %.
    pub quantiles_exact: bool,
    /// Mean of the values; null if not known.
    pub(super) mean: Option<f64>,
    /// Standard deviation; null if not known.
    pub(super) sd: Option<f64>,
    /// Minimum.
    pub(super) min: Option<f64>,
    /// Maximum.
    pub(super) max: Option<f64>,
    /// Median; null with too few messages.
    pub(super) p50: Option<QuantileDocument>,
    /// 90th percentile; null with too few messages.
    pub(super) p90: Option<QuantileDocument>,
    /// 99th percentile; null with too few messages.
    pub(super) p99: Option<QuantileDocument>,
    /// 99.9th percentile; null with too few messages.
    pub p999: Option<QuantileDocument>,
}

/// A percentile.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct QuantileDocument {
    /// The value in nanoseconds; null if it lies among the messages without a value.
    pub(super) value: Option<f64>,
}

impl PingSummary {
    /// The summary of a measurement.
    pub fn of(origin: Origin, planned: &PlannedFlows, result: &PingResult) -> Self {
        let flows = planned.flows.iter().zip(&result.flows);
        let diagnoses = find_causes(planned, result);
        Self {
            schema: Version,
            version: origin.version,
            commit: origin.commit,
            cpu_idle_disabled: origin.cpu_idle_disabled,
            flows: flows
                .map(|(planned, measured)| build_flow_summary(planned, measured))
                .collect(),
            diagnoses: diagnoses.causes,
            notes: diagnoses.notes,
            not_evaluated: diagnoses.not_evaluated,
        }
    }
}

fn build_flow_summary(planned: &PlannedFlow, totals: &FlowTotals) -> FlowSummary {
    let column_numbers =
        |column: Column, unanswered| build_numbers(column_values(totals, column), unanswered);
    let (tally, spec) = (&totals.tally, &planned.spec);
    let unanswered = Unanswered::default();
    let stages = totals
        .entries
        .shares()
        .map(|(set, entry, share)| StageSummary {
            stage: set.to_string(),
            merged: set.is_merged(),
            share,
            ns: build_numbers(&entry.values, unanswered),
        });
    let last_message = totals.last_message;
    let is_tcp = last_message.is_some_and(|last_message| {
        last_message
            .tcp_at_ack
            .or(last_message.tcp_at_send)
            .is_some()
    });
    let retransmissions = Some(&totals.retransmissions).filter(|_| is_tcp);
    FlowSummary {
        target: spec.target.to_string(),
        address: spec.address.to_string(),
        reflector: spec.reflector,
        same_clock: planned.discovery.same_clock && totals.backends.may_share_local_clock(),
        backends: totals.backends.count_if_several(),
        interval_ns: spec.schedule.interval,
        request_bytes: spec.request_size,
        response_bytes: spec.response_size,
        tally: *tally,
        answers: answer_counts(totals),
        refused: spec
            .target
            .kind()
            .is_segment()
            .then(|| totals.refusal_count()),
        response_ns: column_numbers(Column::Response, tally.without_response()),
        service_ns: column_numbers(Column::Service, tally.without_service()),
        tcp_ns: column_numbers(Column::Tcp, unanswered),
        network_ns: column_numbers(Column::Network, unanswered),
        network_and_peer_ns: column_numbers(Column::NetworkAndPeer, unanswered),
        retransmissions: retransmissions.map(|retransmissions| retransmissions.total),
        spurious_retransmissions: retransmissions.map(|retransmissions| retransmissions.spurious),
        stages: stages.collect(),
    }
}

fn build_numbers(values: &RunningSummary, unanswered: Unanswered) -> Option<NumbersDocument> {
    if values.n() == 0 {
        return None;
    }
    let unanswered_count = usize::try_from(unanswered.count()).unwrap_or(usize::MAX);
    let [p50, p90, p99, p999] = values.quantiles(unanswered_count, [0.5, 0.9, 0.99, 0.999]);
    // Without an interval: consecutive messages are not independent, and the degree is unknown
    // here.
    let quantile_document = |quantile: Result<Quantile, StatsError>| {
        let value = quantile.ok()?.value().number();
        Some(QuantileDocument { value })
    };
    Some(NumbersDocument {
        n: values.n(),
        without_value: unanswered_count,
        without_value_outcome: (unanswered_count > 0).then(|| unanswered.word()),
        quantiles_exact: values.is_exact(),
        mean: values.mean(),
        sd: values.sd(),
        min: values.min(),
        max: values.max(),
        p50: quantile_document(p50),
        p90: quantile_document(p90),
        p99: quantile_document(p99),
        p999: quantile_document(p999),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_without_a_value_are_counted_with_their_outcome() {
        let mut values = RunningSummary::default();
        for value in [1.0, 2.0, 3.0] {
            values.add(value).expect("finite");
        }
        let not_sent = Unanswered {
            not_sent: 4,
            ..Unanswered::default()
        };
        let summary = build_numbers(&values, not_sent).expect("there are values");
        assert_eq!(summary.without_value, 4);
        assert_eq!(summary.without_value_outcome, Some("not sent"));
        let p50 = summary.p50.map(|quantile| quantile.value);
        assert!(
            p50.is_none_or(|value| value.is_none()),
            "it falls among them"
        );
        let answered = build_numbers(&values, Unanswered::default()).expect("there are values");
        assert_eq!(answered.without_value_outcome, None);
    }
}
