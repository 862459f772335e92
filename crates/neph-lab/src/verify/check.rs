//! What verification says of one direction of one link.

use neph_model::{BitRate, ByteSize};

use super::{DelayCheck, LossCheck};
use crate::counters::DirectionCount;
use crate::gate::Reserved;

/// One packet in so many may be late, as in a campaign.
const LATE_SHARE: u64 = 100;

/// One direction of one link: asked, measured, and whether they agree.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkCheck {
    /// The link's name.
    pub link: String,
    /// The site that sends.
    pub from: String,
    /// The site that receives.
    pub to: String,
    /// Which of several paths.
    pub path: Option<String>,
    /// The one-way delay of small packets.
    pub delay: DelayCheck,
    /// Packets lost out of those sent.
    pub loss: LossCheck,
    /// The rate at which a stream came out; none where no rate was asked, or more than this
    /// machine sends.
    pub rate: Option<Check<BitRate>>,
    /// The queue that a stream filled; none where no rate was asked, or where it is so long or so
    /// fast that it is not filled and drained in time.
    pub queue: Option<Check<ByteSize>>,
    /// What the link itself counted as late meanwhile; none where it does not count.
    pub late: Option<Lateness>,
}

/// Packets that a link sent on late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// How many left later than [`crate::tolerance`] after they were due.
    pub late: u64,
    /// Of how many.
    pub carried: u64,
    /// Packets that it lost without being asked to.
    pub broken: u64,
}

impl Lateness {
    /// Whether at most one packet in a hundred was late, and none lost without being asked to.
    pub const fn is_ok(self) -> bool {
        self.late * LATE_SHARE <= self.carried && self.broken == 0
    }

    pub(super) fn between(before: DirectionCount, after: DirectionCount) -> Self {
        Self {
            late: after.late - before.late,
            carried: after.delivered - before.delivered,
            broken: after.broken() - before.broken(),
        }
    }
}

impl LinkCheck {
    /// Whether everything that was measured is as asked.
    pub fn is_ok(&self) -> bool {
        self.delay.ok
            && self.loss.ok
            && self.rate.is_none_or(|rate| rate.ok)
            && self.queue.is_none_or(|queue| queue.ok)
    }

    /// Whether the link itself counted so many late packets that an experiment on it would be
    /// flagged: the machine is too busy, whatever the median says.
    pub fn is_late(&self) -> bool {
        self.late.is_some_and(|late| !late.is_ok())
    }
}

/// A quantity as asked and as measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check<T> {
    /// What the topology says.
    pub asked: T,
    /// What the link does.
    pub measured: T,
    /// Whether they agree within the tolerance.
    pub ok: bool,
}

/// A path of one direction of a link that was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotMet {
    /// The link's name.
    pub link: String,
    /// The site that sends.
    pub from: String,
    /// The site that receives.
    pub to: String,
    /// Which path.
    pub path: String,
    /// Its weight while the schedule has not begun.
    pub weight: u32,
    /// The only protocol that it is for, if it is for one.
    pub only: Option<Reserved>,
}

/// What verification says of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verified {
    /// Each direction and each path that was measured to its end.
    pub checks: Vec<LinkCheck>,
    /// The paths that no flow of verification's took: they carry none, or none of UDP.
    pub not_met: Vec<NotMet>,
}
