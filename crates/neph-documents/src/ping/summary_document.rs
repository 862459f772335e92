//! The summary as a document: the numbers that the text rounds.

use std::collections::BTreeMap;

use neph_analysis::{Diagnosis, NotEvaluated, Note};
use neph_model::{Span, Tally, Unanswered};
use neph_stats::{Quantile, RunningSummary, StatsError};
use schemars::JsonSchema;
use serde::Serialize;

use super::answers::answer_counts;
use super::causes::causes;
use super::columns::Column;
use super::summary::values;
use super::{FlowMeasured, PingResult, Planned, PlannedFlows};
use crate::origin::Origin;
use crate::version::Version;

/// The summary of all flows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PingSummary {
    /// The version of these keys.
    pub schema: Version,
    /// The version of neph.
    pub version: &'static str,
    /// Its commit.
    pub commit: &'static str,
    /// Whether no core of this machine may sleep; null where that cannot be read.
    pub cpu_idle_disabled: Option<bool>,
    /// Each flow.
    pub(super) flows: Vec<FlowSummary>,
    /// Root causes, ordered by added latency.
    pub diagnoses: Vec<Diagnosis>,
    /// What is no cause and worth knowing.
    pub notes: Vec<Note>,
    /// Rules that were not evaluated, and why.
    pub not_evaluated: Vec<NotEvaluated>,
}

/// The summary of a flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowSummary {
    /// The target.
    pub(super) target: String,
    /// Its address.
    pub address: String,
    /// Whether the peer is a neph reflector.
    pub reflector: bool,
    /// Whether both ends have one clock.
    pub same_clock: bool,
    /// How many machines answer behind the address, where there are several.
    pub backends: Option<usize>,
    /// The interval between messages in nanoseconds.
    pub interval_ns: Span,
    /// The size of a request in bytes.
    pub request_bytes: usize,
    /// The size of a reply in bytes.
    pub response_bytes: usize,
    /// How messages ended.
    pub(super) tally: Tally,
    /// How often each answer came, by its name.
    pub answers: BTreeMap<String, u64>,
    /// Replies to a SYN that were a RST; null of other probes.
    pub refused: Option<u64>,
    /// From when a message was to be sent to its reply.
    pub(super) response_ns: Option<NumbersDocument>,
    /// From when a message was sent to its reply.
    pub(super) service_ns: Option<NumbersDocument>,
    /// From leaving to the acknowledgement by TCP.
    pub(super) tcp_ns: Option<NumbersDocument>,
    /// Both directions of the network without the peer.
    pub(super) network_ns: Option<NumbersDocument>,
    /// The network and the peer.
    pub(super) network_and_peer_ns: Option<NumbersDocument>,
    /// Retransmitted segments; null without TCP.
    pub retransmissions: Option<u64>,
    /// Of these, those that the peer had received already (DSACK).
    pub spurious_retransmissions: Option<u64>,
    /// Where the time went: the entries of the ledgers.
    pub(super) stages: Vec<StageSummary>,
}

/// An entry of the ledgers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StageSummary {
    /// Its stages.
    pub(super) stage: String,
    /// Whether these are several, because a mark between them is missing.
    pub merged: bool,
    /// Its share of the response times of all replies.
    pub share: f64,
    /// Its distribution.
    pub(super) ns: Option<NumbersDocument>,
}

/// A distribution in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct NumbersDocument {
    /// How many values.
    pub(super) n: usize,
    /// Messages of the population that have no value; they rank above all values.
    pub without_value: usize,
    /// How these ended; null where there are none.
    pub without_value_is: Option<&'static str>,
    /// Whether quantiles are exact; else they are within 0.2 %.
    pub quantiles_exact: bool,
    /// The mean of the values.
    pub(super) mean: Option<f64>,
    /// Their standard deviation.
    pub(super) sd: Option<f64>,
    /// The lowest.
    pub(super) min: Option<f64>,
    /// The highest.
    pub(super) max: Option<f64>,
    /// The median; null where there are too few messages.
    pub(super) p50: Option<QuantileDocument>,
    /// The 90th percentile.
    pub(super) p90: Option<QuantileDocument>,
    /// The 99th percentile.
    pub(super) p99: Option<QuantileDocument>,
    /// The 99.9th percentile.
    pub p999: Option<QuantileDocument>,
}

