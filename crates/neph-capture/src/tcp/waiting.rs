//! Segments of one side that await an answer: their acknowledgement, the echo of their timestamp, or both.
//!
//! Owns how many are remembered. Of a larger window a part is followed, selected evenly (thinning), and each
//! segment represents those that are not. The first few are stored in the connection itself. Most connections
//! have no more, and access to other memory would take the most time.

use std::collections::VecDeque;

use neph_model::Wall;

use super::Segment;
use super::awaiting::{Awaiting, NONE, Reply};
use super::numbers::{Number, Numbers};
use super::room::Room;
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
pub(super) enum Waiting {
    /// In the connection. Entries that await nothing are empty.
    Inline([Awaiting; INLINE_SEGMENTS]),
    /// On the heap, as there are more.
    Heap(HeapSegments),
}

/// More segments than fit into the connection.
#[derive(Debug)]
pub(super) struct HeapSegments {
    segments: VecDeque<Awaiting>,
    /// Set where not all are followed.
    thinning: Option<Box<Thinning>>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self::Inline([NONE; INLINE_SEGMENTS])
    }
}

impl Waiting {
    /// Both parts of them, in order.
    fn slices(&self) -> (&[Awaiting], &[Awaiting]) {
        match self {
            Self::Inline(inline) => (inline, &[]),
            Self::Heap(heap) => heap.segments.as_slices(),
        }
    }

    fn slices_mut(&mut self) -> (&mut [Awaiting], &mut [Awaiting]) {
        match self {
            Self::Inline(inline) => (inline, &mut []),
            Self::Heap(heap) => heap.segments.as_mut_slices(),
        }
    }

    fn segments(&self) -> impl DoubleEndedIterator<Item = &Awaiting> {
        let (front, back) = self.slices();
        front.iter().chain(back)
    }

