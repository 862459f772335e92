//! Assignment of a segment to the segment that it answers, and the kind of answer.

use neph_model::{Span, Wall};

use super::late_segments::SpuriousEvidence;
use super::numbers::{CoarseTime, Number};
use super::pending_segment::PendingSegment;
use super::sender::{RequestState, Sender};
use super::{CapturedSegment, Event, Segment, Side, Sink};
use crate::sample::{Answer, Method, Sample};
use crate::sequence::Serial;

/// The largest segment if none was announced (RFC 9293, 3.7.1), in bytes.
const DEFAULT_MSS: u32 = 536;

/// Samples from a segment's acknowledgement and echo, and the retransmissions that it shows to be spurious.
pub(super) fn report_answers(
    captured: CapturedSegment<'_>,
    ack: Serial,
    sender: &Sender,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    let CapturedSegment { at, side, segment } = captured;
    let acked = receiver.number(Number::Acked);
    // Each segment of a long answer acknowledges the same request.
    if receiver.pending_segments.has_any() {
        let acknowledgement =
            Acknowledgement::new(at, segment, ack, sender.last_segment_at, receiver);
        report_samples(side, segment, &acknowledgement, receiver, sink);
    }
    if receiver.late_segments.has_any() {
        let evidence = SpuriousEvidence {
            at,
            segment,
            ack,
            previous_ack: acked,
            min_rtt: receiver.min_rtt.get(),
        };
        receiver.late_segments.evaluate(&evidence, |event| {
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
fn report_samples(
    side: Side,
    segment: &Segment,
    acknowledgement: &Acknowledgement,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    let (at, ack) = (acknowledgement.at, acknowledgement.ack);
    let acked = receiver.number(Number::Acked);
    let matched = receiver.pending_segments.take_acknowledged(ack);
    let matched = matched.filter(|pending| !receiver.late_segments.has_delayed(pending, acked));
    let echoed = segment
        .timestamps
        .and_then(|(_, echo)| receiver.pending_segments.take_echoed(ack, echo));
    let mut is_negative = false;
    let mut is_held = None;
    let mut sample = |method, pending: Option<PendingSegment>| {
        let pending = pending?;
        let nanos = elapsed(pending.at, at);
        is_negative |= nanos.is_none();
        let nanos = nanos?;
        let answer = acknowledgement.answer(&pending, nanos, &mut is_held, receiver);
        Some(Sample {
            at,
            round_trip: Span::from_nanos(nanos),
            // `receiver` sent what was acknowledged: the path is that to `side`.
            half: side.half(),
            method,
            answer,
            in_flight: pending.in_flight(),
            weight: receiver.pending_segments.weight(&pending),
        })
    };
    let matched = sample(Method::Acknowledgement, matched);
    let echoed = sample(Method::Echo, echoed);
    sink.samples(matched, echoed);
    if is_negative {
        sink.negative_round_trip();
    }
    receiver.pending_segments.forget_answered(ack);
}

/// Nanoseconds. `None` where the capturing clock was set back in between, or packets are out of order.
fn elapsed(from: Wall, to: Wall) -> Option<i64> {
    let nanos = to.unix_nanos().saturating_sub(from.unix_nanos());
    (nanos >= 0).then_some(nanos)
}

/// Follows requests and responses. The last segment of a request and the first data of its response give a
/// round trip that includes the server processing time, even if the host acknowledges first. `event` is
/// that of `segment`, if any.
pub(super) fn follow_requests(
    captured: CapturedSegment<'_>,
    event: Option<Event>,
    sender: &mut Sender,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    let CapturedSegment { at, side, segment } = captured;
    if segment.length == 0 || matches!(event, Some(Event::KeepAlive | Event::WindowProbe)) {
        return;
    }
    let previous_state = std::mem::take(&mut receiver.request_state);
    let is_complete_answer =
        previous_state == RequestState::Requested && segment.ack == receiver.number(Number::Next);
    if event.is_none()
        && is_complete_answer
        && let Some(nanos) = receiver
            .highest_sent_at
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
    sender.request_state = match (event, sender.request_state) {
        (None, RequestState::Silent | RequestState::Requested) => RequestState::Requested,
        _ => RequestState::Unclear,
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
    previous_segment_at: CoarseTime,
}

impl Acknowledgement {
    fn new(
        at: Wall,
        segment: &Segment,
        ack: Serial,
        previous_segment_at: CoarseTime,
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
            previous_segment_at,
        }
    }

    /// The kind of answer to `pending`, by its time, which also updates the shortest round trip of the
    /// path. `is_held` is the result for the same segment before.
    fn answer(
        &self,
        pending: &PendingSegment,
        nanos: i64,
        is_held: &mut Option<bool>,
        receiver: &mut Sender,
    ) -> Answer {
        if self.has_data {
            return Answer::WithData;
        }
        let min_rtt = &mut receiver.min_rtt;
        let is_immediate = pending.is_syn() || self.is_forced;
        let silence_nanos = self.previous_segment_at.until(self.at);
        let mut is_delayed = || min_rtt.is_delayed(self.at, nanos, silence_nanos);
        if !is_immediate && *is_held.get_or_insert_with(&mut is_delayed) {
            min_rtt.add_delayed(self.at, nanos);
            return Answer::Delayed;
        }
        min_rtt.add_path_round_trip(self.at, nanos);
        if pending.is_syn() {
            Answer::Handshake
        } else {
            Answer::Bare
        }
    }
}
