//! Converts a line of a file to a message, and builds the provenance.

use neph_model::{
    Experiment, FlowIndex, HostFacts, Instant, Marks, Message, Outcome, Provenance, Seq,
};

use super::ping::Ping;
use super::raw::{RawFile, RawMessage};

/// The files have no schedule: the intended time is the send time. The server's timestamp is
/// wall-clock time. It is stored relative to the experiment's start with that start as the offset,
/// so it reads back exactly.
pub(super) fn raw_message(seq: u64, raw: &RawMessage, started_unix_ns: i64) -> Message {
    let sent = Instant::from_nanos(raw.sent_unix_ns - started_unix_ns);
    let mut marks = Marks::intended_at(sent);
    marks.app_send = Some(sent);
    // tshark timestamps a segment when the kernel passes it to the interface.
    let instant = |unix_ns: i64| Instant::from_nanos(unix_ns - started_unix_ns);
    let acknowledgement = raw.acknowledgement;
    marks.nic_tx = acknowledgement.map(|segment| instant(segment.sent_unix_ns));
    marks.acked = acknowledgement.map(|segment| instant(segment.acknowledged_unix_ns));
    marks.peer.app_rx = raw
        .server_unix_ns
        .map(|unix_ns| Instant::from_nanos(unix_ns - started_unix_ns));
    marks.app_recv = Some(Instant::from_nanos(raw.received_unix_ns - started_unix_ns));
    let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
    message.outcome = Outcome::Reply;
    message.peer_wall_offset = raw.server_unix_ns.map(|_| started_unix_ns);
    message.reordered = raw.reordered;
    message
}

pub(super) fn ping_message(
    flow: FlowIndex,
    seq: Seq,
    ping: &Ping,
    started_unix_ns: i64,
) -> Message {
    let intended = Instant::from_nanos(ping.intended_unix_ns - started_unix_ns);
    let mut marks = Marks::intended_at(intended);
    let received = ping
        .received_unix_ns
        .map(|unix_ns| Instant::from_nanos(unix_ns - started_unix_ns));
    marks.app_send = received.map(|_| intended);
    marks.app_recv = received;
    let mut message = Message::new(flow, seq, marks);
    message.outcome = received.map_or(Outcome::Lost, |_| Outcome::Reply);
    message.duplicates = ping.duplicates;
    message
}

pub(super) fn provenance(experiment: &Experiment, file: &RawFile, plan_hash: &str) -> Provenance {
    Provenance {
        experiment: experiment.id,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: String::new(),
        plan_hash: plan_hash.to_owned(),
        site: None,
        host: HostFacts {
            host: format!("unknown (imported from {})", file.path.display()),
            ..HostFacts::default()
        },
        load: None,
        lateness_p50: None,
        lateness_p99: None,
    }
}
