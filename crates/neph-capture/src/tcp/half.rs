//! One side of a connection as a sender: what of it awaits an answer.
//!
//! Owns how much is remembered. What is beyond is forgotten oldest first: its samples are missing,
//! none is wrong.

use std::cmp::Ordering;
use std::collections::VecDeque;

use neph_model::Wall;

use super::Segment;
use crate::sequence::Serial;

/// How much one side may remember of what awaits an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// 256 segments and as many time stamps: 10 KB. Where windows are larger the oldest have no
    /// sample. A host's clock for time stamps ticks each millisecond, so these last for a quarter of a
    /// second of sending without pause.
    Ample,
    /// 8 of each.
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

/// A segment that awaits its acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outstanding {
    pub(super) at: Wall,
    seq: Serial,
    pub(super) end: Serial,
    pub(super) load: Load,
}

/// A time stamp value that awaits its echo.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamped {
    pub(super) at: Wall,
    pub(super) value: Serial,
    /// The echo has to acknowledge this, or it answers something else.
    pub(super) end: Serial,
    pub(super) load: Load,
}

/// Bytes on their way with a segment, its own included, and what it is, in four bytes: there are very
/// many of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load(u32);

impl Load {
    const SYN: u32 = 1 << 31;
    const AGAIN: u32 = 1 << 30;

    fn of(segment: &Segment, in_flight: u32) -> Self {
        let syn = if segment.is_syn() { Self::SYN } else { 0 };
        Self(in_flight.min(Self::AGAIN - 1) | syn)
    }

    pub(super) const fn in_flight(self) -> u32 {
        self.0 & (Self::AGAIN - 1)
    }

    pub(super) const fn is_syn(self) -> bool {
        self.0 & Self::SYN != 0
    }

    /// Whether the segment was sent again: whose acknowledgement comes cannot be told.
    pub(super) const fn is_again(self) -> bool {
        self.0 & Self::AGAIN != 0
    }

    const fn again(self) -> Self {
        Self(self.0 | Self::AGAIN)
    }
}

/// A side of a connection.
#[derive(Debug, Default)]
pub(super) struct Sender {
    /// The number it began with, if its SYN was seen.
    pub(super) first: Option<Serial>,
    /// The number behind the highest that it sent.
    pub(super) next: Option<Serial>,
    /// When that was sent.
    pub(super) next_at: Option<Wall>,
    /// Until where the other side has acknowledged.
    pub(super) acked: Option<Serial>,
    /// The largest segment that the other side takes.
    pub(super) largest: u32,
    /// In the order of their numbers.
    pub(super) outstanding: VecDeque<Outstanding>,
    /// Behind the last of those that had no room.
    forgotten: Option<Serial>,
    pub(super) stamps: VecDeque<Stamped>,
    newest_stamp: Option<Serial>,
    /// The shortest round trip to the other side so far, in nanoseconds.
    pub(super) floor: Option<i64>,
    /// What it acknowledged last, the window it told with that, and how often it said the same again.
    pub(super) said: Option<Serial>,
    pub(super) window: Option<u16>,
    pub(super) repeated: u32,
    pub(super) repeated_at: Option<Wall>,
}

impl Sender {
    /// Bytes that are not acknowledged, up to `end`.
    pub(super) fn in_flight(&self, end: Serial) -> u32 {
        let from = self.acked.or(self.first).unwrap_or(end);
        u32::try_from(end.since(from)).unwrap_or(0)
    }

    /// Reads something of each line of memory that it lies in.
    pub(super) fn fetch(&self) -> u64 {
        let ends = self.outstanding.len() ^ self.stamps.len();
        let numbers = self.next.map_or(0, |next| next.0) ^ self.acked.map_or(0, |acked| acked.0);
        let window = u64::from(self.window.unwrap_or(0)) ^ u64::from(self.repeated);
        ends as u64 ^ u64::from(numbers) ^ window ^ self.floor.map_or(0, i64::cast_unsigned)
    }

