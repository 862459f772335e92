//! A capture that was read: how much of it, and when its packets passed.

use crate::Account;
use neph_model::Span;

/// A capture that was read.
#[derive(Debug)]
pub struct File {
    pub name: String,
    pub account: Account,
    /// Packets without IP, or of a link that is not known.
    pub not_ip: u64,
    /// A link type that is not known, of some of them.
    pub unread: Option<u32>,
    /// When its packets passed.
    pub times: Option<Times>,
    /// Packets that the file keeps no time of.
    pub without_time: u64,
}

/// The times of a capture's packets, in the order of the file; nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Of the first packet.
    pub first: i64,
    /// The latest.
    pub last: i64,
    /// Packets that lay before the latest until then.
    late: u64,
    /// The furthest that one did, nanoseconds.
    back: i64,
    /// The longest time without a packet, nanoseconds.
    silence: i64,
}

impl Times {
    /// Packets of several processors and interfaces stand out of order by less than this.
    const DISORDER: Span = Span::from_nanos(5_000_000_000);

    /// Few captures have nothing to show for so long, and clocks that are set start far away.
    const SILENCE: Span = Span::from_secs(86_400);

    pub const fn from(at: i64) -> Self {
        Self {
            first: at,
            last: at,
            late: 0,
            back: 0,
            silence: 0,
        }
    }

    #[inline]
    pub fn see(&mut self, at: i64) {
        if at >= self.last {
            self.silence = self.silence.max(at.saturating_sub(self.last));
            self.last = at;
        } else {
            self.late += 1;
            self.back = self.back.max(self.last.saturating_sub(at));
        }
    }

    /// Whether both passed at the same time, for a while.
    pub const fn overlaps(self, other: Self) -> bool {
        self.first < other.last && other.first < self.last
    }

    /// How far they go back at once, where that is more than disorder.
    pub fn jump(self) -> Option<Span> {
        Some(Span::from_nanos(self.back)).filter(|back| *back > Self::DISORDER)
    }

    /// The longest time without a packet, where that is more than a day.
    pub fn silence(self) -> Option<Span> {
        Some(Span::from_nanos(self.silence)).filter(|silence| *silence > Self::SILENCE)
    }

    /// Packets that stand behind later ones; none where the times jump.
    pub const fn out_of_turn(self) -> u64 {
        if self.back > Self::DISORDER.nanos() {
            0
        } else {
            self.late
        }
    }
}
