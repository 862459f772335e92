//! Sequence numbers, some still unknown, in little memory. There are very many connections, and each cache
//! line of a connection costs more time than the work on a packet.

use neph_model::Wall;

use crate::sequence::Serial;

/// The numbers of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// Its initial sequence number, if its SYN was seen.
    First,
    /// The number after the highest that it sent.
    Next,
    /// The highest number that the other side acknowledged.
    Acked,
    /// The number that it acknowledged last.
    LatestAck,
    /// Its latest timestamp option.
    NewestTimestamp,
    /// The number after the highest that it had sent when the other side reported a gap.
    GapReported,
}

/// The numbers of one side.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    numbers: [Serial; 6],
    /// A bit for each known number. The highest bit shows that the side has ended the connection.
    known: u8,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            numbers: [Serial(0); 6],
            known: 0,
        }
    }
}

impl Numbers {
    const ENDED: u8 = 1 << 7;

    #[inline]
    pub(super) const fn get(&self, kind: Number) -> Option<Serial> {
        if self.known >> kind as u8 & 1 == 0 {
            return None;
        }
        Some(self.numbers[kind as usize])
    }

    #[inline]
    pub(super) const fn set(&mut self, kind: Number, value: Serial) {
        self.numbers[kind as usize] = value;
        self.known |= 1 << kind as u8;
    }

    /// The side has ended the connection, with FIN or RST.
    #[inline]
    pub(super) const fn end(&mut self) {
        self.known |= Self::ENDED;
    }

    /// Whether the side has ended the connection.
    #[inline]
    pub(super) const fn is_ended(&self) -> bool {
        self.known & Self::ENDED != 0
    }

    #[inline]
    pub(super) const fn forget(&mut self, kind: Number) {
        self.known &= !(1 << kind as u8);
    }
}

/// An optional number of nanoseconds: `Option<i64>` takes twice as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nanos(i64);

impl Default for Nanos {
    fn default() -> Self {
        Self::NONE
    }
}

impl Nanos {
    /// No time of a packet, and no time between two.
    const NONE: Self = Self(i64::MIN);

    /// Since 1970.
    pub(super) const fn at(at: Wall) -> Self {
        Self(at.unix_nanos())
    }

    #[inline]
    pub(super) const fn get(self) -> Option<i64> {
        if self.0 == Self::NONE.0 {
            return None;
        }
        Some(self.0)
    }

    /// As a wall clock time.
    #[inline]
    pub(super) fn wall(self) -> Option<Wall> {
        self.get().map(Wall::from_unix_nanos)
    }
}

/// A time in units of 2^20 ns (about 1 ms), which wraps after 52 days. 0 if there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CoarseTime(u32);

impl CoarseTime {
    pub(super) fn at(at: Wall) -> Self {
        let ticks = u32::try_from((at.unix_nanos() >> 20) & 0xffff_ffff);
        Self(ticks.unwrap_or(0).max(1))
    }

    /// Nanoseconds from this time to `at`.
    pub(super) fn until(self, at: Wall) -> Option<i64> {
        let ticks = Self::at(at).0.wrapping_sub(self.0);
        (self.0 != 0).then(|| i64::from(ticks) << 20)
    }
}
