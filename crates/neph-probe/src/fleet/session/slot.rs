//! A message under way, as small as it can be, and the message that is told of it.

use neph_model::{
    AtPeer, FleetMessage, FleetOutcome, FleetReply, Instant, Lane, Own, ReadBy, Span, SynAnswer,
    Wall,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is decided yet.
    Out,
    /// Decided, and waits for earlier ones of its lane.
    Done,
    Told,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) sent: Instant<Own>,
    /// The time that the request carries, where it carries one.
    pub(super) wall: Wall,
    pub(super) late: Span,
    pub(super) departed: Option<Instant<Own>>,
    pub(super) reply: Option<Arrival>,
    pub(super) seq: u32,
    pub(super) port: u16,
    pub(super) stage: Stage,
    pub(super) fate: Fate,
}

/// What was decided of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its reply counts, if it has one.
    Open,
    /// Its timeout passed; a reply that comes afterwards is late.
    Lost,
    /// It never left.
    Failed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant<Own>,
    pub(super) by: ReadBy,
    pub(super) at_peer: Option<AtPeer>,
    pub(super) ttl: Option<u8>,
    pub(super) copies: u8,
    pub(super) answer: Option<SynAnswer>,
}

/// A request was not at the peer for longer than its round trip took: a peer that says so has set
/// its clock in between, or lies, and nothing that it tells of the message is believed.
pub(super) fn told(lane: Lane, slot: &Slot) -> FleetMessage {
    let sent = slot.departed.unwrap_or(slot.sent);
    let outcome = match (slot.fate, &slot.reply) {
        (Fate::Failed, _) => FleetOutcome::Failed,
        (Fate::Lost, _) | (Fate::Open, None) => FleetOutcome::Lost,
        (Fate::Open, Some(arrival)) => FleetOutcome::Reply(FleetReply {
            round_trip: arrival.at - sent,
            read_by: match (slot.departed, arrival.by) {
                (Some(_), by) => by,
                (None, _) => ReadBy::Program,
            },
            at_peer: arrival
                .at_peer
                .filter(|peer| (Span::ZERO..=arrival.at - sent).contains(&peer.residence)),
            ttl: arrival.ttl,
            copies: arrival.copies,
            answer: arrival.answer,
        }),
    };
    FleetMessage {
        lane,
        source_port: slot.port,
        seq: slot.seq,
        sent,
        late: slot.late,
        outcome,
    }
}

/// Whether the peer's times were left out, as they cannot be true.
pub(super) fn is_disbelieved(slot: &Slot, message: &FleetMessage) -> bool {
    let reply = message.reply();
    let claimed = slot.reply.as_ref().is_some_and(|one| one.at_peer.is_some());
    claimed && reply.is_some_and(|reply| reply.at_peer.is_none())
}

/// Whether a reply repeats the time of this request, as far as a protocol's own form of time tells.
pub(super) fn is_repeated(slot: &Slot, repeated: Wall) -> bool {
    slot.wall.unix_nanos().abs_diff(repeated.unix_nanos()) <= 1
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
    fn a_stay_at_the_peer_longer_than_the_round_trip_is_not_believed() {
        let told_of = |residence| {
            let reply = Arrival {
                at: Instant::from_nanos(1_000),
                by: ReadBy::Kernel,
                at_peer: Some(AtPeer {
                    rx: Instant::from_nanos(7),
                    residence: Span::from_nanos(residence),
                    count: None,
                    ttl: None,
                }),
                ttl: None,
                copies: 0,
                answer: None,
            };
            let slot = Slot {
                sent: Instant::from_nanos(0),
                wall: Wall::from_unix_nanos(0),
                late: Span::ZERO,
                departed: Some(Instant::from_nanos(400)),
                reply: Some(reply),
                seq: 0,
                port: 1,
                stage: Stage::Done,
                fate: Fate::Open,
            };
            told(Lane(0), &slot).reply().map(FleetReply::network)
        };
        assert_eq!(told_of(600), Some(Span::ZERO));
        assert_eq!(told_of(601), Some(Span::from_nanos(600)));
        assert_eq!(told_of(-1), Some(Span::from_nanos(600)));
        assert_eq!(told_of(i64::MAX), Some(Span::from_nanos(600)));
    }
}
