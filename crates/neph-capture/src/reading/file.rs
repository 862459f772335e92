//! A capture that was read: its counts, and the times of its packets.

use crate::ReadSummary;
use neph_model::Span;

/// A capture that was read.
#[derive(Debug)]
pub struct File {
    pub name: String,
    pub summary: ReadSummary,
    /// Packets without IP, or of an unknown link type.
    pub not_ip: u64,
    /// The unknown link type of some of them.
    pub unknown_link: Option<u32>,
    /// When its packets passed.
    pub times: Option<PacketTimes>,
    /// Packets without a time in the file.
    pub without_time: u64,
}

/// The times of a capture's packets, in the order of the file; nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct PacketTimes {
    /// Of the first packet.
    pub first: i64,
    /// The latest.
    pub last: i64,
    /// Packets with an earlier time than the latest before them.
    out_of_order: u64,
    /// The largest such step back, in nanoseconds.
    largest_step_back: i64,
    /// The longest time without a packet, in nanoseconds.
    longest_gap: i64,
}

impl PacketTimes {
    /// Packets of several processors and interfaces are out of order by less than this.
    const MAX_DISORDER: Span = Span::from_nanos(5_000_000_000);

    /// Few captures are without packets for so long, and a clock that is set usually jumps further.
    const MIN_LONG_GAP: Span = Span::from_secs(86_400);

    pub const fn new(time: i64) -> Self {
        Self {
            first: time,
            last: time,
            out_of_order: 0,
            largest_step_back: 0,
            longest_gap: 0,
        }
    }

    #[inline]
    pub fn add(&mut self, time: i64) {
        if time >= self.last {
            self.longest_gap = self.longest_gap.max(time.saturating_sub(self.last));
            self.last = time;
        } else {
            self.out_of_order += 1;
            self.largest_step_back = self.largest_step_back.max(self.last.saturating_sub(time));
        }
    }

    /// Whether both have packets in a common interval.
    pub const fn overlaps(self, other: Self) -> bool {
        self.first < other.last && other.first < self.last
    }

    /// The largest step back, if it is more than disorder.
    pub fn large_step_back(self) -> Option<Span> {
        Some(Span::from_nanos(self.largest_step_back)).filter(|step| *step > Self::MAX_DISORDER)
    }

    /// The longest time without a packet, where that is more than a day.
    pub fn long_gap(self) -> Option<Span> {
        Some(Span::from_nanos(self.longest_gap)).filter(|gap| *gap > Self::MIN_LONG_GAP)
    }

    /// Packets that are out of order; 0 if the times jump.
    pub const fn out_of_order(self) -> u64 {
        if self.largest_step_back > Self::MAX_DISORDER.nanos() {
            0
        } else {
            self.out_of_order
        }
    }
}
