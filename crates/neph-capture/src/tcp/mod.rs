//! One TCP connection as a capture shows it: samples of round trips, and events.
//!
//! Owns the matching of segments with answers, and the kinds of retransmission. Does not own the table of
//! connections. Reads no clock: each segment comes with the time at which it passed.

mod answer;
mod classify;
mod event;
mod late_segments;
mod min_rtt;
mod mirror;
mod numbers;
mod pending_segment;
mod pending_segments;
mod segment;
mod segment_budget;
mod sender;
mod thinning;

#[cfg(test)]
mod tests;

use neph_model::Wall;

use crate::sample::{Half, Sample};
use crate::sequence::Serial;
pub use event::Event;
use numbers::{CoarseTime, Number};
pub use segment::Segment;
pub use segment_budget::SegmentBudget;
use sender::Sender;

/// Most bytes by which a segment may be reordered before its SYN.
const MAX_SYN_REORDERING: i32 = 100_000;

/// The sender of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The side that opened the connection.
    Client,
    /// The side that accepted it.
    Server,
}

impl Side {
    /// The other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The part of the path to this side.
    pub const fn half(self) -> Half {
        match self {
            Self::Client => Half::Client,
            Self::Server => Half::Server,
        }
    }
}

/// Receives what a connection shows.
pub trait Sink {
    /// A round trip.
    fn sample(&mut self, sample: Sample);
    /// Round trips that one segment shows, by its acknowledgement and by its echo.
    fn samples(&mut self, acknowledgement: Option<Sample>, echo: Option<Sample>) {
        for sample in [acknowledgement, echo].into_iter().flatten() {
            self.sample(sample);
        }
    }
    /// An event other than the next segment, sent by `side`.
    fn event(&mut self, at: Wall, side: Side, event: Event);
    /// A retransmission of `side` that was counted as `previous` turns out to be spurious.
    fn found_spurious(&mut self, _at: Wall, _side: Side, _previous: Event) {}
    /// Number of segments of `side` that are not followed, because more are in flight than there is room for.
    /// The samples of others represent them.
    fn segments_not_tracked(&mut self, _side: Side, _segments: u64) {}
    /// A segment has an earlier timestamp than what it answers: there is no round trip.
    fn negative_round_trip(&mut self) {}
}

/// A segment that passes: its time and sender.
#[derive(Debug, Clone, Copy)]
pub struct CapturedSegment<'a> {
    /// When it was captured.
    pub at: Wall,
    /// Its sender.
    pub side: Side,
    /// Its header.
    pub segment: &'a Segment,
}

/// A connection.
#[derive(Debug, Default)]
pub struct Connection {
    client: Sender,
    server: Sender,
}

impl Connection {
    /// Adds a segment.
    pub fn add_segment(
        &mut self,
        captured: CapturedSegment<'_>,
        budget: SegmentBudget,
        sink: &mut impl Sink,
    ) {
        let CapturedSegment { at, side, segment } = captured;
        if self.is_replaced_by(side, segment) {
            *self = Self::default();
        }
        let (sender, receiver) = match side {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        };
        if belongs_to_older_connection(segment, sender, receiver) {
            let event = if segment.is_reset() {
                Event::Reset
            } else {
                Event::AcknowledgedUnseen
            };
            sink.event(at, side, event);
            return;
        }
        if let Some(ack) = segment.ack {
            answer::report_answers(captured, ack, sender, receiver, sink);
        }
        let event_by_number =
            classify::classify_segment(at, side, segment, (&mut *sender, &mut *receiver), sink);
        answer::follow_requests(captured, event_by_number, sender, receiver, sink);
        sender.last_segment_at = CoarseTime::at(at);
        if segment.is_fin() || segment.is_reset() {
            sender.numbers.end();
        }
        // The receiver drops the byte of a probe; it is sent with others once the window is open.
        if event_by_number != Some(Event::WindowProbe) {
            let untracked = sender.remember(at, segment, event_by_number, budget);
            if untracked > 0 {
                sink.segments_not_tracked(side, untracked as u64);
            }
        }
    }

    /// Whether `segment` opens a new connection on the same ports: a SYN after the end of the connection
    /// before, or with another initial number. The same for a SYN-ACK, if only packets of servers are
    /// captured.
    #[inline]
    pub(crate) fn is_replaced_by(&self, side: Side, segment: &Segment) -> bool {
        segment.is_syn() && self.is_reopened_by(side, segment)
    }

    fn is_reopened_by(&self, side: Side, segment: &Segment) -> bool {
        let (sender, other) = match side {
            Side::Client => (&self.client, &self.server),
            Side::Server => (&self.server, &self.client),
        };
        let has_other_number = || match sender.number(Number::First) {
            Some(first) => first != segment.seq,
            // Begun before the capture: a late SYN has the number before that of its data.
            None => sender
                .number(Number::Next)
                .is_some_and(|next| !(0..=MAX_SYN_REORDERING).contains(&next.since(segment.seq))),
        };
        let may_open = segment.is_syn_without_ack() || segment.is_syn_ack() && other.is_silent();
        let is_ended = || sender.numbers.is_ended() || other.numbers.is_ended();
        may_open && (is_ended() || has_other_number())
    }

    /// Prefetches both sides: see the table of flows.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.client.prefetch();
        self.server.prefetch();
    }

    /// Prefetches the memory that their fields point to.
    #[inline]
    pub(crate) fn prefetch_far(&self) {
        self.client.pending_segments.prefetch_far();
        self.server.pending_segments.prefetch_far();
    }

    /// Memory that it points to, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.client.heap_bytes() + self.server.heap_bytes()
    }

    /// Bytes that `side` has in flight to the other side.
    pub(crate) fn in_flight(&self, side: Side) -> u32 {
        let sender = match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        let next = sender.number(Number::Next);
        next.map_or(0, |next| sender.in_flight(next))
    }
}

/// Whether `segment` belongs to an old connection on the same ports that only one side has forgotten. The SYN
/// of the new one is answered with the numbers of the old one. A reset ends that one, then the same SYN comes
/// again (RFC 9293, 3.5.1, figure 9). None of these numbers belongs to the new connection.
fn belongs_to_older_connection(segment: &Segment, sender: &Sender, receiver: &Sender) -> bool {
    if segment.is_syn() {
        return false;
    }
    let has_other_numbers = |opener: &Sender, number: Option<Serial>| {
        opener.is_opening() && number.is_some() && number != opener.number(Number::Next)
    };
    let is_answer = sender.is_silent() && has_other_numbers(receiver, segment.ack);
    let is_end =
        segment.is_reset() && receiver.is_silent() && has_other_numbers(sender, Some(segment.seq));
    is_answer || is_end
}
