//! Conversion of clock fits and steps from steady time back to the timestamps of the captures.
//!
//! Captures are compared in steady time, which leaves out steps back of a clock.

use crate::ClockSetBack;
use neph_stats::{ClockCut, ClockFit, ClockStep};

/// The moments at which clocks were set back, ascending.
#[derive(Debug, Clone, Default)]
pub struct Added {
    set: Vec<ClockSetBack>,
    /// Sum of all steps up to each one, in nanoseconds.
    sums: Vec<i64>,
}

impl Added {
    /// Builds the conversion from these steps.
    pub fn of(set: Vec<ClockSetBack>) -> Self {
        let sums = set.iter().scan(0_i64, |sum, set| {
            *sum = sum.saturating_add(set.by);
            Some(*sum)
        });
        Self {
            sums: sums.collect(),
            set,
        }
    }

    /// The moments at which the offset limits change to those of other clocks.
    pub fn cuts(&self) -> Vec<ClockCut> {
        self.set.iter().map(|set| set.cut).collect()
    }

    /// Converts a fit from steady time to the timestamps.
    pub fn fit(&self, fit: ClockFit) -> ClockFit {
        let before = self.set.partition_point(|set| set.cut.from <= fit.at);
        ClockFit {
            offset: fit.offset.saturating_add(self.sum(before)),
            ..fit
        }
    }

    /// Converts a step. `None` where one capture follows the other and no clock was set.
    pub fn step(&self, step: ClockStep) -> Option<ClockStep> {
        let first = self
            .set
            .partition_point(|set| set.cut.until.saturating_add(1) < step.after);
        let behind = self
            .set
            .partition_point(|set| set.cut.from.saturating_sub(1) <= step.before);
        if behind <= first {
            return Some(step);
        }
        let added = self.sum(behind).saturating_sub(self.sum(first));
        let by = step.by.saturating_add(added);
        (by.saturating_abs() > step.bound).then_some(ClockStep { by, ..step })
    }

    fn sum(&self, many: usize) -> i64 {
        many.checked_sub(1).map_or(0, |last| self.sums[last])
    }
}
