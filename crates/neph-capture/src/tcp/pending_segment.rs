//! A segment that awaits an answer, in 24 bytes: there are very many of these.
//!
//! Owns the fields of one segment. Does not own the list of its side.

use neph_model::Wall;

use super::Segment;
use crate::sequence::Serial;

/// No segment.
pub(super) const NO_SEGMENT: PendingSegment = PendingSegment {
    at: Wall::from_unix_nanos(0),
    seq: Serial(0),
    end: Serial(0),
    timestamp: Serial(0),
    in_flight_and_flags: InFlightAndFlags(0),
};

/// A segment that awaits something.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingSegment {
    pub(super) at: Wall,
    pub(super) seq: Serial,
    pub(super) end: Serial,
    /// Its timestamp option.
    pub(super) timestamp: Serial,
    in_flight_and_flags: InFlightAndFlags,
}

/// Bytes in flight with a segment, including its own, its kind and what it awaits.
#[derive(Debug, Clone, Copy)]
struct InFlightAndFlags(u32);

impl InFlightAndFlags {
    const SYN: u32 = 1 << 31;
    const RETRANSMITTED: u32 = 1 << 30;
    /// More bytes than any window has in flight.
    const BYTES: u32 = AwaitedAnswer::ECHO.0 - 1;
}

/// Kinds of answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct AwaitedAnswer(u32);

impl AwaitedAnswer {
    pub(super) const ACKNOWLEDGEMENT: Self = Self(1 << 29);
    pub(super) const ECHO: Self = Self(1 << 28);
    pub(super) const ANY: Self = Self(Self::ACKNOWLEDGEMENT.0 | Self::ECHO.0);
}

/// The answers that a new segment awaits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Awaited {
    pub(super) acknowledgement: bool,
    pub(super) echo: bool,
}

impl PendingSegment {
    /// For a segment that passed at `at`.
    #[inline]
    pub(super) fn of(at: Wall, segment: &Segment, in_flight: u32, awaited: Awaited) -> Self {
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        let bits = bit(segment.is_syn(), InFlightAndFlags::SYN)
            | bit(awaited.acknowledgement, AwaitedAnswer::ACKNOWLEDGEMENT.0)
            | bit(awaited.echo, AwaitedAnswer::ECHO.0);
        Self {
            at,
            seq: segment.seq,
            end: segment.end(),
            timestamp: segment.timestamps.map_or(Serial(0), |(value, _)| value),
            in_flight_and_flags: InFlightAndFlags(in_flight.min(InFlightAndFlags::BYTES) | bits),
        }
    }

    pub(super) const fn in_flight(&self) -> u32 {
        self.in_flight_and_flags.0 & InFlightAndFlags::BYTES
    }

    pub(super) const fn is_syn(&self) -> bool {
        self.in_flight_and_flags.0 & InFlightAndFlags::SYN != 0
    }

    /// Whether the segment was retransmitted: its acknowledgement may be of either transmission.
    pub(super) const fn is_retransmitted(&self) -> bool {
        self.in_flight_and_flags.0 & InFlightAndFlags::RETRANSMITTED != 0
    }

    /// Whether `ack` acknowledges exactly this segment. For a SYN with data it may be the SYN alone (RFC
    /// 7413, 4.2.2): then the data was refused.
    pub(super) const fn is_acknowledged_by(&self, ack: Serial) -> bool {
        let is_opening = self.is_syn() && ack.is_after(self.seq) && self.end.is_after(ack);
        is_opening || self.end.0 == ack.0
    }

    #[inline]
    pub(super) const fn awaits(&self, answer: AwaitedAnswer) -> bool {
        self.in_flight_and_flags.0 & answer.0 != 0
    }

    /// Removes an answer that it awaits.
    #[inline]
    pub(super) const fn remove(&mut self, answer: AwaitedAnswer) {
        self.in_flight_and_flags.0 &= !answer.0;
    }

    /// The same segment, without that answer.
    pub(super) const fn without(mut self, answer: AwaitedAnswer) -> Self {
        self.remove(answer);
        self
    }

    /// Some of it was retransmitted.
    pub(super) const fn mark_retransmitted(&mut self) {
        self.in_flight_and_flags.0 |= InFlightAndFlags::RETRANSMITTED;
    }

    /// Whether it awaits the acknowledgement of some of `segment`.
    pub(super) fn overlaps(&self, segment: &Segment) -> bool {
        self.awaits(AwaitedAnswer::ACKNOWLEDGEMENT)
            && self.end.is_after(segment.seq)
            && segment.end().is_after(self.seq)
    }
}
