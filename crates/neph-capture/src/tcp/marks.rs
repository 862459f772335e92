//! Numbers of which some are not known yet, in little memory: there are very many connections, and
//! each line of memory that a packet needs of its connection costs more than what is done with it.

use neph_model::Wall;

use crate::sequence::Serial;

/// What the numbers of one side are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The number it began with, if its SYN was seen.
    First,
    /// The number behind the highest that it sent.
    Next,
    /// Until where the other side has acknowledged.
    Acked,
    /// What it acknowledged last.
    Said,
    /// The latest of its time stamps.
    NewestStamp,
    /// The number behind the highest that it had sent when the other side told of a gap.
    Told,
}

/// Those of one side.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    numbers: [Serial; 6],
    /// A bit for each number, the highest where the side has ended the connection.
    known: u8,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            numbers: [Serial(0); 6],
            known: 0,
        }
    }
}

impl Marks {
    const ENDED: u8 = 1 << 7;

    #[inline]
    pub(super) const fn get(&self, mark: Mark) -> Option<Serial> {
        if self.known >> mark as u8 & 1 == 0 {
            return None;
        }
        Some(self.numbers[mark as usize])
    }

    #[inline]
    pub(super) const fn set(&mut self, mark: Mark, number: Serial) {
        self.numbers[mark as usize] = number;
        self.known |= 1 << mark as u8;
    }

    /// The side has ended the connection, with FIN or RST.
    #[inline]
    pub(super) const fn end(&mut self) {
        self.known |= Self::ENDED;
    }

    /// Whether it has.
    #[inline]
    pub(super) const fn is_ended(&self) -> bool {
        self.known & Self::ENDED != 0
    }

    #[inline]
    pub(super) const fn forget(&mut self, mark: Mark) {
        self.known &= !(1 << mark as u8);
    }
}

/// A number of nanoseconds, or none: `Option<i64>` takes twice as much.
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

    /// As the time that it is.
    #[inline]
    pub(super) fn wall(self) -> Option<Wall> {
        self.get().map(Wall::from_unix_nanos)
    }
}

/// A time to the millisecond, or nearly: 2^20 ns; it comes round again after 52 days. 0 where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Roughly(u32);

impl Roughly {
    pub(super) fn at(at: Wall) -> Self {
        let ticks = u32::try_from((at.unix_nanos() >> 20) & 0xffff_ffff);
        Self(ticks.unwrap_or(0).max(1))
    }

    /// Nanoseconds since then.
    pub(super) fn until(self, at: Wall) -> Option<i64> {
        let ticks = Self::at(at).0.wrapping_sub(self.0);
        (self.0 != 0).then(|| i64::from(ticks) << 20)
    }
}
