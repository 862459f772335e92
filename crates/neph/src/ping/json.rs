//! Messages, events and summaries as JSON; messages as CSV. Times are integers of nanoseconds.

use neph_model::{Anchor, Instant, Marks, Message, Own, Peer, TcpState};
use neph_text::csv_field;
use serde_json::{Map, Value, json};

use super::flows::Planned;

/// One message.
pub(super) fn message(planned: &Planned, message: &Message, anchor: Option<Anchor<Own>>) -> Value {
    let mut value = Map::new();
    value.insert("type".into(), "message".into());
    value.insert("flow".into(), planned.spec.name.clone().into());
    value.insert("seq".into(), message.seq.0.into());
    value.insert("outcome".into(), message.outcome.name().into());
    if let Some(answer) = message.answer {
        value.insert("answer".into(), answer.name().into());
    }
    if let Some(anchor) = anchor {
        let wall = anchor.to_wall(message.marks.intended).unix_nanos();
        value.insert("intended_unix_ns".into(), wall.into());
    }
    if let Some(ledger) = message.ledger() {
        value.insert("response_ns".into(), ledger.response_time().nanos().into());
        value.insert("service_ns".into(), ledger.service_time().nanos().into());
        let span = |span: Option<neph_model::Span>| span.map(neph_model::Span::nanos);
        value.insert("tcp_ns".into(), span(message.marks.tcp_round_trip()).into());
        value.insert(
            "network_ns".into(),
            span(message.marks.network_round_trip()).into(),
        );
        value.insert(
            "network_and_peer_ns".into(),
            span(message.marks.network_and_peer_round_trip()).into(),
        );
        let stages: Vec<Value> = ledger
            .entries()
            .iter()
            .map(|entry| {
                let names: Vec<&str> = entry.stages.iter().map(neph_model::Stage::name).collect();
                json!({ "stages": names, "ns": entry.time().nanos() })
            })
            .collect();
        value.insert("ledger".into(), stages.into());
    }
    value.insert("marks".into(), marks(&message.marks));
    value.insert("connection".into(), message.connection.into());
    value.insert("duplicates".into(), message.duplicates.into());
    value.insert("reordered".into(), message.reordered.into());
    value.insert("tcp_at_send".into(), tcp(message.tcp_at_send));
    value.insert("tcp_at_ack".into(), tcp(message.tcp_at_ack));
    Value::Object(value)
}

fn tcp(state: Option<TcpState>) -> Value {
    state.map_or(Value::Null, |state| {
        json!({
            "cwnd_segments": state.cwnd,
            "ssthresh_segments": state.ssthresh,
            "srtt_us": state.srtt_us,
            "min_rtt_us": state.min_rtt_us,
            "retransmissions": state.retransmissions,
            "spurious_retransmissions": state.spurious_retransmissions(),
            "delivery_rate_bytes_per_second": state.delivery_rate,
        })
    })
}

/// Each mark's name and its time, on its own side's clock.
fn each_mark(marks: &Marks) -> [(&'static str, Option<i64>); 14] {
    let own = |at: Option<Instant<Own>>| at.map(Instant::nanos);
    let peer = |at: Option<Instant<Peer>>| at.map(Instant::nanos);
    [
        ("intended_ns", Some(marks.intended.nanos())),
        ("dialled_ns", own(marks.dialled)),
        ("connected_ns", own(marks.connected)),
        ("opened_ns", own(marks.opened)),
        ("app_send_ns", own(marks.app_send)),
        ("queued_ns", own(marks.queued)),
        ("nic_tx_ns", own(marks.nic_tx)),
        ("acked_ns", own(marks.acked)),
        ("peer_rx_ns", peer(marks.peer.rx)),
        ("peer_app_rx_ns", peer(marks.peer.app_rx)),
        ("peer_app_tx_ns", peer(marks.peer.app_tx)),
        ("peer_nic_tx_ns", peer(marks.peer.nic_tx)),
        ("nic_rx_ns", own(marks.nic_rx)),
        ("app_recv_ns", own(marks.app_recv)),
    ]
}

fn marks(marks: &Marks) -> Value {
    let pairs = each_mark(marks)
        .into_iter()
        .map(|(name, at)| (name.to_owned(), at.into()));
    Value::Object(pairs.collect())
}

/// The first line of the CSV form.
pub(super) fn csv_heading() -> String {
    let empty = Marks::intended_at(Instant::from_nanos(0));
    let marks: Vec<&str> = each_mark(&empty).iter().map(|(name, _)| *name).collect();
    format!(
        "flow,seq,outcome,response_ns,service_ns,tcp_ns,network_ns,{},connection,duplicates,reordered,cwnd_segments,retransmissions,answer,network_and_peer_ns,spurious_retransmissions",
        marks.join(",")
    )
}

/// One message as a line of CSV; what is absent is empty.
pub(super) fn csv(planned: &Planned, message: &Message) -> String {
    let text = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
    let ledger = message.ledger();
    let mut cells = vec![
        csv_field(&planned.spec.name).into_owned(),
        message.seq.to_string(),
        message.outcome.name().to_owned(),
        text(ledger.map(|ledger| ledger.response_time().nanos())),
        text(ledger.map(|ledger| ledger.service_time().nanos())),
        text(message.marks.tcp_round_trip().map(neph_model::Span::nanos)),
        text(
            message
                .marks
                .network_round_trip()
                .map(neph_model::Span::nanos),
        ),
    ];
    cells.extend(
        each_mark(&message.marks)
            .into_iter()
            .map(|(_, at)| text(at)),
    );
    cells.push(message.connection.to_string());
    cells.push(message.duplicates.to_string());
    cells.push(message.reordered.to_string());
    let state = message.tcp_at_send;
    cells.push(text(state.map(|state| i64::from(state.cwnd))));
    cells.push(text(state.map(|state| i64::from(state.retransmissions))));
    cells.push(
        message
            .answer
            .map_or_else(String::new, |answer| answer.name().into_owned()),
    );
    let both = message.marks.network_and_peer_round_trip();
    cells.push(text(both.map(neph_model::Span::nanos)));
    cells.push(text(
        state.map(|state| i64::from(state.spurious_retransmissions())),
    ));
    cells.join(",")
}
