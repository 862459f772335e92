//! Which segment a segment answers, and what the answer speaks of.

use neph_model::{Span, Wall};

use super::half::{Sender, release};
use super::{Segment, Side, Sink};
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
    // What was acknowledged, `receiver` had sent: the path beyond is that to `side`.
    let half = side.half();
    let answered = Answered::by(segment, ack, receiver);
    let matched = matched(receiver, ack);
    let echoed = segment
        .stamps
        .and_then(|(_, echo)| echoed(receiver, ack, echo));
    for (method, found) in [(Method::Acknowledgement, matched), (Method::Echo, echoed)] {
        let Some(found) = found else {
            continue;
        };
        let nanos = at.unix_nanos().saturating_sub(found.at.unix_nanos());
        // The capturing machine's clock was set back in between.
        if nanos < 0 {
            continue;
        }
        let answer = answered.answer(found.is_syn, nanos, receiver.floor);
        if answer.speaks_of_path() {
            receiver.floor = Some(receiver.floor.map_or(nanos, |floor| floor.min(nanos)));
        }
        sink.sample(Sample {
            at,
            round_trip: Span::from_nanos(nanos),
            half,
            method,
            answer,
            in_flight: found.in_flight,
        });
    }
    release(&mut receiver.outstanding);
    release(&mut receiver.stamps);
    if receiver.acked.is_none_or(|acked| ack.is_after(acked)) {
        receiver.acked = Some(ack);
    }
    if let Some(largest) = segment.largest {
        receiver.largest = u32::from(largest);
    }
}

/// A segment that found its answer.
struct Found {
    at: Wall,
    in_flight: u32,
    is_syn: bool,
}

/// The segment whose last byte `ack` acknowledges; all before it are answered too.
fn matched(receiver: &mut Sender, ack: Serial) -> Option<Found> {
    let mut last = None;
    while let Some(waiting) = receiver.outstanding.front() {
        if waiting.end.is_after(ack) {
            break;
        }
        last = receiver.outstanding.pop_front();
    }
    let last = last.filter(|last| last.end == ack && !last.load.is_again())?;
    Some(Found {
        at: last.at,
        in_flight: last.load.in_flight(),
        is_syn: last.load.is_syn(),
    })
}

/// The first segment that carried the time stamp `echo`, at its first echo.
fn echoed(receiver: &mut Sender, ack: Serial, echo: Serial) -> Option<Found> {
    let mut last = None;
    while let Some(waiting) = receiver.stamps.front() {
        if waiting.value.is_after(echo) {
            break;
        }
        last = receiver.stamps.pop_front();
    }
    let last = last.filter(|last| last.value == echo && !last.end.is_after(ack))?;
    Some(Found {
        at: last.at,
        in_flight: last.load.in_flight(),
        is_syn: last.load.is_syn(),
    })
}

/// What a segment acknowledges, before it is counted.
struct Answered {
    with_data: bool,
    /// So much at once has to be acknowledged at once (RFC 9293, 3.8.6.3: each second segment).
    forced: bool,
}

impl Answered {
    fn by(segment: &Segment, ack: Serial, receiver: &Sender) -> Self {
        let new = receiver.acked.map_or(0, |acked| ack.since(acked));
        let largest = receiver.largest.max(LARGEST);
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
