//! Thinning of a window with more segments than are followed: which are followed, and state of the others.
//!
//! Owns the selection. A hash of a segment's numbers decides, so it depends neither on the time of an answer
//! nor on which segments receivers acknowledge. As a window grows, evenly fewer are followed, and each
//! represents those that are not. Reads no clock.

use std::collections::VecDeque;

use neph_model::Wall;

use super::Segment;
use super::pending_segment::PendingSegment;
use crate::sampling::is_sampled;
use crate::sequence::Serial;

/// Remembered gaps. Beyond that, the two oldest are joined.
const MAX_GAPS: usize = 64;
/// One in four billion is followed.
const MAX_SHIFT: u8 = 32;
/// Data further back than any window (RFC 7323, 2.3) is from before a wrap of the numbers.
const MAX_DISTANCE: i32 = 1 << 30;

/// Numbers that did not pass here when later ones did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) from: Serial,
    pub(super) to: Serial,
    /// When the first segment after it passed.
    pub(super) at: Wall,
    /// The timestamp option of that segment.
    pub(super) timestamp: Serial,
}

/// Thinning of one side.
#[derive(Debug, Clone, Default)]
pub(super) struct Thinning {
    /// One in `2^shift` is followed.
    shift: u8,
    /// Segments up to this end were selected with this shift, when the window was larger.
    larger_window: Option<(Serial, u8)>,
    /// In order.
    gaps: VecDeque<Gap>,
}

