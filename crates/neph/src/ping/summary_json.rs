//! The summary as JSON: the numbers that the text rounds.

use neph_model::Unanswered;
use neph_stats::{Quantile, RunningSummary, StatsError};
use serde_json::{Map, Value, json};

use super::answers::answer_counts;
use super::causes::causes;
use super::columns::Column;
use super::flows::{Found, Planned};
use super::summary::values;
use super::watch::{Everything, Watched};
use crate::{awake, version};

/// The summary as JSON.
pub(super) fn json(found: &Found, watched: &Everything) -> Map<String, Value> {
    let flows: Vec<Value> = found
        .flows
        .iter()
        .zip(&watched.flows)
        .map(|(planned, watched)| flow_json(planned, watched))
        .collect();
    let told = causes(found, watched);
    let members = [
        ("type", json!("summary")),
        ("version", json!(version::VERSION)),
        ("commit", json!(version::COMMIT)),
        ("cores_awake", json!(awake::is_kept())),
        ("flows", flows.into()),
        ("diagnoses", json!(told.causes)),
        ("notes", json!(told.notes)),
        ("blind", json!(told.blind)),
    ];
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn flow_json(planned: &Planned, watched: &Watched) -> Value {
    let numbers = |column: Column, none| numbers(values(watched, column), none);
    let tally = &watched.tally;
    let none = Unanswered::default();
    let stages: Vec<Value> = watched
        .entries
        .shares()
        .map(|(set, entry, share)| {
            json!({
                "stage": set.to_string(),
                "merged": set.is_merged(),
                "share": share,
                "ns": self::numbers(&entry.values, none),
            })
        })
        .collect();
    let is_tcp = watched
        .last
        .is_some_and(|last| last.tcp_at_ack.or(last.tcp_at_send).is_some());
    let resent = Some(&watched.retransmissions).filter(|_| is_tcp);
    json!({
        "target": planned.spec.target.to_string(),
        "address": planned.spec.address.to_string(),
        "reflector": planned.spec.reflector,
        "same_clock": planned.discovery.same_clock && watched.backends.may_share_our_clock(),
        "backends": watched.backends.several(),
        "interval_ns": planned.spec.schedule.interval.nanos(),
        "request_bytes": planned.spec.request_size,
        "response_bytes": planned.spec.response_size,
        "tally": watched.tally,
        "answers": answer_counts(watched),
        "refused": planned.spec.target.kind().is_segment().then(|| watched.refused()),
        "response_ns": numbers(Column::Response, tally.without_response()),
        "service_ns": numbers(Column::Service, tally.without_service()),
        "tcp_ns": numbers(Column::Tcp, none),
        "network_ns": numbers(Column::Network, none),
        "network_and_peer_ns": numbers(Column::NetworkAndPeer, none),
        "retransmissions": resent.map(|resent| resent.all),
        "spurious_retransmissions": resent.map(|resent| resent.spurious),
        "stages": stages,
    })
}

fn numbers(values: &RunningSummary, none: Unanswered) -> Value {
    if values.n() == 0 {
        return Value::Null;
    }
    let above = usize::try_from(none.count()).unwrap_or(usize::MAX);
    let [p50, p90, p99, p999] = values.quantiles(above, [0.5, 0.9, 0.99, 0.999]);
    // Without an interval: neighbouring messages are not independent, and nothing here knows by how much.
    let at = |quantile: Result<Quantile, StatsError>| {
        let value = quantile.ok().map(|quantile| quantile.value().number());
        value.map(|value| json!({ "value": value }))
    };
    json!({
        "n": values.n(), "without_value": above,
        "without_value_is": (above > 0).then(|| none.word()), "quantiles_exact": values.is_exact(),
        "mean": values.mean(), "sd": values.sd(), "min": values.least(), "max": values.greatest(),
        "p50": at(p50), "p90": at(p90), "p99": at(p99), "p999": at(p999),
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
        let told = numbers(&values, not_sent);
        assert_eq!(told["without_value"], 4);
        assert_eq!(told["without_value_is"], "not sent");
        assert_eq!(told["p50"]["value"], Value::Null, "it falls among them");
        let all = numbers(&values, Unanswered::default());
        assert_eq!(all["without_value_is"], Value::Null);
    }
}