    /// Reads something of both ends of its queues.
    pub(super) fn fetch_far(&self) -> u64 {
        let (sent, stamps) = (&self.outstanding, &self.stamps);
        let segments = [sent.front(), sent.back()].into_iter().flatten();
        let stamps = [stamps.front(), stamps.back()].into_iter().flatten();
        let segments = segments.fold(0, |sum, one| sum ^ one.end.0);
        u64::from(stamps.fold(segments, |sum, one| sum ^ one.end.0))
    }

    /// Bytes of memory beside itself.
    pub(super) fn heap(&self) -> usize {
        self.outstanding.capacity() * size_of::<Outstanding>()
            + self.stamps.capacity() * size_of::<Stamped>()
    }

    /// Whether `segment` begins at or behind all that was sent before.
    pub(super) fn is_new(&self, segment: &Segment) -> bool {
        self.next.is_none_or(|next| !next.is_after(segment.seq))
    }

    /// How `segment`'s time stamp compares with the newest that went before it; `None` without stamps.
    pub(super) fn stamp_order(&self, segment: &Segment) -> Option<Ordering> {
        let (value, _) = segment.stamps?;
        Some(value.since(self.newest_stamp?).cmp(&0))
    }

    /// Whether some of `segment` passed here before, or may have: what was forgotten is not known.
    pub(super) fn passed_before(&self, segment: &Segment) -> bool {
        let is_known =
            |until: Option<Serial>| until.is_some_and(|until| until.is_after(segment.seq));
        let overlaps =
            |one: &Outstanding| one.end.is_after(segment.seq) && segment.end().is_after(one.seq);
        is_known(self.acked) || is_known(self.forgotten) || self.outstanding.iter().any(overlaps)
    }

    /// Remembers a segment, once it has been looked at.
    pub(super) fn sent(&mut self, at: Wall, segment: &Segment, room: Room) {
        let load = Load::of(segment, self.in_flight(segment.end()));
        if segment.takes() > 0 && !segment.is_reset() {
            if self.is_new(segment) || !self.passed_before(segment) {
                self.await_answer(at, segment, load, room);
            } else {
                self.sent_again(segment);
            }
        }
        if segment.is_syn() {
            self.first = Some(segment.seq);
        }
        self.stamped(at, segment, load, room);
        if self.next.is_none_or(|next| segment.end().is_after(next)) {
            self.next = Some(segment.end());
            self.next_at = Some(at);
        }
    }

    /// Remembers a segment that passed here for the first time, those behind it in order.
    fn await_answer(&mut self, at: Wall, segment: &Segment, load: Load, room: Room) {
        while self.outstanding.len() >= room.most() {
            let oldest = self.outstanding.pop_front();
            self.forgotten = oldest.map(|oldest| oldest.end).or(self.forgotten);
        }
        let (seq, end) = (segment.seq, segment.end());
        let one = Outstanding { at, seq, end, load };
        let behind = self.outstanding.iter().rev();
        let behind = behind.take_while(|other| other.end.is_after(end)).count();
        self.outstanding
            .insert(self.outstanding.len() - behind, one);
    }

    /// What of it still awaits its acknowledgement has no sample any more; what lies behind the
    /// highest number (a retransmission that took more along) awaits none.
    fn sent_again(&mut self, segment: &Segment) {
        for waiting in &mut self.outstanding {
            let overlaps = waiting.end.is_after(segment.seq) && segment.end().is_after(waiting.seq);
            if overlaps {
                waiting.load = waiting.load.again();
            }
        }
    }

    /// Remembers a time stamp that nothing was sent with before. One that a bare acknowledgement
    /// used first is left out: its echo may answer what followed up to a tick later.
    fn stamped(&mut self, at: Wall, segment: &Segment, load: Load, room: Room) {
        let Some((value, _)) = segment.stamps else {
            return;
        };
        if self
            .newest_stamp
            .is_some_and(|newest| !value.is_after(newest))
        {
            return;
        }
        self.newest_stamp = Some(value);
        if segment.takes() > 0 && !segment.is_reset() {
            let stamped = Stamped {
                at,
                value,
                end: segment.end(),
                load,
            };
            while self.stamps.len() >= room.most() {
                self.stamps.pop_front();
            }
            self.stamps.push_back(stamped);
        }
    }
}

/// Gives the memory of a queue back that was long and is empty.
pub(super) fn release<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > 16 {
        *queue = VecDeque::new();
    }
}
