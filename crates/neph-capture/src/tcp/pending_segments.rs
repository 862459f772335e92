//! Segments of one side that await an answer: their acknowledgement, the echo of their timestamp, or both.
//!
//! Owns how many are remembered. Of a larger window a part is followed, selected evenly (thinning), and each
//! segment represents those that are not. The first few are stored in the connection itself. Most connections
//! have no more, and access to other memory would take the most time.

use std::collections::VecDeque;

use neph_model::Wall;

use super::Segment;
use super::numbers::{Number, Numbers};
use super::pending_segment::{AwaitedAnswer, NO_SEGMENT, PendingSegment};
use super::segment_budget::SegmentBudget;
use super::thinning::{Gap, Thinning};
use crate::prefetch::prefetch;
use crate::sequence::Serial;

/// Segments that are stored in the connection.
const INLINE_SEGMENTS: usize = 2;

/// Initial room for more segments: a window of a common size, so that memory is allocated once.
const INITIAL_HEAP_SEGMENTS: usize = 16;

/// More room than most windows need: it is freed when it is not needed.
const LARGE_CAPACITY: usize = 512;

/// Segments of one side. Those that await an acknowledgement are in the order of their numbers, those that
/// await an echo in the order of their timestamps.
#[derive(Debug)]
pub(super) enum PendingSegments {
    /// In the connection. Entries that await nothing are empty.
    Inline([PendingSegment; INLINE_SEGMENTS]),
    /// On the heap, as there are more.
    Heap(HeapSegments),
}

/// More segments than fit into the connection.
#[derive(Debug)]
pub(super) struct HeapSegments {
    segments: VecDeque<PendingSegment>,
    /// Set where not all are followed.
    thinning: Option<Box<Thinning>>,
}

impl Default for PendingSegments {
    fn default() -> Self {
        Self::Inline([NO_SEGMENT; INLINE_SEGMENTS])
    }
}

impl PendingSegments {
    /// Both parts of them, in order.
    fn slices(&self) -> (&[PendingSegment], &[PendingSegment]) {
        match self {
            Self::Inline(inline) => (inline, &[]),
            Self::Heap(heap) => heap.segments.as_slices(),
        }
    }

    fn slices_mut(&mut self) -> (&mut [PendingSegment], &mut [PendingSegment]) {
        match self {
            Self::Inline(inline) => (inline, &mut []),
            Self::Heap(heap) => heap.segments.as_mut_slices(),
        }
    }

    fn segments(&self) -> impl DoubleEndedIterator<Item = &PendingSegment> {
        let (front, back) = self.slices();
        front.iter().chain(back)
    }

    fn segments_mut(&mut self) -> impl Iterator<Item = &mut PendingSegment> {
        let (front, back) = self.slices_mut();
        front.iter_mut().chain(back)
    }

    fn thinning(&self) -> Option<&Thinning> {
        match self {
            Self::Inline(_) => None,
            Self::Heap(heap) => heap.thinning.as_deref(),
        }
    }

    /// Whether some may await an answer, or are still remembered although they do not.
    pub(super) fn has_any(&self) -> bool {
        match self {
            Self::Inline([first, second]) => {
                first.awaits(AwaitedAnswer::ANY) || second.awaits(AwaitedAnswer::ANY)
            }
            Self::Heap(_) => true,
        }
    }

    /// The segment whose last byte `ack` acknowledges, unless it was retransmitted.
    pub(super) fn take_acknowledged(&mut self, ack: Serial) -> Option<PendingSegment> {
        let last = self.take_answered(AwaitedAnswer::ACKNOWLEDGEMENT, |pending| {
            !pending.end.is_after(ack) || pending.is_acknowledged_by(ack)
        });
        last.filter(|last| last.is_acknowledged_by(ack) && !last.is_retransmitted())
    }

    /// Number of segments that `pending` represents, including itself.
    pub(super) fn weight(&self, pending: &PendingSegment) -> u32 {
        self.thinning()
            .map_or(1, |thinning| thinning.weight(pending.end))
    }

    /// Among segments after `segment` that await their acknowledgement: the oldest timestamp option, and when
    /// the first one passed.
    pub(super) fn first_pending_after(&self, segment: &Segment) -> Option<(Serial, Wall)> {
        if let Some(thinning) = self.thinning() {
            return thinning
                .gap_containing(segment)
                .map(|gap| (gap.timestamp, gap.at));
        }
        let end = segment.end();
        let is_beyond = |pending: &&PendingSegment| {
            pending.awaits(AwaitedAnswer::ACKNOWLEDGEMENT) && !end.is_after(pending.seq)
        };
        let beyond = self.segments().filter(is_beyond);
        beyond
            .map(|pending| (pending.timestamp, pending.at))
            .reduce(|first, other| {
                let is_older = first.0.is_after(other.0);
                (
                    if is_older { other.0 } else { first.0 },
                    first.1.min(other.1),
                )
            })
    }

