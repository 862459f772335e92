//! A capture that was read: how much of it, and when its packets passed.

use neph_capture::{Account, Ending};
use neph_model::Span;
use serde_json::{Value, json};

use super::{ending, gzip};

/// A capture that was read.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) account: Account,
    /// Packets without IP, or of a link that is not known.
    pub(crate) not_ip: u64,
    /// A link type that is not known, of some of them.
    pub(crate) unread: Option<u32>,
    /// When its packets passed.
    pub(crate) times: Option<Times>,
    /// Packets that the file keeps no time of.
    pub(crate) without_time: u64,
}

/// The times of a capture's packets, in the order of the file; nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Of the first packet.
    pub(crate) first: i64,
    /// The latest.
    pub(crate) last: i64,
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

    pub(crate) const fn from(at: i64) -> Self {
        Self {
            first: at,
            last: at,
            late: 0,
            back: 0,
            silence: 0,
        }
    }

    #[inline]
    pub(crate) fn see(&mut self, at: i64) {
        if at >= self.last {
            self.silence = self.silence.max(at.saturating_sub(self.last));
            self.last = at;
        } else {
            self.late += 1;
            self.back = self.back.max(self.last.saturating_sub(at));
        }
    }

    /// Whether both passed at the same time, for a while.
    pub(crate) const fn overlaps(self, other: Self) -> bool {
        self.first < other.last && other.first < self.last
    }

    /// How far they go back at once, where that is more than disorder.
    pub(crate) fn jump(self) -> Option<Span> {
        Some(Span::from_nanos(self.back)).filter(|back| *back > Self::DISORDER)
    }

    /// The longest time without a packet, where that is more than a day.
    pub(crate) fn silence(self) -> Option<Span> {
        Some(Span::from_nanos(self.silence)).filter(|silence| *silence > Self::SILENCE)
    }

    /// Packets that stand behind later ones; none where the times jump.
    pub(super) const fn out_of_turn(self) -> u64 {
        if self.back > Self::DISORDER.nanos() {
            0
        } else {
            self.late
        }
    }
}

/// The same for programs.
pub(super) fn json(file: &File) -> Value {
    let ending = match &file.account.ending {
        _ if ending::is_whole(&file.account) => "whole",
        Ending::BrokenPacked(error) if gzip::is_trailing(error) => "cut off",
        Ending::Whole | Ending::CutOff | Ending::CutPacked => "cut off",
        Ending::Broken(_) | Ending::BrokenPacked(_) => "broken",
        Ending::Failed(_) => "failed",
        Ending::Stopped => "stopped",
    };
    json!({
        "name": file.name,
        "packets": file.account.packets,
        "bytes": file.account.bytes,
        "packets_not_ip": file.not_ip,
        "packets_without_time": file.without_time,
        "packets_lost_by_capture": file.account.dropped,
        "packets_out_of_turn": file.times.map_or(0, Times::out_of_turn),
        "jump_back_ns": file.times.and_then(Times::jump).map(Span::nanos),
        "silence_ns": file.times.and_then(Times::silence).map(Span::nanos),
        "ending": ending,
    })
}
