//! What a segment is when it is not simply the next: sent again, out of order, said twice.
//!
//! Follows the order of tests of Wireshark's analysis, so that the two can be compared; where a time
//! stamp tells more surely than a time does, it decides (docs/passive.md).

use std::cmp::Ordering;

use neph_model::Wall;

use super::event::Event;
use super::half::{Sender, Turn};
use super::marks::{Mark, Nanos};
use super::{Segment, Side, Sink};

/// What is sent again so soon after the third like acknowledgement was asked for by it.
const FAST: i64 = 20_000_000;
/// Without time stamps and handshake: what comes so soon after what should follow it overtook it.
const OVERTAKING: i64 = 3_000_000;

/// No stack's retransmission timer is shorter (FreeBSD 30 ms, Linux 200 ms).
const TIMER: i64 = 25_000_000;

/// Tells what `segment`, sent by `side`, is, and counts what it repeats. Returns what it is by its
/// numbers.
pub(super) fn look(
    at: Wall,
    side: Side,
    segment: &Segment,
    (sender, receiver): (&mut Sender, &mut Sender),
    sink: &mut impl Sink,
) -> Option<Event> {
    let mut tell = |event| sink.event(at, side, event);
    if segment.is_reset() {
        tell(Event::Reset);
    }
    if segment.is_ordinary() && segment.window == 0 {
        tell(Event::ZeroWindow);
    }
    let ahead = segment
        .ack
        .zip(receiver.mark(Mark::Next))
        .is_some_and(|(ack, next)| ack.is_after(next));
    if let Some(ack) = segment.ack.filter(|_| ahead) {
        tell(Event::AcknowledgedUnseen);
        receiver.marks.set(Mark::Next, ack);
        receiver.turn = Turn::Unclear;
    }
    let placed = placed(at, segment, sender, receiver);
    if let Some(event) = placed {
        tell(event);
    }
    if repeats(segment, sender, receiver) {
        sender.repeated += 1;
        sender.repeated_at = Nanos::at(at);
        receiver.gap_told();
        tell(Event::RepeatedAcknowledgement);
    } else if segment.ack != sender.mark(Mark::Said) {
        sender.repeated = 0;
        receiver.forget_filled();
    }
    if let Some(ack) = segment.ack {
        sender.marks.set(Mark::Said, ack);
    }
    sender.window = Some(segment.window);
    placed
}

/// By its numbers.
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

/// It holds what was sent before, or should have been.
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
    let again = if is_fast {
        Event::FastRetransmission
    } else {
        Event::Retransmission
    };
    if sender.passed_before(segment) {
        return again;
    }
    // A segment that was sent again carries the time of that; one that was overtaken an older one,
    // or the same where the clock has not ticked in between.
    let (order, passed) = sender.overtakers(segment);
    match order {
        Some(Ordering::Less) => return Event::OutOfOrder,
        Some(Ordering::Greater) => return again,
        Some(Ordering::Equal) | None => {}
    }
    let since_next = passed.map_or(i64::MAX, nanos);
    let is_soon = since_next < soon(segment, sender, receiver);
    if !asked_for && is_soon && sender.mark(Mark::Next) != Some(segment.end()) {
        return Event::OutOfOrder;
    }
    again
}

/// Sooner than this nobody sends again: within less than a round trip from end to end no loss is
/// learnt of (a quarter of it is left for round trips shorter than any before), and without a word
/// from the receiver not before a timer ends.
fn soon(segment: &Segment, sender: &Sender, receiver: &Sender) -> i64 {
    let whole = sender.floor.get().zip(receiver.floor.get());
    let told = whole.map_or(OVERTAKING, |(there, back)| {
        there.saturating_add(back) / 4 * 3
    });
    let is_told = sender.is_told(segment) || sender.mark(Mark::Acked) == Some(segment.seq);
    if is_told { told } else { told.max(TIMER) }
}

/// An acknowledgement that says the same as the last and as the highest, and nothing else (RFC 5681,
/// 2).
fn repeats(segment: &Segment, sender: &Sender, receiver: &Sender) -> bool {
    segment.is_ordinary()
        && segment.length == 0
        && segment.window != 0
        && sender.window == Some(segment.window)
        && sender.mark(Mark::Next) == Some(segment.seq)
        && segment.ack.is_some()
        && segment.ack == sender.mark(Mark::Said)
        && segment.ack == receiver.mark(Mark::Acked)
        && is_awaited(receiver)
}

/// Something is on its way that the acknowledgement could have been for.
fn is_awaited(receiver: &Sender) -> bool {
    let ends = receiver.mark(Mark::Next).zip(receiver.mark(Mark::Acked));
    ends.is_some_and(|(next, acked)| next.is_after(acked))
}