/// A quantile.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct QuantileDocument {
    /// Its value; null where it lies among the messages without one.
    pub(super) value: Option<f64>,
}

impl PingSummary {
    /// Of what was measured.
    pub fn of(origin: Origin, planned: &PlannedFlows, result: &PingResult) -> Self {
        let flows = planned.flows.iter().zip(&result.flows);
        let found = causes(planned, result);
        Self {
            schema: Version,
            version: origin.version,
            commit: origin.commit,
            cpu_idle_disabled: origin.cpu_idle_disabled,
            flows: flows
                .map(|(planned, measured)| flow(planned, measured))
                .collect(),
            diagnoses: found.causes,
            notes: found.notes,
            not_evaluated: found.not_evaluated,
        }
    }
}

fn flow(planned: &Planned, measured: &FlowMeasured) -> FlowSummary {
    let of = |column: Column, none| numbers(values(measured, column), none);
    let (tally, spec) = (&measured.tally, &planned.spec);
    let none = Unanswered::default();
    let stages = measured
        .entries
        .shares()
        .map(|(set, entry, share)| StageSummary {
            stage: set.to_string(),
            merged: set.is_merged(),
            share,
            ns: numbers(&entry.values, none),
        });
    let last = measured.last;
    let is_tcp = last.is_some_and(|last| last.tcp_at_ack.or(last.tcp_at_send).is_some());
    let resent = Some(&measured.retransmissions).filter(|_| is_tcp);
    FlowSummary {
        target: spec.target.to_string(),
        address: spec.address.to_string(),
        reflector: spec.reflector,
        same_clock: planned.discovery.same_clock && measured.backends.may_share_our_clock(),
        backends: measured.backends.several(),
        interval_ns: spec.schedule.interval,
        request_bytes: spec.request_size,
        response_bytes: spec.response_size,
        tally: *tally,
        answers: answer_counts(measured),
        refused: spec.target.kind().is_segment().then(|| measured.refused()),
        response_ns: of(Column::Response, tally.without_response()),
        service_ns: of(Column::Service, tally.without_service()),
        tcp_ns: of(Column::Tcp, none),
        network_ns: of(Column::Network, none),
        network_and_peer_ns: of(Column::NetworkAndPeer, none),
        retransmissions: resent.map(|resent| resent.all),
        spurious_retransmissions: resent.map(|resent| resent.spurious),
        stages: stages.collect(),
    }
}

fn numbers(values: &RunningSummary, none: Unanswered) -> Option<NumbersDocument> {
    if values.n() == 0 {
        return None;
    }
    let above = usize::try_from(none.count()).unwrap_or(usize::MAX);
    let [p50, p90, p99, p999] = values.quantiles(above, [0.5, 0.9, 0.99, 0.999]);
    // Without an interval: neighbouring messages are not independent, and nothing here knows by how much.
    let at = |quantile: Result<Quantile, StatsError>| {
        let value = quantile.ok()?.value().number();
        Some(QuantileDocument { value })
    };
    Some(NumbersDocument {
        n: values.n(),
        without_value: above,
        without_value_is: (above > 0).then(|| none.word()),
        quantiles_exact: values.is_exact(),
        mean: values.mean(),
        sd: values.sd(),
        min: values.least(),
        max: values.greatest(),
        p50: at(p50),
        p90: at(p90),
        p99: at(p99),
        p999: at(p999),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_messages_without_a_value_are_stands_beside_their_number() {
        let mut values = RunningSummary::default();
        for value in [1.0, 2.0, 3.0] {
            values.add(value).expect("finite");
        }
        let not_sent = Unanswered {
            not_sent: 4,
            ..Unanswered::default()
        };
        let found = numbers(&values, not_sent).expect("there are values");
        assert_eq!(found.without_value, 4);
        assert_eq!(found.without_value_is, Some("not sent"));
        let p50 = found.p50.map(|quantile| quantile.value);
        assert!(
            p50.is_none_or(|value| value.is_none()),
            "it falls among them"
        );
        let all = numbers(&values, Unanswered::default()).expect("there are values");
        assert_eq!(all.without_value_is, None);
    }
}
