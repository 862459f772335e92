//! Messages as CSV lines. Times are integer nanoseconds; an absent value is empty.

use neph_model::{Instant, Local, Marks, Message, Peer};
use neph_text::csv_field;

use super::PlannedFlow;

/// Each timestamp's name and its time, on its own side's clock.
fn each_timestamp(timestamps: &Marks) -> [(&'static str, Option<i64>); 14] {
    let local_nanos = |time: Option<Instant<Local>>| time.map(Instant::nanos);
    let peer_nanos = |time: Option<Instant<Peer>>| time.map(Instant::nanos);
    [
        ("intended_ns", Some(timestamps.intended.nanos())),
        ("dialled_ns", local_nanos(timestamps.dialled)),
        ("connected_ns", local_nanos(timestamps.connected)),
        ("opened_ns", local_nanos(timestamps.opened)),
        ("app_send_ns", local_nanos(timestamps.app_send)),
        ("queued_ns", local_nanos(timestamps.queued)),
        ("nic_tx_ns", local_nanos(timestamps.nic_tx)),
        ("acked_ns", local_nanos(timestamps.acked)),
        ("peer_rx_ns", peer_nanos(timestamps.peer.rx)),
        ("peer_app_rx_ns", peer_nanos(timestamps.peer.app_rx)),
        ("peer_app_tx_ns", peer_nanos(timestamps.peer.app_tx)),
        ("peer_nic_tx_ns", peer_nanos(timestamps.peer.nic_tx)),
        ("nic_rx_ns", local_nanos(timestamps.nic_rx)),
        ("app_recv_ns", local_nanos(timestamps.app_recv)),
    ]
}

/// The header of the CSV form.
pub fn csv_heading() -> String {
    let empty = Marks::intended_at(Instant::from_nanos(0));
    let names: Vec<&str> = each_timestamp(&empty)
        .iter()
        .map(|(name, _)| *name)
        .collect();
    format!(
        "flow,seq,outcome,response_ns,service_ns,tcp_ns,network_ns,{},connection,duplicates,reordered,cwnd_segments,retransmissions,answer,network_and_peer_ns,spurious_retransmissions",
        names.join(",")
    )
}

/// A message as a CSV line; an absent value is empty.
pub fn message_csv(planned: &PlannedFlow, message: &Message) -> String {
    let optional_text =
        |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
    let ledger = message.ledger();
    let mut cells = vec![
        csv_field(&planned.spec.name).into_owned(),
        message.seq.to_string(),
        message.outcome.name().to_owned(),
        optional_text(ledger.map(|ledger| ledger.response_time().nanos())),
        optional_text(ledger.map(|ledger| ledger.service_time().nanos())),
        optional_text(message.marks.tcp_round_trip().map(neph_model::Span::nanos)),
        optional_text(
            message
                .marks
                .network_round_trip()
                .map(neph_model::Span::nanos),
        ),
    ];
    cells.extend(
        each_timestamp(&message.marks)
            .into_iter()
            .map(|(_, at)| optional_text(at)),
    );
    cells.push(message.connection.to_string());
    cells.push(message.duplicates.to_string());
    cells.push(message.reordered.to_string());
    let state = message.tcp_at_send;
    cells.push(optional_text(state.map(|state| i64::from(state.cwnd))));
    cells.push(optional_text(
        state.map(|state| i64::from(state.retransmissions)),
    ));
    cells.push(
        message
            .answer
            .map_or_else(String::new, |answer| answer.name().into_owned()),
    );
    let network_and_peer = message.marks.network_and_peer_round_trip();
    cells.push(optional_text(network_and_peer.map(neph_model::Span::nanos)));
    cells.push(optional_text(
        state.map(|state| i64::from(state.spurious_retransmissions())),
    ));
    cells.join(",")
}
