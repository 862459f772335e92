//! Which segment a segment answers, and what the answer speaks of.

use neph_model::{Span, Wall};

use super::half::{Sender, Turn};
use super::marks::{Mark, Nanos};
use super::waiting::Awaiting;
use super::{Event, Segment, Side, Sink};
use crate::sample::{Answer, Method, Sample};
use crate::sequence::Serial;

/// No stack holds an acknowledgement back for less (Linux: `TCP_DELACK_MIN`, 40 ms) ...
const HELD_LEAST: i64 = 35_000_000;
/// ... nor for longer than this (RFC 9293, 3.8.6.3: less than 0.5 s).
const HELD_MOST: i64 = 550_000_000;
/// What TCP has to take for the largest segment when nobody said (RFC 9293, 3.7.1).
const LARGEST: u32 = 536;

/// Samples of what `segment`, sent by `side`, acknowledges and echoes.
pub(super) fn look(
    at: Wall,
    (side, segment): (Side, &Segment),
    ack: Serial,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    // Of a long answer each segment says the same of what was asked.
    if receiver.waiting.is_any() {
        tell(at, (side, segment), ack, receiver, sink);
    }
    let acked = receiver.mark(Mark::Acked);
    if acked.is_none_or(|acked| ack.is_after(acked)) {
        receiver.marks.set(Mark::Acked, ack);
    }
    if let Some(largest) = segment.largest {
        receiver.largest = largest;
    }
}

/// Samples of what awaits an answer.
fn tell(
    at: Wall,
    (side, segment): (Side, &Segment),
    ack: Serial,
    receiver: &mut Sender,
    sink: &mut impl Sink,
) {
    // What was acknowledged, `receiver` had sent: the path beyond is that to `side`.
    let half = side.half();
    let answered = Answered::by(segment, ack, receiver);
    let matched = receiver.waiting.acknowledged(ack);
    let echoed = segment
        .stamps
        .and_then(|(_, echo)| receiver.waiting.echoed(ack, echo));
    let mut is_backwards = false;
    let mut sample = |method, found: Option<Awaiting>| {
        let found = found?;
        let nanos = elapsed(found.at, at);
        is_backwards |= nanos.is_none();
        let nanos = nanos?;
        let floor = receiver.floor.get();
        let answer = answered.answer(found.is_syn(), nanos, floor);
        if answer.speaks_of_path() {
            receiver.floor = Nanos::of(floor.map_or(nanos, |floor| floor.min(nanos)));
        }
        Some(Sample {
            at,
            round_trip: Span::from_nanos(nanos),
            half,
            method,
            answer,
            in_flight: found.in_flight(),
        })
    };
    let matched = sample(Method::Acknowledgement, matched);
    let echoed = sample(Method::Echo, echoed);
    sink.samples(matched, echoed);
    if is_backwards {
        sink.backwards();
    }
    receiver.waiting.tidy();
}

/// Nanoseconds; none where the capturing machine's clock was set back in between, or packets stand out
/// of their order.
fn elapsed(from: Wall, to: Wall) -> Option<i64> {
    let nanos = to.unix_nanos().saturating_sub(from.unix_nanos());
    (nanos >= 0).then_some(nanos)
}

/// Follows who asks and who answers. The last segment of what was asked and the first data of the
/// answer are a round trip that holds all that the program took, also where its host acknowledges
/// before it answers. `placed` is what `segment` is other than the next.
pub(super) fn take_turns(
    at: Wall,
    (side, segment): (Side, &Segment),
    placed: Option<Event>,
    (sender, receiver): (&mut Sender, &mut Sender),
    sink: &mut impl Sink,
) {
    if segment.length == 0 || matches!(placed, Some(Event::KeepAlive | Event::WindowProbe)) {
        return;
    }
    let asked = std::mem::take(&mut receiver.turn);
    let answers_all = asked == Turn::Asked && segment.ack == receiver.mark(Mark::Next);
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
        });
    }
    sender.turn = match (placed, sender.turn) {
        (None, Turn::Silent | Turn::Asked) => Turn::Asked,
        _ => Turn::Unclear,
    };
}

/// What a segment acknowledges, before it is counted.
struct Answered {
    with_data: bool,
    /// So much at once has to be acknowledged at once (RFC 9293, 3.8.6.3: each second segment).
    forced: bool,
}

impl Answered {
    fn by(segment: &Segment, ack: Serial, receiver: &Sender) -> Self {
        let new = receiver
            .mark(Mark::Acked)
            .map_or(0, |acked| ack.since(acked));
        let largest = u32::from(receiver.largest).max(LARGEST);
        Self {
            with_data: segment.length > 0,
            forced: u32::try_from(new).is_ok_and(|new| new > largest),
        }
    }

    fn answer(&self, is_syn: bool, nanos: i64, floor: Option<i64>) -> Answer {
        if self.with_data {
            return Answer::WithData;
        }
        if is_syn {
            return Answer::Handshake;
        }
        let late = nanos - floor.unwrap_or(0);
        if !self.forced && (HELD_LEAST..HELD_MOST).contains(&late) {
            return Answer::Delayed;
        }
        Answer::Bare
    }
}
