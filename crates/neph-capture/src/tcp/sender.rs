//! One side of a connection as a sender: its sequence numbers, acknowledgements and window.

use std::cmp::Ordering;

use neph_model::Wall;

use super::late_segments::LateSegments;
use super::min_rtt::MinRtt;
use super::numbers::{CoarseTime, Nanos, Number, Numbers};
use super::pending_segment::{Awaited, PendingSegment};
use super::pending_segments::PendingSegments;
use super::{Event, Segment, SegmentBudget};
use crate::prefetch::prefetch;
use crate::sequence::Serial;

/// A side of a connection.
#[derive(Debug, Default)]
pub(super) struct Sender {
    pub(super) numbers: Numbers,
    /// When the highest number was sent.
    pub(super) highest_sent_at: Nanos,
    /// The largest segment that the other side accepts.
    pub(super) max_segment_size: u16,
    pub(super) pending_segments: PendingSegments,
    /// Its segments that passed later than their numbers show.
    pub(super) late_segments: LateSegments,
    /// Round trips to the other side.
    pub(super) min_rtt: MinRtt,
    /// When its last segment passed.
    pub(super) last_segment_at: CoarseTime,
    /// The window of its last acknowledgement, and how often it repeated that acknowledgement.
    pub(super) window: Option<u16>,
    pub(super) duplicate_acks: u32,
    pub(super) last_duplicate_ack_at: Nanos,
    pub(super) request_state: RequestState,
}

/// Whether a side has sent a request that the other has not answered with data yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RequestState {
    #[default]
    Silent,
    /// All segments of its request passed here once and in order.
    Requested,
    /// When the whole request had passed is not known.
    Unclear,
}

impl Sender {
    #[inline]
    pub(super) const fn number(&self, number: Number) -> Option<Serial> {
        self.numbers.get(number)
    }

    /// Bytes up to `end` that are not acknowledged.
    pub(super) fn in_flight(&self, end: Serial) -> u32 {
        let from = self
            .number(Number::Acked)
            .or_else(|| self.number(Number::First));
        let from = from.unwrap_or(end);
        u32::try_from(end.since(from)).unwrap_or(0)
    }

    /// Prefetches each cache line of it, by one field in each, as the compiler lays them out.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.pending_segments);
        prefetch(&self.highest_sent_at);
        prefetch(&self.numbers);
    }

    /// Whether `segment` begins at or after the end of all that was sent before.
    pub(super) fn is_new(&self, segment: &Segment) -> bool {
        self.number(Number::Next)
            .is_none_or(|next| !next.is_after(segment.seq))
    }

    /// Whether no segment of it passed here that belongs to the connection.
    #[inline]
    pub(super) const fn is_silent(&self) -> bool {
        self.number(Number::Next).is_none()
    }

    /// Whether it sent only a SYN and waits for the answer.
    pub(super) fn is_opening(&self) -> bool {
        let ends = self.number(Number::First).zip(self.number(Number::Next));
        ends.is_some_and(|(first, next)| first.plus(1) == next)
            && self.number(Number::LatestAck).is_none()
    }

    /// The other side reported a gap.
    pub(super) fn record_gap_report(&mut self) {
        if let Some(next) = self.number(Number::Next) {
            self.numbers.set(Number::GapReported, next);
        }
    }

    /// Forgets reported gaps once they are filled, as sequence numbers repeat.
    pub(super) fn forget_filled_gaps(&mut self) {
        let ends = self
            .number(Number::GapReported)
            .zip(self.number(Number::Acked));
        if ends.is_some_and(|(gap_end, acked)| !gap_end.is_after(acked)) {
            self.numbers.forget(Number::GapReported);
        }
    }

    /// Whether `segment` may lie in a gap that the other side reported. Gaps are filled one by one: an
    /// acknowledgement that fills the first does not cancel the report of the next.
    pub(super) fn is_in_reported_gap(&self, segment: &Segment) -> bool {
        self.number(Number::GapReported)
            .is_some_and(|gap_end| gap_end.is_after(segment.seq))
    }

    /// For segments after `segment` that passed already: its timestamp option against theirs, and when the
    /// first of them passed. `Greater` than the oldest: it was sent after them. `Less` than the newest: it
    /// was sent before them. Without a remembered gap, only the newest timestamp and the last passage are
    /// known.
    pub(super) fn compare_with_later_segments(
        &self,
        segment: &Segment,
    ) -> (Option<Ordering>, Option<Wall>) {
        let later_segments = self.pending_segments.first_pending_after(segment);
        let timestamps = segment.timestamps.zip(self.number(Number::NewestTimestamp));
        let order = timestamps.map(|((serial, _), newest)| {
            let oldest = later_segments.map_or(newest, |(oldest, _)| oldest);
            if serial.is_after(oldest) {
                Ordering::Greater
            } else {
                serial.since(newest).cmp(&0)
            }
        });
        let passed_at = later_segments.map(|(_, at)| at);
        (order, passed_at.or_else(|| self.highest_sent_at.wall()))
    }

    /// Whether some of `segment` passed here before.
    pub(super) fn passed_before(&self, segment: &Segment) -> bool {
        self.number(Number::Acked)
            .is_some_and(|acked| acked.is_after(segment.seq))
            || self.pending_segments.has_passed_before(segment)
    }

    /// Remembers a segment after its evaluation; `event` is its event, if any. Returns how many segments are
    /// not followed, because more are in flight than there is room for.
    pub(super) fn remember(
        &mut self,
        at: Wall,
        segment: &Segment,
        event: Option<Event>,
        budget: SegmentBudget,
    ) -> usize {
        let is_newest = self.has_newest_timestamp(segment);
        let mut untracked = 0;
        if segment.sequence_length() > 0 && !segment.is_reset() {
            let is_new = self.is_new(segment);
            let is_first = is_new || !self.passed_before(segment);
            if !is_first {
                self.pending_segments.mark_retransmitted(segment);
            }
            let is_acknowledged = |acked: Serial| !segment.end().is_after(acked);
            if !is_new && self.number(Number::Acked).is_some_and(is_acknowledged) {
                self.late_segments.add_repetition(segment);
            } else if !is_new {
                self.late_segments.push(at, segment, !is_first, event);
            }
            self.pending_segments
                .record_passage(at, segment, self.number(Number::Next));
            // A timestamp that a bare acknowledgement used first is excluded: its echo may answer what
            // followed up to a tick later.
            let awaited = Awaited {
                acknowledgement: is_first,
                echo: is_newest,
            };
            let in_flight = self.in_flight(segment.end());
            let pending = PendingSegment::of(at, segment, in_flight, awaited);
            untracked = self.pending_segments.push(pending, &self.numbers, budget);
        }
        if let Some((value, _)) = segment.timestamps.filter(|_| is_newest) {
            self.numbers.set(Number::NewestTimestamp, value);
        }
        if segment.is_syn() {
            self.numbers.set(Number::First, segment.seq);
        }
        if self
            .number(Number::Next)
            .is_none_or(|next| segment.end().is_after(next))
        {
            self.numbers.set(Number::Next, segment.end());
            self.highest_sent_at = Nanos::at(at);
        }
        untracked
    }

    /// Memory that it points to, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.pending_segments.heap_bytes() + self.late_segments.heap_bytes()
    }

    /// Whether no segment with this timestamp or a later one was sent before.
    fn has_newest_timestamp(&self, segment: &Segment) -> bool {
        segment.timestamps.is_some_and(|(value, _)| {
            self.number(Number::NewestTimestamp)
                .is_none_or(|newest| value.is_after(newest))
        })
    }
}
