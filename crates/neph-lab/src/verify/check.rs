//! The result of verification for one direction of a link.

use neph_model::{BitRate, ByteSize};

use super::{DelayCheck, LossCheck};
use crate::counters::DirectionCount;
use crate::gate::ReservedProtocol;

/// One packet in this many may be late, as in a campaign.
const LATE_SHARE: u64 = 100;

/// One direction of a link: requested and measured values, and verdicts.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkCheck {
    /// The link's name.
    pub link: String,
    /// The site that sends.
    pub from: String,
    /// The site that receives.
    pub to: String,
    /// The path, if there are several.
    pub path: Option<String>,
    /// The one-way delay of small packets.
    pub delay: DelayCheck,
    /// Packets lost out of those sent.
    pub loss: LossCheck,
    /// The output rate of a stream; `None` without a requested rate, or above the maximum rate of this host.
    pub rate: Option<QuantityCheck<BitRate>>,
    /// The queue that a stream filled; `None` without a requested rate, or if the queue cannot be filled and
    /// drained in time.
    pub queue: Option<QuantityCheck<ByteSize>>,
    /// Packets that the link counted as late meanwhile; `None` if it does not count.
    pub late: Option<Lateness>,
}

/// Packets that a link forwarded late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Packets that departed later than [`crate::lateness_tolerance`] after their due time.
    pub late: u64,
    /// The number of all packets.
    pub total_packets: u64,
    /// Packets that it lost without being configured to.
    pub unexpected_losses: u64,
}

impl Lateness {
    /// Whether at most 1 % of the packets were late, and none lost without being configured to.
    pub const fn is_ok(self) -> bool {
        self.late * LATE_SHARE <= self.total_packets && self.unexpected_losses == 0
    }

    pub(super) fn between(before: DirectionCount, after: DirectionCount) -> Self {
        Self {
            late: after.late - before.late,
            total_packets: after.delivered - before.delivered,
            unexpected_losses: after.unexpected_losses() - before.unexpected_losses(),
        }
    }
}

impl LinkCheck {
    /// Whether all measured values are within tolerance.
    pub fn is_ok(&self) -> bool {
        self.delay.is_ok
            && self.loss.is_ok
            && self.rate.is_none_or(|rate| rate.is_ok)
            && self.queue.is_none_or(|queue| queue.is_ok)
    }

    /// Whether the link counted so many late packets that an experiment on it would be flagged. The host is
    /// then too busy, independent of the median.
    pub fn is_late(&self) -> bool {
        self.late.is_some_and(|late| !late.is_ok())
    }
}

/// A quantity as requested and as measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantityCheck<T> {
    /// The value in the topology.
    pub expected: T,
    /// The measured value.
    pub measured: T,
    /// Whether they agree within the tolerance.
    pub is_ok: bool,
}

/// A path of one direction of a link that was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmeasuredPath {
    /// The link's name.
    pub link: String,
    /// The site that sends.
    pub from: String,
    /// The site that receives.
    pub to: String,
    /// The path.
    pub path: String,
    /// Its weight before the schedule begins.
    pub weight: u32,
    /// The only protocol on it, if it is reserved.
    pub only: Option<ReservedProtocol>,
}

/// The result of verification for a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verified {
    /// Each direction and path that was measured completely.
    pub checks: Vec<LinkCheck>,
    /// Paths that no flow of the verification used: they have no flows, or none of UDP.
    pub unmeasured_paths: Vec<UnmeasuredPath>,
}
