//! What a link did so far: counters that the engine writes and anybody may read while it runs.
//!
//! Owns the counters of both directions and what the engine was permitted. Does not judge them.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use neph_model::Span;

use crate::direction::Direction;
use crate::truth::{Handling, Verdict};

/// A packet that leaves less than this after it was due is never counted as late.
pub const LATE: Span = Span::from_micros(50);

/// How late a packet may leave before it counts: [`LATE`], or a fiftieth of the link's own delay
/// where that is more. A burst leaves one packet after the other (3.5 us each, measured), so the
/// last of a large message is some 200 us late: nothing on a path of 20 ms, much on one of 2 ms.
pub const fn tolerance(delay: Span) -> Span {
    let share = delay.nanos() / 50;
    if share > LATE.nanos() {
        Span::from_nanos(share)
    } else {
        LATE
    }
}

/// The live counters of one link.
#[derive(Debug, Default)]
pub struct LinkCounters {
    directions: [DirectionCounters; 2],
    real_time: AtomicBool,
    locked: AtomicBool,
    records_missed: AtomicU64,
}

#[derive(Debug, Default)]
struct DirectionCounters {
    verdicts: [AtomicU64; Verdict::COUNT],
    corrupted: AtomicU64,
    copies: AtomicU64,
    early: AtomicU64,
    ring_dropped: AtomicU64,
    late: AtomicU64,
    worst: AtomicI64,
    /// As `worst`, since it was last taken.
    recent_worst: AtomicI64,
}

/// What one direction of a link did, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCount {
    /// Packets that left at the other end, copies not counted.
    pub delivered: u64,
    /// Copies that left at the other end, as asked.
    pub copies: u64,
    /// Of the delivered packets, those that left with a flipped bit, as asked.
    pub corrupted: u64,
    /// Of the delivered packets, those that skipped their delay, as asked.
    pub early: u64,
    /// Packets lost at random, as asked.
    pub lost: u64,
    /// Packets lost in bursts, as asked.
    pub lost_in_burst: u64,
    /// Packets that found the queue full, as asked.
    pub queue_full: u64,
    /// Packets that CoDel dropped, as asked.
    pub codel: u64,
    /// Packets longer than the link's MTU, dropped as asked.
    pub over_mtu: u64,
    /// Packets longer than a frame of 1982 bytes: not carried.
    pub too_long: u64,
    /// Packets and copies that the engine had no room to keep: the link did not keep its word.
    pub overflow: u64,
    /// Packets that the kernel refused to send: the link did not keep its word.
    pub refused: u64,
    /// Packets that the kernel dropped before the engine saw them: the link did not keep its word.
    pub ring_dropped: u64,
    /// Packets that left later than [`tolerance`] after they were due.
    pub late: u64,
    /// How long after it was due the latest packet left.
    pub worst_lateness: Span,
}

impl DirectionCount {
    /// Packets that the link lost without being asked to.
    pub fn broken(&self) -> u64 {
        self.too_long + self.overflow + self.refused + self.ring_dropped
    }
}

/// What the engine was permitted to do for its punctuality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footing {
    /// Whether it runs under `SCHED_FIFO`.
    pub real_time: bool,
    /// Whether its receive rings are locked in memory.
    pub locked: bool,
}

impl LinkCounters {
    /// The counts of `direction` now.
    pub fn read(&self, direction: Direction) -> DirectionCount {
        let counters = &self.directions[direction.index()];
        let of = |verdict: Verdict| counters.verdicts[verdict.index()].load(Ordering::Relaxed);
        DirectionCount {
            delivered: of(Verdict::Delivered),
            copies: counters.copies.load(Ordering::Relaxed),
            corrupted: counters.corrupted.load(Ordering::Relaxed),
            early: counters.early.load(Ordering::Relaxed),
            lost: of(Verdict::Lost),
            lost_in_burst: of(Verdict::LostInBurst),
            queue_full: of(Verdict::QueueFull),
            codel: of(Verdict::CoDel),
            over_mtu: of(Verdict::OverMtu),
            too_long: of(Verdict::TooLong),
            overflow: of(Verdict::Overflow),
            refused: of(Verdict::Refused),
            ring_dropped: counters.ring_dropped.load(Ordering::Relaxed),
            late: counters.late.load(Ordering::Relaxed),
            worst_lateness: Span::from_nanos(counters.worst.load(Ordering::Relaxed)),
        }
    }

    /// How long after it was due the latest packet left since this was last asked.
    pub fn take_worst(&self, direction: Direction) -> Span {
        let worst = &self.directions[direction.index()].recent_worst;
        Span::from_nanos(worst.swap(0, Ordering::Relaxed))
    }

    /// What the engine was permitted.
    pub fn footing(&self) -> Footing {
        Footing {
            real_time: self.real_time.load(Ordering::Relaxed),
            locked: self.locked.load(Ordering::Relaxed),
        }
    }

    /// Truth records that could not be kept because the disk was too slow.
    pub fn records_missed(&self) -> u64 {
        self.records_missed.load(Ordering::Relaxed)
    }

    pub(crate) fn stand_on(&self, footing: Footing) {
        self.real_time.store(footing.real_time, Ordering::Relaxed);
        self.locked.store(footing.locked, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, direction: Direction, verdict: Verdict) {
        let counters = &self.directions[direction.index()];
        counters.verdicts[verdict.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// A packet was delivered, in this state.
    pub(crate) fn deliver(&self, direction: Direction, handling: Handling) {
        let counters = &self.directions[direction.index()];
        if handling.copy {
            counters.copies.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.count(direction, Verdict::Delivered);
        if handling.flipped.is_some() {
            counters.corrupted.fetch_add(1, Ordering::Relaxed);
        }
        if handling.early {
            counters.early.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A packet left this long after it was due, on a link that keeps each for `delay`.
    pub(crate) fn left(&self, direction: Direction, lateness: Span, delay: Span) {
        let counters = &self.directions[direction.index()];
        if lateness > tolerance(delay) {
            counters.late.fetch_add(1, Ordering::Relaxed);
        }
        for worst in [&counters.worst, &counters.recent_worst] {
            worst.fetch_max(lateness.nanos(), Ordering::Relaxed);
        }
    }

    pub(crate) fn ring_dropped(&self, direction: Direction, packets: u32) {
        let counter = &self.directions[direction.index()].ring_dropped;
        counter.fetch_add(u64::from(packets), Ordering::Relaxed);
    }

    pub(crate) fn record_missed(&self) {
        self.records_missed.fetch_add(1, Ordering::Relaxed);
    }
}
