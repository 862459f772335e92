//! What lies between the clocks of two captures and their steady times, in which they are compared.
//!
//! Owns bringing back what steady time leaves out of steps back, so that what is told is of the stamps.

use crate::SetBack;
use neph_stats::{ClockCut, ClockFit, ClockStep};

/// Where clocks were set back, in the order of time.
#[derive(Debug, Clone, Default)]
pub struct Added {
    set: Vec<SetBack>,
    /// What all of them up to each add, in nanoseconds.
    sums: Vec<i64>,
}

impl Added {
    /// By these.
    pub fn of(set: Vec<SetBack>) -> Self {
        let sums = set.iter().scan(0_i64, |sum, set| {
            *sum = sum.saturating_add(set.by);
            Some(*sum)
        });
        Self {
            sums: sums.collect(),
            set,
        }
    }

    /// Where the limits are of other clocks.
    pub fn cuts(&self) -> Vec<ClockCut> {
        self.set.iter().map(|set| set.cut).collect()
    }

    /// The clocks of a fit in steady time.
    pub fn fit(&self, fit: ClockFit) -> ClockFit {
        let before = self.set.partition_point(|set| set.cut.from <= fit.at);
        ClockFit {
            offset: fit.offset.saturating_add(self.sum(before)),
            ..fit
        }
    }

    /// A step of the clocks; `None` where captures stand one behind the other, and no clock was set.
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
