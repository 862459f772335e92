//! What of one side's segments awaits an answer: their acknowledgement, the echo of their time stamp,
//! or both.
//!
//! Owns how much is remembered. What is beyond is forgotten oldest first: its samples are missing,
//! none is wrong. The first few lie where the connection does: most connections have no more, and
//! memory that lies elsewhere costs more than all else.

use std::collections::VecDeque;

use neph_model::Wall;

use super::Segment;
use crate::ahead::fetch;
use crate::sequence::Serial;

/// How much one side may remember of what awaits an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// 256 segments: 6 KB. Where windows are larger the oldest have no sample.
    Ample,
    /// 8 of them.
    Scarce,
}

impl Room {
    const fn most(self) -> usize {
        match self {
            Self::Ample => 256,
            Self::Scarce => 8,
        }
    }
}

/// Segments that lie with the connection.
const NEAR: usize = 2;

/// Segments that there is room for as soon as there are more: a window of a common size, so that its
/// memory is asked for once and not each time that it grows.
const FAR: usize = 16;

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
    seq: Serial,
    pub(super) end: Serial,
    /// Its time stamp.
    value: Serial,
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
    /// Behind the last of those that were forgotten unacknowledged.
    forgotten: Option<Serial>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            near: [NONE; NEAR],
            far: VecDeque::new(),
            forgotten: None,
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

    /// The segment whose last byte `ack` acknowledges, unless it was sent again, or had to wait at the
    /// receiver for another that was: all before it are answered too, and one of them passed later
    /// or once more.
    pub(super) fn acknowledged(&mut self, ack: Serial) -> Option<Awaiting> {
        let (mut filled, mut again, mut waited) = (None, false, false);
        let last = self.answered(Load::ACKNOWLEDGEMENT, |one| {
            let is_answered = !one.end.is_after(ack);
            if is_answered {
                waited = again || filled > Some(one.at);
                filled = filled.max(Some(one.at));
                again |= one.is_again();
            }
            is_answered
        });
        last.filter(|last| last.end == ack && !last.is_again() && !waited)
    }

    /// Of what lies behind `end` and awaits its acknowledgement the oldest time stamp, and when the
    /// first of it passed.
    pub(super) fn beyond(&self, end: Serial) -> Option<(Serial, Wall)> {
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
        last.filter(|last| last.value == echo && !last.end.is_after(ack))
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

    /// Forgets those that await nothing any more.
    pub(super) fn tidy(&mut self) {
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
        }
    }

    /// Whether some of `segment` awaits its acknowledgement, or may have before it was forgotten.
    pub(super) fn may_hold(&self, segment: &Segment) -> bool {
        let is_forgotten = self
            .forgotten
            .is_some_and(|until| until.is_after(segment.seq));
        is_forgotten || self.all().any(|one| one.overlaps(segment))
    }

    /// What of `segment` awaits its acknowledgement has no sample any more. What lies behind the
    /// highest number (a retransmission that took more along) awaits none.
    pub(super) fn sent_again(&mut self, segment: &Segment) {
        for one in self.all_mut().filter(|one| one.overlaps(segment)) {
            one.load.0 |= Load::AGAIN;
        }
    }

    /// Remembers a segment.
    pub(super) fn push(&mut self, one: Awaiting, awaited: Awaited, room: Room) {
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
        while self.far.len() > room.most() {
            self.forget();
        }
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

    fn forget(&mut self) {
        if let Some(oldest) = self.far.pop_front()
            && oldest.awaits(Load::ACKNOWLEDGEMENT)
        {
            self.forgotten = Some(oldest.end);
        }
    }

    /// Each line of memory that it lies in will be needed.
    #[inline]
    pub(super) fn fetch(&self) {
        fetch(&self.near[0]);
        fetch(&self.near[1]);
        fetch(&self.far);
    }

    /// Both ends of what lies elsewhere will be.
    #[inline]
    pub(super) fn fetch_far(&self) {
        let ends = [self.far.front(), self.far.back()];
        ends.into_iter().flatten().for_each(fetch);
    }

    /// Bytes of memory beside itself.
    pub(super) fn heap(&self) -> usize {
        self.far.capacity() * size_of::<Awaiting>()
    }
}
