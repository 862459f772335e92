//! The table of a fleet's columns.

use neph_model::{
    FleetMessage, FleetOutcome, FleetReply, Instant, PeerReport, ReadBy, Slot, Span, SynAnswer,
};

use crate::columns::{Cells, Column, Row, optional, required};

const NO_REPLY_YET: FleetReply = FleetReply {
    round_trip: Span::from_nanos(0),
    read_by: ReadBy::Kernel,
    peer_report: None,
    ttl: None,
    copies: 0,
    answer: None,
};

impl Row for FleetMessage {
    const ROW_NAME: &'static str = "fleet_message";
    const COLUMNS: &'static [Column<Self>] = COLUMNS;

    fn blank() -> Self {
        Self {
            slot: Slot(0),
            source_port: 0,
            seq: 0,
            sent: Instant::from_nanos(0),
            late: Span::from_nanos(0),
            outcome: FleetOutcome::Failed,
        }
    }
}

const fn outcome_name(message: &FleetMessage) -> &'static str {
    match message.outcome {
        FleetOutcome::Reply(_) => "reply",
        FleetOutcome::Lost => "lost",
        FleetOutcome::Failed => "failed",
    }
}

fn put_outcome(message: &mut FleetMessage, name: &str) -> bool {
    message.outcome = match name {
        "reply" => FleetOutcome::Reply(NO_REPLY_YET),
        "lost" => FleetOutcome::Lost,
        "failed" => FleetOutcome::Failed,
        _ => return false,
    };
    true
}

const fn read_by_name(reader: ReadBy) -> &'static str {
    match reader {
        ReadBy::Kernel => "kernel",
        ReadBy::Program => "program",
    }
}

fn put_read_by(message: &mut FleetMessage, name: &str) -> bool {
    let reader = [ReadBy::Kernel, ReadBy::Program]
        .into_iter()
        .find(|reader| read_by_name(*reader) == name);
    change_reply(message, |reply| {
        reply.read_by = reader.unwrap_or(reply.read_by);
    });
    reader.is_some()
}

fn put_answer(message: &mut FleetMessage, name: &str) -> bool {
    let answer = SynAnswer::from_name(name);
    change_reply(message, |reply| reply.answer = answer);
    answer.is_some()
}

/// Changes the reply; ignores a value of a message without a reply.
fn change_reply(message: &mut FleetMessage, change: impl FnOnce(&mut FleetReply)) {
    if let FleetOutcome::Reply(reply) = &mut message.outcome {
        change(reply);
    }
}

fn change_peer_report(message: &mut FleetMessage, change: impl FnOnce(&mut PeerReport)) {
    change_reply(message, |reply| {
        change(reply.peer_report.get_or_insert(PeerReport {
            rx: Instant::from_nanos(0),
            residence: Span::from_nanos(0),
            count: None,
            ttl: None,
        }));
    });
}

fn peer_report(message: &FleetMessage) -> Option<PeerReport> {
    message.reply()?.peer_report
}

/// Stored values do not exceed 255.
fn saturate_to_u8(value: u32) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

/// All columns. The outcome comes before the columns of a reply.
const COLUMNS: &[Column<FleetMessage>] = &[
    required(
        "slot",
        Cells::<FleetMessage>::Unsigned32(|m| Some(m.slot.0), |m, value| m.slot = Slot(value)),
    )
    .with_old_name("lane"),
    required(
        "source_port",
        Cells::Unsigned32(
            |m| Some(u32::from(m.source_port)),
            |m, value| m.source_port = u16::try_from(value).unwrap_or(u16::MAX),
        ),
    ),
    required(
        "seq",
        Cells::Unsigned32(|m| Some(m.seq), |m, value| m.seq = value),
    ),
    required(
        "sent_ns",
        Cells::Nanos(
            |m| Some(m.sent.nanos()),
            |m, nanos| m.sent = Instant::from_nanos(nanos),
        ),
    ),
    required(
        "late_ns",
        Cells::Nanos(
            |m| Some(m.late.nanos()),
            |m, nanos| m.late = Span::from_nanos(nanos),
        ),
    ),
    required(
        "outcome",
        Cells::Word(|m| Some(outcome_name(m).into()), put_outcome),
    ),
    optional(
        "round_trip_ns",
        Cells::Nanos(
            |m| Some(m.reply()?.round_trip.nanos()),
            |m, nanos| change_reply(m, |reply| reply.round_trip = Span::from_nanos(nanos)),
        ),
    ),
    optional(
        "read_by",
        Cells::Word(
            |m| Some(read_by_name(m.reply()?.read_by).into()),
            put_read_by,
        ),
    ),
    optional(
        "peer_rx_ns",
        Cells::Nanos(
            |m| Some(peer_report(m)?.rx.nanos()),
            |m, nanos| change_peer_report(m, |peer| peer.rx = Instant::from_nanos(nanos)),
        ),
    ),
    optional(
        "residence_ns",
        Cells::Nanos(
            |m| Some(peer_report(m)?.residence.nanos()),
            |m, nanos| change_peer_report(m, |peer| peer.residence = Span::from_nanos(nanos)),
        ),
    ),
    optional(
        "peer_count",
        Cells::Unsigned32(
            |m| peer_report(m)?.count,
            |m, value| change_peer_report(m, |peer| peer.count = Some(value)),
        ),
    ),
    optional(
        "peer_ttl",
        Cells::Unsigned32(
            |m| peer_report(m)?.ttl.map(u32::from),
            |m, value| change_peer_report(m, |peer| peer.ttl = Some(saturate_to_u8(value))),
        ),
    ),
    optional(
        "ttl",
        Cells::Unsigned32(
            |m| m.reply()?.ttl.map(u32::from),
            |m, value| change_reply(m, |reply| reply.ttl = Some(saturate_to_u8(value))),
        ),
    ),
    optional(
        "copies",
        Cells::Unsigned32(
            |m| Some(u32::from(m.reply()?.copies)),
            |m, value| change_reply(m, |reply| reply.copies = saturate_to_u8(value)),
        ),
    ),
    optional(
        "answer",
        Cells::Word(|m| Some(m.reply()?.answer?.name().into()), put_answer),
    ),
];
