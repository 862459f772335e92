//! What of one side's segments awaits an answer: their acknowledgement, the echo of their time stamp,
//! or both.
//!
//! Owns how much is remembered. Of a window with more segments than that a part is followed, chosen evenly
//! (thinning): each stands for as many as are not. The first few lie where the connection does: most
//! connections have no more, and memory that lies elsewhere costs more than all else.

use std::collections::VecDeque;

use neph_model::Wall;

use super::Segment;
use super::marks::{Mark, Marks};
use super::room::Room;
use super::thinning::{Hole, Thinning};
use crate::ahead::fetch;
use crate::sequence::Serial;

/// Segments that lie with the connection.
const NEAR: usize = 2;

/// Segments that there is room for as soon as there are more: a window of a common size, so that its
/// memory is asked for once and not each time that it grows.
const FAR: usize = 16;

/// More room than most windows take: it is given back when it is not needed.
const LARGE: usize = 512;

/// No segment.
const NONE: Awaiting = Awaiting {
    at: Wall::from_unix_nanos(0),
    seq: Serial(0),
    end: Serial(0),
    value: Serial(0),
    load: Load(0),
};

/// A segment that awaits something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaiting {
    pub(super) at: Wall,
    pub(super) seq: Serial,
    pub(super) end: Serial,
    /// Its time stamp.
    pub(super) value: Serial,
    load: Load,
}

/// Bytes on their way with a segment, its own included, what it is and what it awaits, in four bytes:
/// there are very many of these.
#[derive(Debug, Clone, Copy)]
struct Load(u32);

impl Load {
    const SYN: u32 = 1 << 31;
    const AGAIN: u32 = 1 << 30;
    const ACKNOWLEDGEMENT: u32 = 1 << 29;
    const ECHO: u32 = 1 << 28;
    const ANYTHING: u32 = Self::ACKNOWLEDGEMENT | Self::ECHO;
    /// More bytes than any window has on their way.
    const BYTES: u32 = Self::ECHO - 1;
}

impl Awaiting {
    /// Of a segment that passed at `at`; it awaits nothing yet.
    pub(super) fn of(at: Wall, segment: &Segment, in_flight: u32) -> Self {
        let syn = if segment.is_syn() { Load::SYN } else { 0 };
        Self {
            at,
            seq: segment.seq,
            end: segment.end(),
            value: segment.stamps.map_or(Serial(0), |(value, _)| value),
            load: Load(in_flight.min(Load::BYTES) | syn),
        }
    }

    pub(super) const fn in_flight(&self) -> u32 {
        self.load.0 & Load::BYTES
    }

    pub(super) const fn is_syn(&self) -> bool {
        self.load.0 & Load::SYN != 0
    }

    /// Whether the segment was sent again: whose acknowledgement comes cannot be told.
    pub(super) const fn is_again(&self) -> bool {
        self.load.0 & Load::AGAIN != 0
    }

    /// Whether `ack` acknowledges all of it, and no more. Of a SYN with data the number alone may be (RFC
    /// 7413, 4.2.2): then the data was refused.
    const fn is_what_ends_at(&self, ack: Serial) -> bool {
        let is_opening = self.is_syn() && ack.is_after(self.seq) && self.end.is_after(ack);
        is_opening || self.end.0 == ack.0
    }

    const fn awaits(&self, what: u32) -> bool {
        self.load.0 & what != 0
    }

    const fn awaiting(mut self, what: u32) -> Self {
        self.load.0 |= what;
        self
    }

    fn overlaps(&self, segment: &Segment) -> bool {
        self.awaits(Load::ACKNOWLEDGEMENT)
            && self.end.is_after(segment.seq)
            && segment.end().is_after(self.seq)
    }
}

/// What a new segment is to await.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaited {
    pub(super) acknowledgement: bool,
    pub(super) echo: bool,
}

/// Segments of one side. Those that await an acknowledgement are in the order of their numbers, those
/// that await an echo in that of their time stamps.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Those that await nothing are none.
    near: [Awaiting; NEAR],
    /// All of them, as soon as there are more than have room near; else none.
    far: VecDeque<Awaiting>,
    /// Where not all are followed.
    thinning: Option<Box<Thinning>>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            near: [NONE; NEAR],
            far: VecDeque::new(),
            thinning: None,
        }
    }
}

