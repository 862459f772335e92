//! Classification of segments other than the next one: retransmitted, out of order, duplicate
//! acknowledgement.
//!
//! Tests in the order of Wireshark's analysis, so that results can be compared. A timestamp option is more
//! reliable than a time, so it decides where there is one (docs/passive.md).

use std::cmp::Ordering;

use neph_model::Wall;

use super::event::Event;
use super::numbers::{Nanos, Number};
use super::sender::{RequestState, Sender};
use super::{Segment, Side, Sink};

/// A retransmission within this many nanoseconds of the third duplicate acknowledgement was requested by it.
const MAX_FAST_DELAY_NANOS: i64 = 20_000_000;
/// Without timestamps and handshake: a segment this soon after its successor was reordered.
const MAX_REORDERING_NANOS: i64 = 3_000_000;

/// No stack's retransmission timer is shorter (FreeBSD 30 ms, Linux 200 ms).
const MIN_TIMER_NANOS: i64 = 25_000_000;

/// Classifies `segment`, sent by `side`, and counts what it repeats. Returns its event by its numbers.
pub(super) fn classify_segment(
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
    let acks_unseen_data = segment
        .ack
        .zip(receiver.number(Number::Next))
        .is_some_and(|(ack, next)| ack.is_after(next));
    if let Some(ack) = segment.ack.filter(|_| acks_unseen_data) {
        report(Event::AcknowledgedUnseen);
        receiver.numbers.set(Number::Next, ack);
        receiver.request_state = RequestState::Unclear;
    }
    let event = classify_by_number(at, segment, sender, receiver);
    if let Some(event) = event {
        report(event);
    }
    if is_duplicate_acknowledgement(segment, sender, receiver) {
        sender.duplicate_acks += 1;
        sender.last_duplicate_ack_at = Nanos::at(at);
        receiver.record_gap_report();
        report(Event::RepeatedAcknowledgement);
    } else if segment.ack != sender.number(Number::LatestAck) {
        sender.duplicate_acks = 0;
        receiver.forget_filled_gaps();
    }
    if let Some(ack) = segment.ack {
        sender.numbers.set(Number::LatestAck, ack);
    }
    sender.window = Some(segment.window);
    event
}

/// Classifies by sequence numbers.
fn classify_by_number(
    at: Wall,
    segment: &Segment,
    sender: &Sender,
    receiver: &Sender,
) -> Option<Event> {
    let next = sender.number(Number::Next)?;
    let distance = segment.seq.since(next);
    if distance > 0 {
        return (!segment.is_reset()).then_some(Event::Gap);
    }
    if segment.is_ordinary() && segment.length <= 1 {
        if distance == 0 && segment.length == 1 && receiver.window == Some(0) {
            return Some(Event::WindowProbe);
        }
        if distance == -1 {
            return Some(Event::KeepAlive);
        }
    }
    if distance == 0 || segment.sequence_length() == 0 {
        return None;
    }
    Some(classify_earlier_data(at, segment, sender, receiver))
}

/// Classifies a segment with data that was sent before, or should have been.
fn classify_earlier_data(at: Wall, segment: &Segment, sender: &Sender, receiver: &Sender) -> Event {
    if sender
        .number(Number::Acked)
        .is_some_and(|acked| !segment.end().is_after(acked))
    {
        return Event::SpuriousRetransmission;
    }
    let elapsed_since = |since: Wall| at.unix_nanos().saturating_sub(since.unix_nanos());
    let is_requested =
        receiver.duplicate_acks >= 2 && sender.number(Number::Acked) == Some(segment.seq);
    let is_fast = is_requested
        && receiver
            .last_duplicate_ack_at
            .wall()
            .is_some_and(|last| elapsed_since(last) < MAX_FAST_DELAY_NANOS);
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
    let (order, next_passed_at) = sender.compare_with_later_segments(segment);
    match order {
        Some(Ordering::Less) => return Event::OutOfOrder,
        Some(Ordering::Greater) => return event,
        Some(Ordering::Equal) | None => {}
    }
    let nanos_since_next = next_passed_at.map_or(i64::MAX, elapsed_since);
    let is_soon = nanos_since_next < min_retransmission_delay(segment, sender, receiver);
    if !is_requested && is_soon && sender.number(Number::Next) != Some(segment.end()) {
        return Event::OutOfOrder;
    }
    event
}

/// No retransmission comes sooner than this. A loss is not known within less than a round trip between the
/// ends (3/4 of it, as it may be shorter than any before). Without a report of the receiver, a timer must
/// end.
fn min_retransmission_delay(segment: &Segment, sender: &Sender, receiver: &Sender) -> i64 {
    let round_trips = sender.min_rtt.get().zip(receiver.min_rtt.get());
    let limit = round_trips.map_or(MAX_REORDERING_NANOS, |(forward, reverse)| {
        forward.saturating_add(reverse) / 4 * 3
    });
    let is_reported =
        sender.is_in_reported_gap(segment) || sender.number(Number::Acked) == Some(segment.seq);
    if is_reported {
        limit
    } else {
        limit.max(MIN_TIMER_NANOS)
    }
}

/// An acknowledgement that equals the last and the highest one, with nothing else (RFC 5681, 2).
fn is_duplicate_acknowledgement(segment: &Segment, sender: &Sender, receiver: &Sender) -> bool {
    segment.is_ordinary()
        && segment.length == 0
        && segment.window != 0
        && sender.window == Some(segment.window)
        && sender.number(Number::Next) == Some(segment.seq)
        && segment.ack.is_some()
        && segment.ack == sender.number(Number::LatestAck)
        && segment.ack == receiver.number(Number::Acked)
        && has_unacknowledged_data(receiver)
}

/// Something is in flight that the acknowledgement may be for.
fn has_unacknowledged_data(receiver: &Sender) -> bool {
    let ends = receiver
        .number(Number::Next)
        .zip(receiver.number(Number::Acked));
    ends.is_some_and(|(next, acked)| next.is_after(acked))
}
