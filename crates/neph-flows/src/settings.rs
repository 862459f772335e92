//! Settings for the evaluation of a fleet's messages. The defaults are those of the source.

use neph_model::{Criteria, Fleet, Span};
use neph_stats::{SETTLED_SAMPLES, StatsError};
use serde::Serialize;

/// When a flow's base latency changes: the rolling-minimum window of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Detection {
    /// How many of the window's round trips must agree, 1 to `window`.
    pub quorum: u8,
    /// Number of round trips in the window, 2 to 16.
    pub window: u8,
    /// Largest difference between round trips that agree, and smallest change of the base latency.
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

/// Settings for the evaluation of a fleet's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// The detection of path changes.
    pub detection: Detection,
    /// The bins of time in which flows are compared; above zero.
    pub bin: Span,
    /// Minimum duration of a latency that no other flow has, before it counts as a path: longer than queues
    /// stand.
    pub hold: Span,
    /// How long messages wait for those of other flows, so that they are processed in order of sending. At
    /// least the timeout, because a lost message delays those behind it.
    pub settle: Span,
    /// Time for which persistence is reported: the share of flows that leave a class within it.
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
    /// Number of a flow's messages before the first that a detectable path change can begin with. A window
    /// finds the first level, some messages confirm it, and a quorum shows the new level. Earlier changes are
    /// not detected.
    pub(crate) fn learning(self) -> i64 {
        i64::from(SETTLED_SAMPLES) + i64::from(self.window) - i64::from(self.quorum)
    }

    /// The same settings for `neph-stats`.
    ///
    /// # Errors
    /// When the three numbers are inconsistent.
    pub(crate) fn rule(self) -> Result<neph_stats::Detection, StatsError> {
        neph_stats::Detection::new(
            self.window.into(),
            self.quorum.into(),
            self.tolerance.nanos(),
        )
    }
}

impl Settings {
    /// The settings for a fleet, both live and for stored messages.
    pub fn of(fleet: &Fleet) -> Self {
        let criteria = fleet.criteria.unwrap_or_default();
        Self {
            detection: Detection::of(&criteria),
            settle: criteria.settle,
            ..Self::default()
        }
    }
}