    fn segments_mut(&mut self) -> impl Iterator<Item = &mut Awaiting> {
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
            Self::Inline([first, second]) => first.awaits(Reply::ANY) || second.awaits(Reply::ANY),
            Self::Heap(_) => true,
        }
    }

    /// The segment whose last byte `ack` acknowledges, unless it was retransmitted.
    pub(super) fn take_acknowledged(&mut self, ack: Serial) -> Option<Awaiting> {
        let last = self.take_answered(Reply::ACKNOWLEDGEMENT, |awaiting| {
            !awaiting.end.is_after(ack) || awaiting.is_acknowledged_by(ack)
        });
        last.filter(|last| last.is_acknowledged_by(ack) && !last.is_repeated())
    }

    /// Number of segments that `awaiting` represents, including itself.
    pub(super) fn weight(&self, awaiting: &Awaiting) -> u32 {
        self.thinning()
            .map_or(1, |thinning| thinning.weight(awaiting.end))
    }

    /// Among segments after `segment` that await their acknowledgement: the oldest timestamp option, and when
    /// the first one passed.
    pub(super) fn first_after(&self, segment: &Segment) -> Option<(Serial, Wall)> {
        if let Some(thinning) = self.thinning() {
            return thinning.gap_of(segment).map(|gap| (gap.value, gap.at));
        }
        let end = segment.end();
        let is_beyond = |awaiting: &&Awaiting| {
            awaiting.awaits(Reply::ACKNOWLEDGEMENT) && !end.is_after(awaiting.seq)
        };
        let beyond = self.segments().filter(is_beyond);
        beyond
            .map(|awaiting| (awaiting.value, awaiting.at))
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
    pub(super) fn take_echoed(&mut self, ack: Serial, echo: Serial) -> Option<Awaiting> {
        let last = self.take_answered(Reply::ECHO, |awaiting| !awaiting.value.is_after(echo));
        let is_acknowledged =
            |last: &Awaiting| !last.end.is_after(ack) || last.is_acknowledged_by(ack);
        last.filter(|last| last.value == echo && is_acknowledged(last))
    }

    /// The last segment at the front for which `is_covered` holds. All of these await this reply no more.
    fn take_answered(
        &mut self,
        reply: Reply,
        mut is_covered: impl FnMut(&Awaiting) -> bool,
    ) -> Option<Awaiting> {
        let mut answered: Option<&Awaiting> = None;
        for awaiting in self
            .segments_mut()
            .filter(|awaiting| awaiting.awaits(reply))
        {
            if !is_covered(awaiting) {
                return answered.copied();
            }
            awaiting.remove(reply);
            answered = Some(&*awaiting);
        }
        answered.copied()
    }

    /// Forgets segments that await nothing any more. All up to `acked` has arrived.
    #[inline]
    pub(super) fn forget_answered(&mut self, acked: Serial) {
        match self {
            Self::Inline(inline) => {
                if !inline[0].awaits(Reply::ANY) && inline[1].awaits(Reply::ANY) {
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
    pub(super) fn has_passed(&self, segment: &Segment) -> bool {
        match self.thinning() {
            Some(thinning) => thinning.gap_of(segment).is_none(),
            None => self.segments().any(|awaiting| awaiting.overlaps(segment)),
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
            thinning.remember(Gap {
                from: next,
                to: segment.seq,
                at,
                value: segment.stamps.map_or(Serial(0), |(value, _)| value),
            });
        } else {
            thinning.fill(segment);
        }
    }

    /// Parts of `segment` that await their acknowledgement have no sample any more. Data after the highest
    /// number (a longer retransmission) awaits none.
    pub(super) fn mark_retransmitted(&mut self, segment: &Segment) {
        for awaiting in self
            .segments_mut()
            .filter(|awaiting| awaiting.overlaps(segment))
        {
            awaiting.mark_retransmitted();
        }
    }

    /// Remembers a segment; `numbers` are from before it. Returns how many segments are therefore not followed,
    /// possibly including itself.
    #[inline]
    pub(super) fn push(&mut self, awaiting: Awaiting, numbers: &Numbers, room: Room) -> usize {
        if !awaiting.awaits(Reply::ANY) {
            return 0;
        }
        if let Self::Heap(heap) = self
            && !heap.follows(&awaiting, numbers, room)
        {
            return 1;
        }
        if awaiting.awaits(Reply::ACKNOWLEDGEMENT) && self.reaches_behind(awaiting.end) {
            self.insert(awaiting);
        } else {
            self.append(awaiting);
        }
        match self {
            Self::Heap(heap) if heap.segments.len() > room.most() => heap.thin_out(numbers, room),
            _ => 0,
        }
    }

    /// Inserts a reordered segment: for its acknowledgement in order, for its echo as the last.
    #[cold]
    fn insert(&mut self, awaiting: Awaiting) {
        let segments = self.spill();
        let is_later = |other: &&Awaiting| {
            !other.awaits(Reply::ACKNOWLEDGEMENT) || other.end.is_after(awaiting.end)
        };
        let later_count = segments.iter().rev().take_while(is_later).count();
        segments.insert(segments.len() - later_count, awaiting.without(Reply::ECHO));
        if awaiting.awaits(Reply::ECHO) {
            segments.push_back(awaiting.without(Reply::ACKNOWLEDGEMENT));
        }
    }

    /// Whether segments that await their acknowledgement go further than `end`.
    fn reaches_behind(&self, end: Serial) -> bool {
        let mut last_first = self.segments().rev();
        let last = last_first.find(|awaiting| awaiting.awaits(Reply::ACKNOWLEDGEMENT));
        last.is_some_and(|last| last.end.is_after(end))
    }

    #[inline]
    fn append(&mut self, awaiting: Awaiting) {
        if let Self::Inline(inline) = self
            && let Some(free) = inline
                .iter_mut()
                .find(|awaiting| !awaiting.awaits(Reply::ANY))
        {
            *free = awaiting;
            return;
        }
        self.spill().push_back(awaiting);
    }

    /// Moves all segments to the heap.
    fn spill(&mut self) -> &mut VecDeque<Awaiting> {
        if let Self::Inline(inline) = self {
            let mut segments = VecDeque::with_capacity(INITIAL_HEAP_SEGMENTS);
            segments.extend(inline.iter().filter(|awaiting| awaiting.awaits(Reply::ANY)));
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
                heap.segments.capacity() * size_of::<Awaiting>() + thinning
            }
        }
    }
}

impl HeapSegments {
    /// Forgets segments that await nothing any more. All up to `acked` has arrived. Returns whether none is
    /// left.
    fn forget_answered(&mut self, acked: Serial) -> bool {
        if (self.thinning.as_mut()).is_some_and(|thinning| thinning.acknowledged(acked)) {
            self.thinning = None;
        }
        let is_over = |awaiting: &Awaiting| !awaiting.awaits(Reply::ANY);
        while self.segments.front().is_some_and(is_over) {
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
    fn follows(&mut self, awaiting: &Awaiting, numbers: &Numbers, room: Room) -> bool {
        let Some(thinning) = &mut self.thinning else {
            return true;
        };
        let has_room = self.segments.len() < room.most() / 4;
        if let Some(next) = numbers.get(Number::Next).filter(|_| has_room) {
            thinning.lower(next);
        }
        let is_past = |old: &Awaiting| Thinning::is_long_past(old.end, awaiting.end);
        while self.segments.front().is_some_and(is_past) {
            self.segments.pop_front();
        }
        thinning.follows(awaiting)
    }

    /// Halves the followed share until there is room. Returns how many are no longer followed.
    #[cold]
    fn thin_out(&mut self, numbers: &Numbers, room: Room) -> usize {
        let (before, segments) = (self.segments.len(), &mut self.segments);
        let begin = || {
            let acked = numbers
                .get(Number::Acked)
                .or_else(|| numbers.get(Number::First));
            let unacknowledged = segments
                .iter()
                .filter(|awaiting| awaiting.awaits(Reply::ACKNOWLEDGEMENT));
            Box::new(Thinning::begin(acked, unacknowledged))
        };
        let thinning = self.thinning.get_or_insert_with(begin);
        while self.segments.len() > room.most() {
            if thinning.raise() {
                self.segments.retain(|awaiting| thinning.follows(awaiting));
            } else {
                self.segments.truncate(room.most());
            }
        }
        self.segments.shrink_to(self.segments.len() * 2);
        before - self.segments.len()
    }
}
