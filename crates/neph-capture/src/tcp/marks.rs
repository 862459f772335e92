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

    pub(super) const fn of(nanos: i64) -> Self {
        Self(nanos)
    }

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
