//! Messages as lines of CSV, and the flows as a table.

use neph_flows::FleetView;
use neph_model::{Fleet, FleetMessage, FleetOutcome, Local, ReadBy, Span, SynAnswer, WallCourse};
use neph_text::csv_field;

/// The header of the messages.
pub const HEADING: &str = "endpoint,slot,source_port,seq,sent_ns,sent_unix_ns,late_ns,outcome,\
round_trip_ns,network_ns,read_by,peer_rx_ns,residence_ns,peer_count,peer_ttl,ttl,copies,answer";

/// A message as a line; an absent value is empty.
pub fn line(fleet: &Fleet, message: &FleetMessage, clock: &WallCourse<Local>) -> String {
    let outcome = match message.outcome {
        FleetOutcome::Reply(_) => "reply",
        FleetOutcome::Lost => "lost",
        FleetOutcome::Failed => "failed",
    };
    let mut cells = vec![
        csv_field(&fleet.endpoints[fleet.endpoint_of(message.slot)].name).into_owned(),
        message.slot.0.to_string(),
        message.source_port.to_string(),
        message.seq.to_string(),
        message.sent.nanos().to_string(),
        value_or_empty(clock.unix_nanos(message.sent)),
        message.late.nanos().to_string(),
        outcome.to_owned(),
    ];
    let reply = message.reply();
    let peer = reply.and_then(|reply| reply.peer_report);
    cells.extend([
        value_or_empty(reply.map(|reply| reply.round_trip.nanos())),
        value_or_empty(reply.map(|reply| reply.network().nanos())),
        value_or_empty(reply.map(|reply| match reply.read_by {
            ReadBy::Kernel => "kernel",
            ReadBy::Program => "program",
        })),
        value_or_empty(peer.map(|peer| peer.rx.nanos())),
        value_or_empty(peer.map(|peer| peer.residence.nanos())),
        value_or_empty(peer.and_then(|peer| peer.count)),
        value_or_empty(peer.and_then(|peer| peer.ttl)),
        value_or_empty(reply.and_then(|reply| reply.ttl)),
        value_or_empty(reply.map(|reply| reply.copies)),
        value_or_empty(reply.and_then(|reply| reply.answer).map(SynAnswer::name)),
    ]);
    cells.join(",")
}

/// A row for each flow.
pub fn flows(view: &FleetView) -> String {
    let mut text = "endpoint,slot,source_port,base_ns,class,changes,replies,lost,failed,\
lost_forward,lost_reverse,duplicates,reordered_forward,reordered_reverse,reordered\n"
        .to_owned();
    for flow in &view.flows {
        let last_segment = flow.segments.last();
        let tally = &flow.tally;
        let mut cells = vec![
            csv_field(&view.fleet.endpoints[view.fleet.endpoint_of(flow.slot)].name).into_owned(),
            flow.slot.0.to_string(),
            flow.source_port.to_string(),
            value_or_empty(last_segment.map(|segment| Span::nanos(segment.base))),
            value_or_empty(
                last_segment
                    .and_then(|segment| segment.class)
                    .map(|class| class + 1),
            ),
            flow.segments.len().saturating_sub(1).to_string(),
        ];
        let counts = [
            tally.replies,
            tally.lost,
            tally.failed,
            tally.lost_forward,
            tally.lost_reverse,
            tally.copies,
            tally.reordered_forward,
            tally.reordered_reverse,
            tally.reordered,
        ];
        cells.extend(counts.map(|count| count.to_string()));
        text.push_str(&(cells.join(",") + "\n"));
    }
    text
}

fn value_or_empty(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
