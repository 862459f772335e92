//! Classification of segments other than the next one: retransmitted, out of order, duplicate
//! acknowledgement.
//!
//! Tests in the order of Wireshark's analysis, so that results can be compared. A timestamp option is more
//! reliable than a time, so it decides where there is one (docs/passive.md).

use std::cmp::Ordering;

use neph_model::Wall;

use super::event::Event;
use super::half::{Sender, Turn};
use super::marks::{Mark, Nanos};
use super::{Segment, Side, Sink};

/// A retransmission within this many nanoseconds of the third duplicate acknowledgement was requested by it.
const FAST: i64 = 20_000_000;
/// Without timestamps and handshake: a segment this soon after its successor was reordered.
const OVERTAKING: i64 = 3_000_000;

/// No stack's retransmission timer is shorter (FreeBSD 30 ms, Linux 200 ms).
const TIMER: i64 = 25_000_000;

/// Classifies `segment`, sent by `side`, and counts what it repeats. Returns its event by its numbers.
pub(super) fn look(
    at: Wall,
    side: Side,
    segment: &Segment,
    (sender, receiver): (&mut Sender, &mut Sender),
    sink: &mut impl Sink,
) -> Option<Event> {
    let mut report = |event| sink.event(at, side, event);
    if segment.is_reset() {
        report(Event::Reset);
    }
    if segment.is_ordinary() && segment.window == 0 {
        report(Event::ZeroWindow);
    }
    let ahead = segment
        .ack
        .zip(receiver.mark(Mark::Next))
        .is_some_and(|(ack, next)| ack.is_after(next));
    if let Some(ack) = segment.ack.filter(|_| ahead) {
        report(Event::AcknowledgedUnseen);
        receiver.marks.set(Mark::Next, ack);
        receiver.turn = Turn::Unclear;
    }
    let placed = placed(at, segment, sender, receiver);
    if let Some(event) = placed {
        report(event);
    }
    if repeats(segment, sender, receiver) {
        sender.repeated += 1;
        sender.repeated_at = Nanos::at(at);
        receiver.gap_reported();
        report(Event::RepeatedAcknowledgement);
    } else if segment.ack != sender.mark(Mark::LatestAck) {
        sender.repeated = 0;
        receiver.forget_filled();
    }
    if let Some(ack) = segment.ack {
        sender.marks.set(Mark::LatestAck, ack);
    }
    sender.window = Some(segment.window);
    placed
}

/// Classifies by sequence numbers.
fn placed(at: Wall, segment: &Segment, sender: &Sender, receiver: &Sender) -> Option<Event> {
    let next = sender.mark(Mark::Next)?;
    let behind = segment.seq.since(next);
    if behind > 0 {
        return (!segment.is_reset()).then_some(Event::Gap);
    }
    if segment.is_ordinary() && segment.length <= 1 {
        if behind == 0 && segment.length == 1 && receiver.window == Some(0) {
            return Some(Event::WindowProbe);
        }
        if behind == -1 {
            return Some(Event::KeepAlive);
        }
    }
    if behind == 0 || segment.takes() == 0 {
        return None;
    }
    Some(sent_before(at, segment, sender, receiver))
}

/// Classifies a segment with data that was sent before, or should have been.
fn sent_before(at: Wall, segment: &Segment, sender: &Sender, receiver: &Sender) -> Event {
    if sender
        .mark(Mark::Acked)
        .is_some_and(|acked| !segment.end().is_after(acked))
    {
        return Event::SpuriousRetransmission;
    }
    let nanos = |since: Wall| at.unix_nanos().saturating_sub(since.unix_nanos());
    let asked_for = receiver.repeated >= 2 && sender.mark(Mark::Acked) == Some(segment.seq);
    let is_fast = asked_for
        && receiver
            .repeated_at
            .wall()
            .is_some_and(|last| nanos(last) < FAST);
    let event = if is_fast {
        Event::FastRetransmission
    } else {
        Event::Retransmission
    };
    if sender.passed_before(segment) {
        return event;
    }
    // A retransmission carries a new timestamp. A reordered segment carries an older one, or the same if the
    // clock has not ticked in between.
    let (order, passed) = sender.overtakers(segment);
    match order {
        Some(Ordering::Less) => return Event::OutOfOrder,
        Some(Ordering::Greater) => return event,
        Some(Ordering::Equal) | None => {}
    }
    let since_next = passed.map_or(i64::MAX, nanos);
    let is_soon = since_next < soon(segment, sender, receiver);
    if !asked_for && is_soon && sender.mark(Mark::Next) != Some(segment.end()) {
        return Event::OutOfOrder;
    }
    event
}

/// No retransmission comes sooner than this. A loss is not known within less than a round trip between the
/// ends (3/4 of it, as it may be shorter than any before). Without a report of the receiver, a timer must
/// end.
fn soon(segment: &Segment, sender: &Sender, receiver: &Sender) -> i64 {
    let round_trips = sender.floor.get().zip(receiver.floor.get());
    let limit = round_trips.map_or(OVERTAKING, |(forward, back)| {
        forward.saturating_add(back) / 4 * 3
    });
    let is_reported = sender.is_reported(segment) || sender.mark(Mark::Acked) == Some(segment.seq);
    if is_reported { limit } else { limit.max(TIMER) }
}

/// An acknowledgement that equals the last and the highest one, with nothing else (RFC 5681, 2).
fn repeats(segment: &Segment, sender: &Sender, receiver: &Sender) -> bool {
    segment.is_ordinary()
        && segment.length == 0
        && segment.window != 0
        && sender.window == Some(segment.window)
        && sender.mark(Mark::Next) == Some(segment.seq)
        && segment.ack.is_some()
        && segment.ack == sender.mark(Mark::LatestAck)
        && segment.ack == receiver.mark(Mark::Acked)
        && is_awaited(receiver)
}

/// Something is in flight that the acknowledgement may be for.
fn is_awaited(receiver: &Sender) -> bool {
    let ends = receiver.mark(Mark::Next).zip(receiver.mark(Mark::Acked));
    ends.is_some_and(|(next, acked)| next.is_after(acked))
}
