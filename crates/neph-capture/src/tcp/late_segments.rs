//! Segments that passed later than their numbers show: retransmitted or reordered.
//!
//! Owns which acknowledgements had to wait for them, and which retransmissions were spurious: by D-SACK (RFC
//! 2883), Eifel (RFC 3522), or an acknowledgement sooner than any round trip.

use std::collections::VecDeque;

use neph_model::{Span, Wall};

use super::pending_segment::PendingSegment;
use super::{Event, Segment};
use crate::sequence::Serial;

/// Remembered segments of one side. Beyond that, the oldest acknowledged ones are forgotten.
const MAX_SEGMENTS: usize = 64;
/// A duplicate is reported within a round trip: acknowledged segments are forgotten after this time.
const MAX_AGE: Span = Span::from_secs(3);

/// A segment that passed late.
#[derive(Debug, Clone, Copy)]
struct LateSegment {
    seq: Serial,
    end: Serial,
    at: Wall,
    /// Its timestamp option.
    timestamp: Option<Serial>,
    /// Whether some of it had passed before.
    is_repeated: bool,
    /// How a retransmission was counted, while it may turn out to be spurious.
    counted_as: Option<Event>,
}

impl LateSegment {
    fn overlaps(&self, other: &Self) -> bool {
        self.end.is_after(other.seq) && other.end.is_after(self.seq)
    }
}

/// Late segments of one side; most sides have none.
#[derive(Debug, Default)]
pub(super) struct LateSegments(
    #[expect(clippy::box_collection, reason = "most sides have none")]
    Option<Box<VecDeque<LateSegment>>>,
);

/// An acknowledgement, with what it shows of spurious retransmissions.
pub(super) struct SpuriousEvidence<'a> {
    pub(super) at: Wall,
    pub(super) segment: &'a Segment,
    pub(super) ack: Serial,
    /// The acknowledgement before.
    pub(super) previous_ack: Option<Serial>,
    /// The shortest round trip to the acknowledging side, in nanoseconds.
    pub(super) min_rtt: Option<i64>,
}

impl SpuriousEvidence<'_> {
    /// Whether it is the first that acknowledges all of `late`.
    fn covers(&self, late: &LateSegment) -> bool {
        let is_first = self
            .previous_ack
            .is_none_or(|acked| late.end.is_after(acked));
        is_first && !late.end.is_after(self.ack)
    }

    /// Whether it reports that `late` arrived twice.
    fn reports(&self, late: &LateSegment) -> bool {
        self.segment.reports(late.seq, late.end)
    }

    /// Whether it came too soon to answer `late`: before 3/4 of the shortest round trip, as a round trip may
    /// be shorter than any before.
    fn is_too_soon_for(&self, late: &LateSegment) -> bool {
        let nanos = self.at.unix_nanos().saturating_sub(late.at.unix_nanos());
        let minimum = self.min_rtt.map(|min_rtt| min_rtt / 4 * 3);
        minimum.is_some_and(|minimum| (0..minimum).contains(&nanos))
    }
}

impl LateSegments {
    /// Adds a segment that passed late: whether some of it passed before, and how it was counted.
    pub(super) fn push(
        &mut self,
        at: Wall,
        segment: &Segment,
        is_repeated: bool,
        counted_as: Option<Event>,
    ) {
        let retransmissions = [Event::Retransmission, Event::FastRetransmission];
        let late_segments = self.0.get_or_insert_default();
        late_segments.push_back(LateSegment {
            seq: segment.seq,
            end: segment.end(),
            at,
            timestamp: segment.timestamps.map(|(value, _)| value),
            is_repeated,
            counted_as: counted_as.filter(|event| retransmissions.contains(event)),
        });
        if late_segments.len() > MAX_SEGMENTS {
            join_oldest(late_segments);
        }
    }

