//! A message in flight, as small as possible, and the message that is reported from it.

use neph_model::{
    FleetMessage, FleetOutcome, FleetReply, Instant, Local, PeerReport, ReadBy, Slot, Span,
    SynAnswer, Wall,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is decided yet.
    Out,
    /// Decided, and waits for earlier ones of its slot.
    Done,
    Reported,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) sent: Instant<Local>,
    /// The time that the request carries, where it carries one.
    pub(super) wall: Wall,
    pub(super) late: Span,
    pub(super) departed: Option<Instant<Local>>,
    pub(super) reply: Option<Arrival>,
    pub(super) seq: u32,
    pub(super) port: u16,
    pub(super) stage: Stage,
    pub(super) decision: Decision,
}

/// The decision about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Its reply counts, if it has one.
    Open,
    /// Its timeout passed; a reply that comes afterwards is late.
    Lost,
    /// It never left.
    Failed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant<Local>,
    pub(super) by: ReadBy,
    pub(super) peer_report: Option<PeerReport>,
    pub(super) ttl: Option<u8>,
    pub(super) copies: u8,
    pub(super) answer: Option<SynAnswer>,
}

/// A request is never at the peer for longer than its round trip. If the peer reports that, its clock was set
/// or it lies, and its data about the message is ignored.
pub(super) fn message_of(slot: Slot, pending: &Pending) -> FleetMessage {
    let sent = pending.departed.unwrap_or(pending.sent);
    let outcome = match (pending.decision, &pending.reply) {
        (Decision::Failed, _) => FleetOutcome::Failed,
        (Decision::Lost, _) | (Decision::Open, None) => FleetOutcome::Lost,
        (Decision::Open, Some(arrival)) => FleetOutcome::Reply(FleetReply {
            round_trip: arrival.at - sent,
            read_by: match (pending.departed, arrival.by) {
                (Some(_), by) => by,
                (None, _) => ReadBy::Program,
            },
            peer_report: arrival
                .peer_report
                .filter(|peer| (Span::ZERO..=arrival.at - sent).contains(&peer.residence)),
            ttl: arrival.ttl,
            copies: arrival.copies,
            answer: arrival.answer,
        }),
    };
    FleetMessage {
        slot,
        source_port: pending.port,
        seq: pending.seq,
        sent,
        late: pending.late,
        outcome,
    }
}

/// Whether the peer's times were excluded as impossible.
pub(super) fn is_implausible(pending: &Pending, message: &FleetMessage) -> bool {
    let reply = message.reply();
    let claimed = pending
        .reply
        .as_ref()
        .is_some_and(|arrival| arrival.peer_report.is_some());
    claimed && reply.is_some_and(|reply| reply.peer_report.is_none())
}

/// Whether a reply repeats the time of this request, within the resolution of the protocol's time format.
pub(super) fn is_repeated(pending: &Pending, repeated: Wall) -> bool {
    pending.wall.unix_nanos().abs_diff(repeated.unix_nanos()) <= 1
}

pub(super) fn is_unstamped(message: &FleetMessage) -> bool {
    message
        .reply()
        .is_some_and(|reply| reply.read_by == ReadBy::Program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_processing_time_above_the_rtt_is_discarded() {
        let reported_of = |residence| {
            let reply = Arrival {
                at: Instant::from_nanos(1_000),
                by: ReadBy::Kernel,
                peer_report: Some(PeerReport {
                    rx: Instant::from_nanos(7),
                    residence: Span::from_nanos(residence),
                    count: None,
                    ttl: None,
                }),
                ttl: None,
                copies: 0,
                answer: None,
            };
            let pending = Pending {
                sent: Instant::from_nanos(0),
                wall: Wall::from_unix_nanos(0),
                late: Span::ZERO,
                departed: Some(Instant::from_nanos(400)),
                reply: Some(reply),
                seq: 0,
                port: 1,
                stage: Stage::Done,
                decision: Decision::Open,
            };
            message_of(Slot(0), &pending)
                .reply()
                .map(FleetReply::network)
        };
        assert_eq!(reported_of(600), Some(Span::ZERO));
        assert_eq!(reported_of(601), Some(Span::from_nanos(600)));
        assert_eq!(reported_of(-1), Some(Span::from_nanos(600)));
        assert_eq!(reported_of(i64::MAX), Some(Span::from_nanos(600)));
    }
}
