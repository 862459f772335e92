//! Assignment of a segment to the segment that it answers, and the kind of answer.

use neph_model::{Span, Wall};

use super::awaiting::Awaiting;
use super::half::{Sender, Turn};
use super::late::SpuriousEvidence;
use super::numbers::{CoarseTime, Number};
use super::{Event, Passing, Segment, Side, Sink};
use crate::sample::{Answer, Method, Sample};
use crate::sequence::Serial;

/// The largest segment if none was announced (RFC 9293, 3.7.1), in bytes.
const DEFAULT_MSS: u32 = 536;

/// Samples from a segment's acknowledgement and echo, and the retransmissions that it shows to be spurious.
pub(super) fn report_answers(
    passing: Passing<'_>,
    ack: Serial,
    sender: &Sender,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    let Passing { at, side, segment } = passing;
    let acked = receiver.number(Number::Acked);
    // Each segment of a long answer acknowledges the same request.
    if receiver.waiting.has_any() {
        let acknowledgement = Acknowledgement::new(at, segment, ack, sender.received_at, receiver);
        report(side, segment, &acknowledgement, receiver, sink);
    }
    if receiver.late.has_any() {
        let evidence = SpuriousEvidence {
            at,
            segment,
            ack,
            acked,
            floor: receiver.floor.get(),
        };
        let late = &mut receiver.late;
        late.evaluate(&evidence, |event| {
            sink.found_spurious(at, side.other(), event);
        });
    }
    if acked.is_none_or(|acked| ack.is_after(acked)) {
        receiver.numbers.set(Number::Acked, ack);
    }
    if let Some(largest) = segment.max_segment_size {
        receiver.max_segment_size = largest.get();
    }
}

/// Reports the samples of a segment.
fn report(
    side: Side,
    segment: &Segment,
    acknowledgement: &Acknowledgement,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    let (at, ack) = (acknowledgement.at, acknowledgement.ack);
    let acked = receiver.number(Number::Acked);
    let matched = receiver.waiting.take_acknowledged(ack);
    let matched = matched.filter(|awaiting| !receiver.late.has_delayed(awaiting, acked));
    let echoed = segment
        .stamps
        .and_then(|(_, echo)| receiver.waiting.take_echoed(ack, echo));
    let mut is_negative = false;
    let mut is_held = None;
    let mut sample = |method, awaiting: Option<Awaiting>| {
        let awaiting = awaiting?;
        let nanos = elapsed(awaiting.at, at);
        is_negative |= nanos.is_none();
        let nanos = nanos?;
        let answer = acknowledgement.answer(&awaiting, nanos, &mut is_held, receiver);
        Some(Sample {
            at,
            round_trip: Span::from_nanos(nanos),
            // `receiver` sent what was acknowledged: the path is that to `side`.
            half: side.half(),
            method,
            answer,
            in_flight: awaiting.in_flight(),
            weight: receiver.waiting.weight(&awaiting),
        })
    };
    let matched = sample(Method::Acknowledgement, matched);
    let echoed = sample(Method::Echo, echoed);
    sink.samples(matched, echoed);
    if is_negative {
        sink.negative_round_trip();
    }
    receiver.waiting.forget_answered(ack);
}

/// Nanoseconds. `None` where the capturing clock was set back in between, or packets are out of order.
fn elapsed(from: Wall, to: Wall) -> Option<i64> {
    let nanos = to.unix_nanos().saturating_sub(from.unix_nanos());
    (nanos >= 0).then_some(nanos)
}

/// Follows requests and responses. The last segment of a request and the first data of its response give a
/// round trip that includes the server processing time, even if the host acknowledges first. `event` is
/// that of `segment`, if any.
pub(super) fn follow_turns(
    passing: Passing<'_>,
    event: Option<Event>,
    sender: &mut Sender,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    let Passing { at, side, segment } = passing;
    if segment.length == 0 || matches!(event, Some(Event::KeepAlive | Event::WindowProbe)) {
        return;
    }
    let previous_turn = std::mem::take(&mut receiver.turn);
    let is_complete_answer =
        previous_turn == Turn::Requested && segment.ack == receiver.number(Number::Next);
    if event.is_none()
        && is_complete_answer
        && let Some(nanos) = receiver
            .next_at
            .wall()
            .and_then(|last_sent_at| elapsed(last_sent_at, at))
    {
        sink.sample(Sample {
            at,
            round_trip: Span::from_nanos(nanos),
            half: side.half(),
            method: Method::Response,
            answer: Answer::WithData,
            in_flight: 0,
            weight: 1,
        });
    }
    sender.turn = match (event, sender.turn) {
        (None, Turn::Silent | Turn::Requested) => Turn::Requested,
        _ => Turn::Unclear,
    };
}

/// The acknowledgement of a segment, before it is counted.
struct Acknowledgement {
    at: Wall,
    ack: Serial,
    has_data: bool,
    /// Enough bytes arrived at once that they must be acknowledged at once (RFC 9293, 3.8.6.3: each second
    /// segment).
    is_forced: bool,
    /// When its sender had sent anything before it.
    received_at: CoarseTime,
}

impl Acknowledgement {
    fn new(
        at: Wall,
        segment: &Segment,
        ack: Serial,
        received_at: CoarseTime,
        receiver: &Sender,
    ) -> Self {
        let new_bytes = receiver
            .number(Number::Acked)
            .map_or(0, |acked| ack.since(acked));
        let largest = u32::from(receiver.max_segment_size).max(DEFAULT_MSS);
        Self {
            at,
            ack,
            has_data: segment.length > 0,
            is_forced: u32::try_from(new_bytes).is_ok_and(|new_bytes| new_bytes > largest),
            received_at,
        }
    }

    /// The kind of answer to `awaiting`, by its time, which also updates the floor of the path. `is_held` is the
    /// result for the same segment before.
    fn answer(
        &self,
        awaiting: &Awaiting,
        nanos: i64,
        is_held: &mut Option<bool>,
        receiver: &mut Sender,
    ) -> Answer {
        if self.has_data {
            return Answer::WithData;
        }
        let floor = &mut receiver.floor;
        let is_immediate = awaiting.is_syn() || self.is_forced;
        let silence_nanos = self.received_at.until(self.at);
        let mut is_delayed = || floor.is_delayed(self.at, nanos, silence_nanos);
        if !is_immediate && *is_held.get_or_insert_with(&mut is_delayed) {
            floor.add_delayed(self.at, nanos);
            return Answer::Delayed;
        }
        floor.add_path_round_trip(self.at, nanos);
        if awaiting.is_syn() {
            Answer::Handshake
        } else {
            Answer::Bare
        }
    }
}