    /// The first segment that carried the timestamp `echo`, at its first echo. That must acknowledge the
    /// segment, otherwise it answers another one.
    pub(super) fn take_echoed(&mut self, ack: Serial, echo: Serial) -> Option<PendingSegment> {
        let last = self.take_answered(AwaitedAnswer::ECHO, |pending| {
            !pending.timestamp.is_after(echo)
        });
        let is_acknowledged =
            |last: &PendingSegment| !last.end.is_after(ack) || last.is_acknowledged_by(ack);
        last.filter(|last| last.timestamp == echo && is_acknowledged(last))
    }

    /// The last segment at the front for which `is_covered` holds. All of these await this reply no more.
    fn take_answered(
        &mut self,
        reply: AwaitedAnswer,
        mut is_covered: impl FnMut(&PendingSegment) -> bool,
    ) -> Option<PendingSegment> {
        let mut answered: Option<&PendingSegment> = None;
        for pending in self.segments_mut().filter(|pending| pending.awaits(reply)) {
            if !is_covered(pending) {
                return answered.copied();
            }
            pending.remove(reply);
            answered = Some(&*pending);
        }
        answered.copied()
    }

    /// Forgets segments that await nothing any more. All up to `acked` has arrived.
    #[inline]
    pub(super) fn forget_answered(&mut self, acked: Serial) {
        match self {
            Self::Inline(inline) => {
                if !inline[0].awaits(AwaitedAnswer::ANY) && inline[1].awaits(AwaitedAnswer::ANY) {
                    inline.swap(0, 1);
                }
            }
            Self::Heap(heap) => {
                if heap.forget_answered(acked) {
                    *self = Self::default();
                }
            }
        }
    }

    /// Whether some of `segment` awaits its acknowledgement.
    pub(super) fn has_passed_before(&self, segment: &Segment) -> bool {
        match self.thinning() {
            Some(thinning) => thinning.gap_containing(segment).is_none(),
            None => self.segments().any(|pending| pending.overlaps(segment)),
        }
    }

    /// Records that `segment` passed; `next` is after all that passed before. Where not all is followed, the
    /// gaps show what did not pass.
    pub(super) fn record_passage(&mut self, at: Wall, segment: &Segment, next: Option<Serial>) {
        let Self::Heap(heap) = self else { return };
        let (Some(thinning), Some(next)) = (&mut heap.thinning, next) else {
            return;
        };
        if segment.seq.is_after(next) {
            thinning.add_gap(Gap {
                from: next,
                to: segment.seq,
                at,
                timestamp: segment.timestamps.map_or(Serial(0), |(value, _)| value),
            });
        } else {
            thinning.fill_gaps(segment);
        }
    }

    /// Parts of `segment` that await their acknowledgement have no sample any more. Data after the highest
    /// number (a longer retransmission) awaits none.
    pub(super) fn mark_retransmitted(&mut self, segment: &Segment) {
        for pending in self
            .segments_mut()
            .filter(|pending| pending.overlaps(segment))
        {
            pending.mark_retransmitted();
        }
    }

    /// Remembers a segment; `numbers` are from before it. Returns how many segments are therefore not followed,
    /// possibly including itself.
    #[inline]
    pub(super) fn push(
        &mut self,
        pending: PendingSegment,
        numbers: &Numbers,
        budget: SegmentBudget,
    ) -> usize {
        if !pending.awaits(AwaitedAnswer::ANY) {
            return 0;
        }
        if let Self::Heap(heap) = self
            && !heap.follows(&pending, numbers, budget)
        {
            return 1;
        }
        if pending.awaits(AwaitedAnswer::ACKNOWLEDGEMENT) && self.reaches_beyond(pending.end) {
            self.insert(pending);
        } else {
            self.append(pending);
        }
        match self {
            Self::Heap(heap) if heap.segments.len() > budget.max_segments() => {
                heap.thin_out(numbers, budget)
            }
            _ => 0,
        }
    }

    /// Inserts a reordered segment: for its acknowledgement in order, for its echo as the last.
    #[cold]
    fn insert(&mut self, pending: PendingSegment) {
        let segments = self.move_to_heap();
        let is_later = |other: &&PendingSegment| {
            !other.awaits(AwaitedAnswer::ACKNOWLEDGEMENT) || other.end.is_after(pending.end)
        };
        let later_count = segments.iter().rev().take_while(is_later).count();
        segments.insert(
            segments.len() - later_count,
            pending.without(AwaitedAnswer::ECHO),
        );
        if pending.awaits(AwaitedAnswer::ECHO) {
            segments.push_back(pending.without(AwaitedAnswer::ACKNOWLEDGEMENT));
        }
    }

