//! Assignment of a segment to the segment that it answers, and the kind of answer.

use neph_model::{Span, Wall};

use super::awaiting::Awaiting;
use super::half::{Sender, Turn};
use super::late::Verdict;
use super::marks::{CoarseTime, Mark};
use super::{Event, Passing, Segment, Side, Sink};
use crate::sample::{Answer, Method, Sample};
use crate::sequence::Serial;

/// The largest segment if none was announced (RFC 9293, 3.7.1), in bytes.
const DEFAULT_MSS: u32 = 536;

/// Samples from a segment's acknowledgement and echo, and the retransmissions that it shows to be spurious.
pub(super) fn look(
    passing: Passing<'_>,
    ack: Serial,
    sender: &Sender,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    let Passing { at, side, segment } = passing;
    let acked = receiver.mark(Mark::Acked);
    // Each segment of a long answer acknowledges the same request.
    if receiver.waiting.is_any() {
        let answered = Acknowledgement::by(at, segment, ack, sender.received_at, receiver);
        report(side, segment, &answered, receiver, sink);
    }
    if receiver.late.is_any() {
        let verdict = Verdict {
            at,
            segment,
            ack,
            acked,
            floor: receiver.floor.get(),
        };
        let late = &mut receiver.late;
        late.evaluate(&verdict, |was| {
            sink.found_spurious(at, side.other(), was);
        });
    }
    if acked.is_none_or(|acked| ack.is_after(acked)) {
        receiver.marks.set(Mark::Acked, ack);
    }
    if let Some(largest) = segment.largest {
        receiver.largest = largest.get();
    }
}

/// Reports the samples of a segment.
fn report(
    side: Side,
    segment: &Segment,
    answered: &Acknowledgement,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    let (at, ack) = (answered.at, answered.ack);
    let acked = receiver.mark(Mark::Acked);
    let matched = receiver.waiting.acknowledged(ack);
    let matched = matched.filter(|awaiting| !receiver.late.kept_waiting(awaiting, acked));
    let echoed = segment
        .stamps
        .and_then(|(_, echo)| receiver.waiting.echoed(ack, echo));
    let mut is_backwards = false;
    let mut is_held = None;
    let mut sample = |method, awaiting: Option<Awaiting>| {
        let awaiting = awaiting?;
        let nanos = elapsed(awaiting.at, at);
        is_backwards |= nanos.is_none();
        let nanos = nanos?;
        let answer = answered.answer(&awaiting, nanos, &mut is_held, receiver);
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
    if is_backwards {
        sink.backwards();
    }
    receiver.waiting.tidy(ack);
}

/// Nanoseconds. `None` where the capturing clock was set back in between, or packets are out of order.
fn elapsed(from: Wall, to: Wall) -> Option<i64> {
    let nanos = to.unix_nanos().saturating_sub(from.unix_nanos());
    (nanos >= 0).then_some(nanos)
}

/// Follows requests and responses. The last segment of a request and the first data of its response give a
/// round trip that includes the server processing time, even if the host acknowledges first. `placed` is the
/// event of `segment`, if any.
pub(super) fn take_turns(
    passing: Passing<'_>,
    placed: Option<Event>,
    sender: &mut Sender,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    let Passing { at, side, segment } = passing;
    if segment.length == 0 || matches!(placed, Some(Event::KeepAlive | Event::WindowProbe)) {
        return;
    }
    let requested = std::mem::take(&mut receiver.turn);
    let answers_all = requested == Turn::Asked && segment.ack == receiver.mark(Mark::Next);
    if placed.is_none()
        && answers_all
        && let Some(nanos) = receiver.next_at.wall().and_then(|last| elapsed(last, at))
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
    sender.turn = match (placed, sender.turn) {
        (None, Turn::Silent | Turn::Asked) => Turn::Asked,
        _ => Turn::Unclear,
    };
}

/// The acknowledgement of a segment, before it is counted.
struct Acknowledgement {
    at: Wall,
    ack: Serial,
    with_data: bool,
    /// Enough bytes arrived at once that they must be acknowledged at once (RFC 9293, 3.8.6.3: each second
    /// segment).
    forced: bool,
    /// When its sender had sent anything before it.
    received_at: CoarseTime,
}

impl Acknowledgement {
    fn by(
        at: Wall,
        segment: &Segment,
        ack: Serial,
        received_at: CoarseTime,
        receiver: &Sender,
    ) -> Self {
        let new = receiver
            .mark(Mark::Acked)
            .map_or(0, |acked| ack.since(acked));
        let largest = u32::from(receiver.largest).max(DEFAULT_MSS);
        Self {
            at,
            ack,
            with_data: segment.length > 0,
            forced: u32::try_from(new).is_ok_and(|new| new > largest),
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
        if self.with_data {
            return Answer::WithData;
        }
        let floor = &mut receiver.floor;
        let is_free = awaiting.is_syn() || self.forced;
        let quiet = self.received_at.until(self.at);
        let mut is_held_back = || floor.is_held_back(self.at, nanos, quiet);
        if !is_free && *is_held.get_or_insert_with(&mut is_held_back) {
            floor.held_back(self.at, nanos);
            return Answer::Delayed;
        }
        floor.path(self.at, nanos);
        if awaiting.is_syn() {
            Answer::Handshake
        } else {
            Answer::Bare
        }
    }
}
