//! A segment that awaits an answer, in 24 bytes: there are very many of these.
//!
//! Owns the fields of one segment. Does not own the list of its side.

use neph_model::Wall;

use super::Segment;
use crate::sequence::Serial;

/// No segment.
pub(super) const NONE: Awaiting = Awaiting {
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
    /// Its timestamp option.
    pub(super) value: Serial,
    load: Load,
}

/// Bytes in flight with a segment, including its own, its kind and what it awaits.
#[derive(Debug, Clone, Copy)]
struct Load(u32);

impl Load {
    const SYN: u32 = 1 << 31;
    const RETRY: u32 = 1 << 30;
    /// More bytes than any window has in flight.
    const BYTES: u32 = Reply::ECHO.0 - 1;
}

/// Kinds of answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply(u32);

impl Reply {
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

impl Awaiting {
    /// For a segment that passed at `at`.
    #[inline]
    pub(super) fn of(at: Wall, segment: &Segment, in_flight: u32, awaited: Awaited) -> Self {
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        let bits = bit(segment.is_syn(), Load::SYN)
            | bit(awaited.acknowledgement, Reply::ACKNOWLEDGEMENT.0)
            | bit(awaited.echo, Reply::ECHO.0);
        Self {
            at,
            seq: segment.seq,
            end: segment.end(),
            value: segment.stamps.map_or(Serial(0), |(value, _)| value),
            load: Load(in_flight.min(Load::BYTES) | bits),
        }
    }

    pub(super) const fn in_flight(&self) -> u32 {
        self.load.0 & Load::BYTES
    }

    pub(super) const fn is_syn(&self) -> bool {
        self.load.0 & Load::SYN != 0
    }

    /// Whether the segment was retransmitted: its acknowledgement may be of either transmission.
    pub(super) const fn is_repeated(&self) -> bool {
        self.load.0 & Load::RETRY != 0
    }

    /// Whether `ack` acknowledges exactly this segment. For a SYN with data it may be the SYN alone (RFC
    /// 7413, 4.2.2): then the data was refused.
    pub(super) const fn is_acknowledged_by(&self, ack: Serial) -> bool {
        let is_opening = self.is_syn() && ack.is_after(self.seq) && self.end.is_after(ack);
        is_opening || self.end.0 == ack.0
    }

    #[inline]
    pub(super) const fn awaits(&self, answer: Reply) -> bool {
        self.load.0 & answer.0 != 0
    }

    /// Removes an answer that it awaits.
    #[inline]
    pub(super) const fn remove(&mut self, answer: Reply) {
        self.load.0 &= !answer.0;
    }

    /// The same segment, without that answer.
    pub(super) const fn without(mut self, answer: Reply) -> Self {
        self.remove(answer);
        self
    }

    /// Some of it was retransmitted.
    pub(super) const fn mark_retransmitted(&mut self) {
        self.load.0 |= Load::RETRY;
    }

    /// Whether it awaits the acknowledgement of some of `segment`.
    pub(super) fn overlaps(&self, segment: &Segment) -> bool {
        self.awaits(Reply::ACKNOWLEDGEMENT)
            && self.end.is_after(segment.seq)
            && segment.end().is_after(self.seq)
    }
}
