//! Counters of a link, which the engine writes and any thread may read while it runs.
//!
//! Owns the counters of both directions and the scheduling of the engine. Does not judge them.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use neph_model::Span;

use crate::direction::Direction;
use crate::truth::{PacketHandling, Verdict};

/// A packet that departs less than this after its due time never counts as late.
pub const MIN_LATENESS: Span = Span::from_micros(50);

/// How late a packet may depart before it counts: [`MIN_LATENESS`], or 2 % of the link's delay if that is
/// more. Packets of a burst depart one after the other (3.5 us each, measured). The last packet of a large
/// message is some 200 us late: negligible at a delay of 20 ms, much at 2 ms.
pub const fn lateness_tolerance(delay: Span) -> Span {
    let share = delay.nanos() / 50;
    if share > MIN_LATENESS.nanos() {
        Span::from_nanos(share)
    } else {
        MIN_LATENESS
    }
}

/// The live counters of a link.
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
    worst_lateness: AtomicI64,
    /// Like `worst_lateness`, since the last [`LinkCounters::take_worst_lateness`].
    recent_worst_lateness: AtomicI64,
}

/// The counters of one direction of a link at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCount {
    /// Packets that departed at the other end, without copies.
    pub delivered: u64,
    /// Copies that departed at the other end, as configured.
    pub copies: u64,
    /// Of the delivered packets, those with a flipped bit, as configured.
    pub corrupted: u64,
    /// Of the delivered packets, those that skipped their delay, as configured.
    pub early: u64,
    /// Packets lost at random, as configured.
    pub lost: u64,
    /// Packets lost in bursts, as configured.
    pub lost_in_burst: u64,
    /// Packets that found the queue full, as configured.
    pub queue_full: u64,
    /// Packets that CoDel dropped, as configured.
    pub codel: u64,
    /// Packets longer than the link's MTU, dropped as configured.
    pub over_mtu: u64,
    /// Packets longer than a frame of 1982 bytes: not forwarded.
    pub too_long: u64,
    /// Packets and copies for which the engine had no memory: a fault of the link.
    pub overflow: u64,
    /// Packets that the kernel refused to send: a fault of the link.
    pub refused: u64,
    /// Packets that the kernel dropped before the engine read them: a fault of the link.
    pub ring_dropped: u64,
    /// Packets that departed later than [`lateness_tolerance`] after their due time.
    pub late: u64,
    /// The largest lateness of a packet.
    pub worst_lateness: Span,
}

impl DirectionCount {
    /// Packets that the link lost without being configured to.
    pub fn unexpected_losses(&self) -> u64 {
        self.too_long + self.overflow + self.refused + self.ring_dropped
    }
}

/// The scheduling that the engine obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulingClass {
    /// Whether it runs under `SCHED_FIFO`.
    pub real_time: bool,
    /// Whether its receive rings are locked in memory.
    pub locked: bool,
}

impl LinkCounters {
    /// The current counters of `direction`.
    pub fn read(&self, direction: Direction) -> DirectionCount {
        let counters = &self.directions[direction.index()];
        let verdict_count =
            |verdict: Verdict| counters.verdicts[verdict.index()].load(Ordering::Relaxed);
        DirectionCount {
            delivered: verdict_count(Verdict::Delivered),
            copies: counters.copies.load(Ordering::Relaxed),
            corrupted: counters.corrupted.load(Ordering::Relaxed),
            early: counters.early.load(Ordering::Relaxed),
            lost: verdict_count(Verdict::Lost),
            lost_in_burst: verdict_count(Verdict::LostInBurst),
            queue_full: verdict_count(Verdict::QueueFull),
            codel: verdict_count(Verdict::CoDel),
            over_mtu: verdict_count(Verdict::OverMtu),
            too_long: verdict_count(Verdict::TooLong),
            overflow: verdict_count(Verdict::Overflow),
            refused: verdict_count(Verdict::Refused),
            ring_dropped: counters.ring_dropped.load(Ordering::Relaxed),
            late: counters.late.load(Ordering::Relaxed),
            worst_lateness: Span::from_nanos(counters.worst_lateness.load(Ordering::Relaxed)),
        }
    }

    /// The largest lateness of a packet since the last call.
    pub fn take_worst_lateness(&self, direction: Direction) -> Span {
        let worst = &self.directions[direction.index()].recent_worst_lateness;
        Span::from_nanos(worst.swap(0, Ordering::Relaxed))
    }

    /// The scheduling that the engine obtained.
    pub fn scheduling(&self) -> SchedulingClass {
        SchedulingClass {
            real_time: self.real_time.load(Ordering::Relaxed),
            locked: self.locked.load(Ordering::Relaxed),
        }
    }

    /// Truth records that were dropped because the disk was too slow.
    pub fn records_missed(&self) -> u64 {
        self.records_missed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_scheduling(&self, scheduling: SchedulingClass) {
        self.real_time
            .store(scheduling.real_time, Ordering::Relaxed);
        self.locked.store(scheduling.locked, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, direction: Direction, verdict: Verdict) {
        let counters = &self.directions[direction.index()];
        counters.verdicts[verdict.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a delivered packet with this handling.
    pub(crate) fn record_delivery(&self, direction: Direction, handling: PacketHandling) {
        let counters = &self.directions[direction.index()];
        if handling.is_copy {
            counters.copies.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.count(direction, Verdict::Delivered);
        if handling.flipped.is_some() {
            counters.corrupted.fetch_add(1, Ordering::Relaxed);
        }
        if handling.is_early {
            counters.early.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the lateness of a packet on a link with this `delay`.
    pub(crate) fn record_departure(&self, direction: Direction, lateness: Span, delay: Span) {
        let counters = &self.directions[direction.index()];
        if lateness > lateness_tolerance(delay) {
            counters.late.fetch_add(1, Ordering::Relaxed);
        }
        for worst in [&counters.worst_lateness, &counters.recent_worst_lateness] {
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