impl Thinning {
    /// Begins from a window whose segments were all followed: those after `acked` that await their
    /// acknowledgement, in order.
    pub(super) fn begin<'a>(
        acked: Option<Serial>,
        segments: impl Iterator<Item = &'a PendingSegment>,
    ) -> Self {
        let mut thinning = Self::default();
        let mut next = acked;
        for pending in segments {
            let from = next.unwrap_or(pending.seq);
            if pending.seq.is_after(from) {
                thinning.add_gap(Gap {
                    from,
                    to: pending.seq,
                    at: pending.at,
                    timestamp: pending.timestamp,
                });
            }
            let is_further = next.is_none_or(|next| pending.end.is_after(next));
            next = if is_further { Some(pending.end) } else { next };
        }
        thinning
    }

    /// Number of segments that one ending at `end` represents.
    pub(super) fn weight(&self, end: Serial) -> u32 {
        1 << self.shift_of(end).min(31)
    }

    /// Whether a segment is followed.
    pub(super) fn follows(&self, pending: &PendingSegment) -> bool {
        is_sampled(
            (pending.end.0, pending.timestamp.0),
            self.shift_of(pending.end),
        )
    }

    fn shift_of(&self, end: Serial) -> u8 {
        match self.larger_window {
            Some((until, shift)) if !end.is_after(until) => shift.max(self.shift),
            _ => self.shift,
        }
    }

    /// Halves the share that is followed. False if it cannot fall further: who knows the hash can send
    /// segments that are always followed.
    pub(super) fn halve_share(&mut self) -> bool {
        let can_halve = self.shift < MAX_SHIFT;
        self.shift += u8::from(can_halve);
        can_halve
    }

    /// Doubles the share of segments after `next`. Not while segments of an earlier, smaller share are in
    /// flight.
    pub(super) fn double_share(&mut self, next: Serial) {
        if self.larger_window.is_none() && self.shift > 0 {
            self.larger_window = Some((next, self.shift));
            self.shift -= 1;
        }
    }

    /// All up to `acked` has arrived. Returns whether all is followed again.
    pub(super) fn record_acknowledged(&mut self, acked: Serial) -> bool {
        self.larger_window = self
            .larger_window
            .filter(|(until, _)| until.is_after(acked));
        while self.gaps.front().is_some_and(|gap| !gap.to.is_after(acked)) {
            self.gaps.pop_front();
        }
        self.shift == 0 && self.larger_window.is_none()
    }

    /// Whether a segment lies so far before `next` that its numbers repeat.
    pub(super) fn is_long_past(segment_end: Serial, next: Serial) -> bool {
        next.since(segment_end) > MAX_DISTANCE
    }

    /// Remembers a gap.
    pub(super) fn add_gap(&mut self, gap: Gap) {
        let is_past = |old: &Gap| Self::is_long_past(old.to, gap.to);
        while self.gaps.front().is_some_and(is_past) {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
        if self.gaps.len() > MAX_GAPS
            && let Some(first) = self.gaps.pop_front()
            && let Some(second) = self.gaps.front_mut()
        {
            second.from = first.from;
            second.at = first.at;
        }
    }

    /// The gap that contains a whole segment: none of it passed here before.
    pub(super) fn gap_containing(&self, segment: &Segment) -> Option<&Gap> {
        let contains_segment =
            |gap: &&Gap| !gap.from.is_after(segment.seq) && !segment.end().is_after(gap.to);
        self.gaps.iter().find(contains_segment)
    }

    /// Removes the numbers of a captured segment from gaps.
    pub(super) fn fill_gaps(&mut self, segment: &Segment) {
        let (from, to) = (segment.seq, segment.end());
        let is_overlapping = |gap: &Gap| to.is_after(gap.from) && gap.to.is_after(from);
        if !self.gaps.iter().any(is_overlapping) {
            return;
        }
        let unfilled_parts = |gap: Gap| {
            let parts = if is_overlapping(&gap) {
                [Gap { to: from, ..gap }, Gap { from: to, ..gap }].map(Some)
            } else {
                [Some(gap), None]
            };
            let is_left = |part: &Gap| part.to.is_after(part.from);
            parts.into_iter().flatten().filter(is_left)
        };
        self.gaps = self.gaps.drain(..).flat_map(unfilled_parts).collect();
    }

    /// Memory that it takes, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.gaps.capacity() * size_of::<Gap>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::Numbers;
    use super::super::pending_segment::Awaited;
    use super::super::pending_segments::PendingSegments;
    use super::super::segment_budget::SegmentBudget;
    use super::super::tests::data;
    use super::*;

    fn gap(from: u32, to: u32) -> Gap {
        Gap {
            from: Serial(from),
            to: Serial(to),
            at: Wall::from_unix_nanos(i64::from(from)),
            timestamp: Serial(0),
        }
    }

    fn ranges(thinning: &Thinning) -> Vec<(u32, u32)> {
        let gaps = thinning.gaps.iter();
        gaps.map(|gap| (gap.from.0, gap.to.0)).collect()
    }

    #[test]
    fn filling_part_of_a_gap_leaves_the_rest() {
        let mut thinning = Thinning::default();
        thinning.add_gap(gap(100, 200));
        thinning.add_gap(gap(300, 400));
        assert!(thinning.gap_containing(&data(130, 20, 0)).is_some());
        thinning.fill_gaps(&data(130, 20, 0));
        assert_eq!(ranges(&thinning), [(100, 130), (150, 200), (300, 400)]);
        assert!(thinning.gap_containing(&data(130, 20, 0)).is_none());
        thinning.fill_gaps(&data(190, 150, 0));
        assert_eq!(ranges(&thinning), [(100, 130), (150, 190), (340, 400)]);
        thinning.fill_gaps(&data(100, 300, 0));
        assert_eq!(ranges(&thinning), []);
    }

    #[test]
    fn segments_chosen_to_be_always_followed_are_limited_too() {
        let mut pending_segments = PendingSegments::default();
        let mut untracked = 0;
        for end in (1..=2_000_u32).map(|n| 2 * n) {
            let mut segment = data(end - 2, 2, 0);
            segment.timestamps = Some((Serial(end << 16), Serial(0)));
            let awaited = Awaited {
                acknowledgement: true,
                echo: false,
            };
            let pending = PendingSegment::of(Wall::from_unix_nanos(0), &segment, 0, awaited);
            untracked += pending_segments.push(pending, &Numbers::default(), SegmentBudget::Scarce);
        }
        assert_eq!(untracked, 2_000 - SegmentBudget::Scarce.max_segments());
    }

    #[test]
    fn gaps_are_bounded_and_the_oldest_become_one() {
        let mut thinning = Thinning::default();
        for number in 0..100 {
            thinning.add_gap(gap(number * 20, number * 20 + 10));
        }
        assert_eq!(thinning.gaps.len(), MAX_GAPS);
        assert_eq!(ranges(&thinning)[0], (0, 36 * 20 + 10));
    }

    #[test]
    fn the_followed_share_does_not_depend_on_segment_size_or_step() {
        for size in [1, 100, 536, 1_448, 2_896, 65_160] {
            for step in [1, 2, 4] {
                let mut thinning = Thinning::default();
                (0..4).for_each(|_| assert!(thinning.halve_share()));
                let ends = (1..=16_000_u32).map(|n| n.wrapping_mul(size * step));
                let followed = ends.filter(|end| {
                    let segment = data(end.wrapping_sub(size), size, 0);
                    thinning.follows(&PendingSegment::of(
                        Wall::from_unix_nanos(0),
                        &segment,
                        0,
                        Awaited::default(),
                    ))
                });
                let followed = followed.count();
                // 1,000, with a standard deviation of 31.
                assert!(
                    (850..1_150).contains(&followed),
                    "{size} {step}: {followed}"
                );
            }
        }
    }

    #[test]
    fn samples_chosen_at_a_larger_window_keep_their_weight() {
        let mut thinning = Thinning::default();
        thinning.halve_share();
        thinning.halve_share();
        thinning.double_share(Serial(1_000));
        thinning.double_share(Serial(2_000));
        assert_eq!(thinning.weight(Serial(1_000)), 4);
        assert_eq!(thinning.weight(Serial(1_001)), 2);
        assert!(!thinning.record_acknowledged(Serial(1_000)));
        thinning.double_share(Serial(2_000));
        assert_eq!(thinning.weight(Serial(2_001)), 1);
        assert!(thinning.record_acknowledged(Serial(2_000)));
    }
}