    /// Adds a repetition of acknowledged data. A duplicate that its receiver reports is this one, not the
    /// retransmission before.
    pub(super) fn add_repetition(&mut self, segment: &Segment) {
        let (seq, end) = (segment.seq, segment.end());
        let is_overlapping =
            |late: &&mut LateSegment| end.is_after(late.seq) && late.end.is_after(seq);
        let late_segments = self.0.iter_mut().flat_map(|segments| segments.iter_mut());
        late_segments
            .filter(is_overlapping)
            .for_each(|late| late.counted_as = None);
    }

    /// Whether there is any.
    #[inline]
    pub(super) const fn has_any(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the acknowledgement of `pending`, the last one acknowledged after `acked`, had to wait for a
    /// late or repeated segment.
    pub(super) fn has_delayed(&self, pending: &PendingSegment, acked: Option<Serial>) -> bool {
        let is_awaited = |late: &LateSegment| {
            acked.is_none_or(|acked| late.end.is_after(acked))
                && pending.seq.is_after(late.seq)
                && (late.is_repeated || late.at > pending.at)
        };
        self.0
            .iter()
            .flat_map(|segments| segments.iter())
            .any(is_awaited)
    }

    /// Passes on how the retransmissions that turn out to be spurious were counted.
    pub(super) fn evaluate(
        &mut self,
        evidence: &SpuriousEvidence<'_>,
        mut on_spurious: impl FnMut(Event),
    ) {
        let Some(late_segments) = &mut self.0 else {
            return;
        };
        // An echo older than all of them belongs to a segment before any retransmission.
        let covered = late_segments
            .iter()
            .filter(|late| late.counted_as.is_some() && evidence.covers(late));
        let oldest = covered.map(|late| late.timestamp).reduce(|first, next| {
            let (first, next) = (first?, next?);
            Some(if first.is_after(next) { next } else { first })
        });
        let echo = evidence.segment.timestamps.map(|(_, echo)| echo);
        let is_older = oldest
            .flatten()
            .zip(echo)
            .is_some_and(|(oldest, echo)| oldest.is_after(echo));
        // Of several retransmissions the last is the duplicate: the first may have been needed.
        let mut last_reported: Option<LateSegment> = None;
        for late in late_segments.iter_mut().rev() {
            let is_answered = evidence.covers(late) && (is_older || evidence.is_too_soon_for(late));
            let is_reported =
                evidence.reports(late) && !last_reported.is_some_and(|last| last.overlaps(late));
            last_reported = Some(*late).filter(|_| is_reported).or(last_reported);
            if (is_answered || is_reported)
                && let Some(event) = late.counted_as.take()
            {
                on_spurious(event);
            }
        }
        let is_expired = |late: &LateSegment| {
            let nanos = evidence
                .at
                .unix_nanos()
                .saturating_sub(late.at.unix_nanos());
            !late.end.is_after(evidence.ack) && nanos > MAX_AGE.nanos()
        };
        while late_segments.front().is_some_and(is_expired) {
            late_segments.pop_front();
        }
        if late_segments.is_empty() {
            self.0 = None;
        }
    }

    /// Memory that it points to, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let late_segments = self.0.as_ref();
        late_segments.map_or(0, |segments| {
            size_of::<VecDeque<LateSegment>>() + segments.capacity() * size_of::<LateSegment>()
        })
    }
}

/// Joins the two oldest. Data between them counts as late too, and no verdict follows.
fn join_oldest(late_segments: &mut VecDeque<LateSegment>) {
    if let Some(first) = late_segments.pop_front()
        && let Some(second) = late_segments.front_mut()
    {
        let (from, to) = (first.seq, second.end);
        second.seq = if second.seq.is_after(from) {
            from
        } else {
            second.seq
        };
        second.end = if first.end.is_after(to) {
            first.end
        } else {
            to
        };
        second.is_repeated |= first.is_repeated;
        second.at = second.at.max(first.at);
        second.counted_as = None;
    }
}
