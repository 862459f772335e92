//! What a fleet's messages are looked at with. The values that nobody changes are the source's.

use neph_model::{Criteria, Fleet, Span};
use neph_stats::{SETTLED, StatsError};
use serde::Serialize;

/// When a flow's base latency is taken for another: the rolling-minimum window of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Detection {
    /// How many of the window's round trips have to agree, 1 to `window`.
    pub quorum: u8,
    /// How many round trips the window holds, 2 to 16.
    pub window: u8,
    /// How near to each other they are when they agree, and how far the base latency moves at least.
    pub tolerance: Span,
}

impl Default for Detection {
    /// Stable when 3 of 4 round trips lie within 0.5 ms; changed when by more than 0.5 ms.
    fn default() -> Self {
        Self::of(&Criteria::default())
    }
}

impl Detection {
    const fn of(criteria: &Criteria) -> Self {
        Self {
            quorum: criteria.quorum,
            window: criteria.window,
            tolerance: criteria.tolerance,
        }
    }
}

/// What a fleet's messages are looked at with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// When a path change is one.
    pub detection: Detection,
    /// The bins of time in which flows are compared with each other; above zero.
    pub bin: Span,
    /// A latency that no other flow has must last this long before it is told as a path: longer than
    /// queues stand.
    pub hold: Span,
    /// How long messages wait for those of other flows, to be looked at in the order of sending: at
    /// least the timeout, for a lost message keeps back what follows it.
    pub settle: Span,
    /// Persistence is told for this time: the share of flows that leave a class within it.
    pub soon: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            detection: Detection::default(),
            bin: Span::from_secs(20),
            hold: Span::from_secs(30),
            settle: Criteria::default().settle,
            soon: Span::from_secs(10),
        }
    }
}

impl Detection {
    /// How many messages of a flow come before the first that a path change of it can begin with: a
    /// window finds its first level, some more settle it, and the new level is seen when a quorum
    /// lies there. A flow that moved before never had another path, as far as is told.
    pub(crate) fn learning(self) -> i64 {
        i64::from(SETTLED) + i64::from(self.window) - i64::from(self.quorum)
    }

    /// The same for the statistics.
    ///
    /// # Errors
    /// Where the three numbers do not fit together.
    pub(crate) fn rule(self) -> Result<neph_stats::Detection, StatsError> {
        neph_stats::Detection::new(
            self.window.into(),
            self.quorum.into(),
            self.tolerance.nanos(),
        )
    }
}

impl Settings {
    /// What belongs to a fleet, live and whenever its messages are read again.
    pub fn of(fleet: &Fleet) -> Self {
        let criteria = fleet.criteria.unwrap_or_default();
        Self {
            detection: Detection::of(&criteria),
            settle: criteria.settle,
            ..Self::default()
        }
    }
}