    /// Whether segments that await their acknowledgement go further than `end`.
    fn reaches_beyond(&self, end: Serial) -> bool {
        let mut newest_first = self.segments().rev();
        let last = newest_first.find(|pending| pending.awaits(AwaitedAnswer::ACKNOWLEDGEMENT));
        last.is_some_and(|last| last.end.is_after(end))
    }

    #[inline]
    fn append(&mut self, pending: PendingSegment) {
        if let Self::Inline(inline) = self
            && let Some(free_entry) = inline
                .iter_mut()
                .find(|pending| !pending.awaits(AwaitedAnswer::ANY))
        {
            *free_entry = pending;
            return;
        }
        self.move_to_heap().push_back(pending);
    }

    /// Moves all segments to the heap.
    fn move_to_heap(&mut self) -> &mut VecDeque<PendingSegment> {
        if let Self::Inline(inline) = self {
            let mut segments = VecDeque::with_capacity(INITIAL_HEAP_SEGMENTS);
            segments.extend(
                inline
                    .iter()
                    .filter(|pending| pending.awaits(AwaitedAnswer::ANY)),
            );
            *self = Self::Heap(HeapSegments {
                segments,
                thinning: None,
            });
        }
        match self {
            Self::Heap(heap) => &mut heap.segments,
            Self::Inline(_) => unreachable!("they were moved"),
        }
    }

    /// Prefetches both ends of the heap's segments.
    #[inline]
    pub(super) fn prefetch_far(&self) {
        if let Self::Heap(heap) = self {
            let ends = [heap.segments.front(), heap.segments.back()];
            ends.into_iter().flatten().for_each(prefetch);
        }
    }

    /// Memory that it points to, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Inline(_) => 0,
            Self::Heap(heap) => {
                let thinning = heap
                    .thinning
                    .as_ref()
                    .map_or(0, |thinning| thinning.heap_bytes());
                heap.segments.capacity() * size_of::<PendingSegment>() + thinning
            }
        }
    }
}

impl HeapSegments {
    /// Forgets segments that await nothing any more. All up to `acked` has arrived. Returns whether none is
    /// left.
    fn forget_answered(&mut self, acked: Serial) -> bool {
        if (self.thinning.as_mut()).is_some_and(|thinning| thinning.record_acknowledged(acked)) {
            self.thinning = None;
        }
        let awaits_nothing = |pending: &PendingSegment| !pending.awaits(AwaitedAnswer::ANY);
        while self.segments.front().is_some_and(awaits_nothing) {
            self.segments.pop_front();
        }
        if self.segments.is_empty() {
            self.segments = VecDeque::new();
        } else if self.segments.capacity() > LARGE_CAPACITY
            && self.segments.len() * 8 < self.segments.capacity()
        {
            self.segments.shrink_to(self.segments.len() * 2);
        }
        self.segments.is_empty() && self.thinning.is_none()
    }

    /// Whether a new segment is followed.
    fn follows(
        &mut self,
        pending: &PendingSegment,
        numbers: &Numbers,
        budget: SegmentBudget,
    ) -> bool {
        let Some(thinning) = &mut self.thinning else {
            return true;
        };
        let has_room = self.segments.len() < budget.max_segments() / 4;
        if let Some(next) = numbers.get(Number::Next).filter(|_| has_room) {
            thinning.double_share(next);
        }
        let is_past = |old: &PendingSegment| Thinning::is_long_past(old.end, pending.end);
        while self.segments.front().is_some_and(is_past) {
            self.segments.pop_front();
        }
        thinning.follows(pending)
    }

    /// Halves the followed share until there is room. Returns how many are no longer followed.
    #[cold]
    fn thin_out(&mut self, numbers: &Numbers, budget: SegmentBudget) -> usize {
        let (segment_count_before, segments) = (self.segments.len(), &mut self.segments);
        let begin_thinning = || {
            let acked = numbers
                .get(Number::Acked)
                .or_else(|| numbers.get(Number::First));
            let unacknowledged = segments
                .iter()
                .filter(|pending| pending.awaits(AwaitedAnswer::ACKNOWLEDGEMENT));
            Box::new(Thinning::begin(acked, unacknowledged))
        };
        let thinning = self.thinning.get_or_insert_with(begin_thinning);
        while self.segments.len() > budget.max_segments() {
            if thinning.halve_share() {
                self.segments.retain(|pending| thinning.follows(pending));
            } else {
                self.segments.truncate(budget.max_segments());
            }
        }
        self.segments.shrink_to(self.segments.len() * 2);
        segment_count_before - self.segments.len()
    }
}
