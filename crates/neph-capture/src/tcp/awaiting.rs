//! A segment that awaits an answer, in 24 bytes: there are very many of these.
//!
//! Owns what is remembered of a segment. Does not own the others of its side.

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
    /// Its time stamp.
    pub(super) value: Serial,
    load: Load,
}

/// Bytes on their way with a segment, its own included, what it is and what it awaits.
#[derive(Debug, Clone, Copy)]
struct Load(u32);

impl Load {
    const SYN: u32 = 1 << 31;
    const AGAIN: u32 = 1 << 30;
    /// More bytes than any window has on their way.
    const BYTES: u32 = Reply::ECHO.0 - 1;
}

/// What may be awaited.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply(u32);

impl Reply {
    pub(super) const ACKNOWLEDGEMENT: Self = Self(1 << 29);
    pub(super) const ECHO: Self = Self(1 << 28);
    pub(super) const ANY: Self = Self(Self::ACKNOWLEDGEMENT.0 | Self::ECHO.0);
}

/// What a new segment is to await.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Awaited {
    pub(super) acknowledgement: bool,
    pub(super) echo: bool,
}

impl Awaiting {
    /// Of a segment that passed at `at`.
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

    /// Whether the segment was sent again: whose acknowledgement comes cannot be told.
    pub(super) const fn is_again(&self) -> bool {
        self.load.0 & Load::AGAIN != 0
    }

    /// Whether `ack` acknowledges all of it, and no more. Of a SYN with data the number alone may be (RFC
    /// 7413, 4.2.2): then the data was refused.
    pub(super) const fn is_what_ends_at(&self, ack: Serial) -> bool {
        let is_opening = self.is_syn() && ack.is_after(self.seq) && self.end.is_after(ack);
        is_opening || self.end.0 == ack.0
    }

    #[inline]
    pub(super) const fn awaits(&self, answer: Reply) -> bool {
        self.load.0 & answer.0 != 0
    }

    /// It awaits that no more.
    #[inline]
    pub(super) const fn answered(&mut self, answer: Reply) {
        self.load.0 &= !answer.0;
    }

    /// The same segment, which does not await that.
    pub(super) const fn without(mut self, answer: Reply) -> Self {
        self.answered(answer);
        self
    }

    /// Some of it was sent again.
    pub(super) const fn sent_again(&mut self) {
        self.load.0 |= Load::AGAIN;
    }

    /// Whether it awaits the acknowledgement of some of `segment`.
    pub(super) fn overlaps(&self, segment: &Segment) -> bool {
        self.awaits(Reply::ACKNOWLEDGEMENT)
            && self.end.is_after(segment.seq)
            && segment.end().is_after(self.seq)
    }
}
