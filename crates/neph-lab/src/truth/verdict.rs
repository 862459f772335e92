//! What became of a packet on a link, and why.

use crate::gate::DropCause;

/// What became of a packet on a link, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It left at the other end.
    Delivered,
    /// Lost at random, or in the good state of a Gilbert-Elliott model, as asked.
    Lost,
    /// Lost in the bad state of a Gilbert-Elliott model, as asked.
    LostInBurst,
    /// It found the queue full, as asked.
    QueueFull,
    /// Dropped by CoDel, as asked.
    CoDel,
    /// Longer than the link's MTU: dropped as asked.
    OverMtu,
    /// Longer than a frame of 1982 bytes, which is what an engine can hold.
    TooLong,
    /// The engine had no room for it.
    Overflow,
    /// The kernel refused to send it.
    Refused,
}

impl Verdict {
    /// How many verdicts there are.
    pub(crate) const COUNT: usize = Self::ALL.len();
    /// All, in the order of their numbers in the file.
    pub(super) const ALL: [Self; 9] = [
        Self::Delivered,
        Self::Lost,
        Self::LostInBurst,
        Self::QueueFull,
        Self::CoDel,
        Self::OverMtu,
        Self::TooLong,
        Self::Overflow,
        Self::Refused,
    ];

    /// Its word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Lost => "lost",
            Self::LostInBurst => "lost_in_burst",
            Self::QueueFull => "queue_full",
            Self::CoDel => "codel",
            Self::OverMtu => "over_mtu",
            Self::TooLong => "too_long",
            Self::Overflow => "overflow",
            Self::Refused => "refused",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl From<DropCause> for Verdict {
    fn from(cause: DropCause) -> Self {
        match cause {
            DropCause::Random => Self::Lost,
            DropCause::Burst => Self::LostInBurst,
            DropCause::QueueFull => Self::QueueFull,
            DropCause::CoDel => Self::CoDel,
            DropCause::OverMtu => Self::OverMtu,
        }
    }
}