impl Waiting {
    fn all(&self) -> impl DoubleEndedIterator<Item = &Awaiting> {
        self.near.iter().chain(&self.far)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Awaiting> {
        self.near.iter_mut().chain(&mut self.far)
    }

    /// Whether something may await an answer, or is still remembered although it does not.
    pub(super) fn is_any(&self) -> bool {
        let [first, second] = &self.near;
        (first.load.0 | second.load.0) & Load::ANYTHING != 0 || self.far.capacity() > 0
    }

    /// The segment whose last byte `ack` acknowledges, unless it was sent again.
    pub(super) fn acknowledged(&mut self, ack: Serial) -> Option<Awaiting> {
        let last = self.answered(Load::ACKNOWLEDGEMENT, |one| {
            !one.end.is_after(ack) || one.is_what_ends_at(ack)
        });
        last.filter(|last| last.is_what_ends_at(ack) && !last.is_again())
    }

    /// How many segments `one` stands for, itself included.
    pub(super) fn weight(&self, one: &Awaiting) -> u32 {
        let thinning = self.thinning.as_ref();
        thinning.map_or(1, |thinning| thinning.weight(one.end))
    }

    /// Of what lies behind `segment` and awaits its acknowledgement the oldest time stamp, and when the
    /// first of it passed.
    pub(super) fn beyond(&self, segment: &Segment) -> Option<(Serial, Wall)> {
        if let Some(thinning) = &self.thinning {
            return thinning.hole_of(segment).map(|hole| (hole.value, hole.at));
        }
        let end = segment.end();
        let is_beyond =
            |one: &&Awaiting| one.awaits(Load::ACKNOWLEDGEMENT) && !end.is_after(one.seq);
        let beyond = self.all().filter(is_beyond);
        beyond.map(|one| (one.value, one.at)).reduce(|first, one| {
            let is_older = first.0.is_after(one.0);
            (if is_older { one.0 } else { first.0 }, first.1.min(one.1))
        })
    }

    /// The first segment that carried the time stamp `echo`, at its first echo, which has to
    /// acknowledge it, or it answers something else.
    pub(super) fn echoed(&mut self, ack: Serial, echo: Serial) -> Option<Awaiting> {
        let last = self.answered(Load::ECHO, |one| !one.value.is_after(echo));
        let is_there = |last: &Awaiting| !last.end.is_after(ack) || last.is_what_ends_at(ack);
        last.filter(|last| last.value == echo && is_there(last))
    }

    /// The last of those at the front of which `is` holds: they await `what` no more.
    fn answered(&mut self, what: u32, mut is: impl FnMut(&Awaiting) -> bool) -> Option<Awaiting> {
        let mut answered: Option<&Awaiting> = None;
        let (front, back) = self.far.as_mut_slices();
        for part in [&mut self.near[..], front, back] {
            for one in part.iter_mut().filter(|one| one.awaits(what)) {
                if !is(one) {
                    return answered.copied();
                }
                one.load.0 &= !what;
                answered = Some(&*one);
            }
        }
        answered.copied()
    }

    /// Forgets those that await nothing any more; all up to `acked` is there.
    #[inline]
    pub(super) fn tidy(&mut self, acked: Serial) {
        if (self.thinning.as_mut()).is_some_and(|thinning| thinning.acknowledged(acked)) {
            self.thinning = None;
        }
        if !self.near[0].awaits(Load::ANYTHING) && self.near[1].awaits(Load::ANYTHING) {
            self.near.swap(0, 1);
        }
        if self.far.capacity() == 0 {
            return;
        }
        let is_over = |one: &Awaiting| !one.awaits(Load::ANYTHING);
        while self.far.front().is_some_and(is_over) {
            self.far.pop_front();
        }
        if self.far.is_empty() {
            self.far = VecDeque::new();
        } else if self.far.capacity() > LARGE && self.far.len() * 8 < self.far.capacity() {
            self.far.shrink_to(self.far.len() * 2);
        }
    }

    /// Whether some of `segment` awaits its acknowledgement.
    pub(super) fn holds(&self, segment: &Segment) -> bool {
        match &self.thinning {
            Some(thinning) => thinning.hole_of(segment).is_none(),
            None => self.all().any(|one| one.overlaps(segment)),
        }
    }

    /// `segment` passed, and `next` is behind all that passed before: where not all is followed it is
    /// known from gaps what did not.
    pub(super) fn pass(&mut self, at: Wall, segment: &Segment, next: Option<Serial>) {
        let (Some(thinning), Some(next)) = (&mut self.thinning, next) else {
            return;
        };
        if segment.seq.is_after(next) {
            thinning.remember(Hole {
                from: next,
                to: segment.seq,
                at,
                value: segment.stamps.map_or(Serial(0), |(value, _)| value),
            });
        } else {
            thinning.fill(segment);
        }
    }

    /// What of `segment` awaits its acknowledgement has no sample any more. What lies behind the
    /// highest number (a retransmission that took more along) awaits none.
    pub(super) fn sent_again(&mut self, segment: &Segment) {
        for one in self.all_mut().filter(|one| one.overlaps(segment)) {
            one.load.0 |= Load::AGAIN;
        }
    }

    /// Remembers a segment; `marks` are those before it. Returns how many segments are not followed
    /// therefore, itself perhaps included.
    pub(super) fn push(
        &mut self,
        one: Awaiting,
        awaited: Awaited,
        (marks, room): (&Marks, Room),
    ) -> usize {
        if !(awaited.acknowledgement || awaited.echo) {
            return 0;
        }
        let mut left_out = 0;
        if let Some(thinning) = &mut self.thinning {
            let has_room = self.far.len() < room.most() / 4;
            if let Some(next) = marks.get(Mark::Next).filter(|_| has_room) {
                thinning.lower(next);
            }
            let is_past = |old: &Awaiting| Thinning::is_long_past(old.end, one.end);
            while self.far.front().is_some_and(is_past) {
                self.far.pop_front();
            }
            if !thinning.follows(&one) {
                return 1;
            }
        }
        self.insert(one, awaited);
        while self.far.len() > room.most() {
            left_out += self.thin_out(marks.get(Mark::Acked).or_else(|| marks.get(Mark::First)));
        }
        left_out
    }

    fn insert(&mut self, one: Awaiting, awaited: Awaited) {
        let is_overtaken = awaited.acknowledgement && self.reaches_behind(one.end);
        if is_overtaken {
            self.spill();
            let behind = |other: &&Awaiting| {
                !other.awaits(Load::ACKNOWLEDGEMENT) || other.end.is_after(one.end)
            };
            let behind = self.far.iter().rev().take_while(behind).count();
            let place = self.far.len() - behind;
            self.far.insert(place, one.awaiting(Load::ACKNOWLEDGEMENT));
        }
        let acknowledgement = awaited.acknowledgement && !is_overtaken;
        if acknowledgement || awaited.echo {
            let mut last = one;
            if acknowledgement {
                last = last.awaiting(Load::ACKNOWLEDGEMENT);
            }
            if awaited.echo {
                last = last.awaiting(Load::ECHO);
            }
            self.append(last);
        }
    }

    /// From now on half as many are followed. Returns how many are not any more.
    #[cold]
    fn thin_out(&mut self, acked: Option<Serial>) -> usize {
        let (before, far) = (self.far.len(), &mut self.far);
        let begin = || {
            let unacknowledged = far.iter().filter(|one| one.awaits(Load::ACKNOWLEDGEMENT));
            Box::new(Thinning::begin(acked, unacknowledged))
        };
        let thinning = self.thinning.get_or_insert_with(begin);
        thinning.raise();
        self.far.retain(|one| thinning.follows(one));
        self.far.shrink_to(self.far.len() * 2);
        before - self.far.len()
    }

    /// Whether what awaits its acknowledgement goes further than `end`.
    fn reaches_behind(&self, end: Serial) -> bool {
        let mut last_first = self.all().rev();
        let last = last_first.find(|one| one.awaits(Load::ACKNOWLEDGEMENT));
        last.is_some_and(|last| last.end.is_after(end))
    }

    fn append(&mut self, one: Awaiting) {
        if self.far.is_empty() {
            let free = self.near.iter_mut().find(|one| !one.awaits(Load::ANYTHING));
            if let Some(free) = free {
                *free = one;
                return;
            }
            self.spill();
        }
        self.far.push_back(one);
    }

    /// From here on all lie elsewhere.
    fn spill(&mut self) {
        if self.far.capacity() == 0 {
            self.far.reserve_exact(FAR);
        }
        let near = std::mem::replace(&mut self.near, [NONE; NEAR]);
        let near = near.into_iter().filter(|one| one.awaits(Load::ANYTHING));
        self.far.extend(near);
    }

    /// Each line of memory that it lies in will be needed.
    #[inline]
    pub(super) fn fetch(&self) {
        fetch(&self.near[0]);
        fetch(&self.far);
        fetch(&self.thinning);
    }

    /// Both ends of what lies elsewhere will be.
    #[inline]
    pub(super) fn fetch_far(&self) {
        let ends = [self.far.front(), self.far.back()];
        ends.into_iter().flatten().for_each(fetch);
    }

    /// Bytes of memory beside itself.
    pub(super) fn heap(&self) -> usize {
        let thinning = self.thinning.as_ref().map_or(0, |thinning| thinning.heap());
        self.far.capacity() * size_of::<Awaiting>() + thinning
    }
}
