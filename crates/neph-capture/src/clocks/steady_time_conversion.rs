//! Conversion of clock fits and steps from steady time back to the timestamps of the captures.
//!
//! Captures are compared in steady time, which leaves out steps back of a clock.

use crate::ClockSetBack;
use neph_stats::{ClockCut, ClockFit, ClockStep};

/// The moments at which clocks were set back, ascending.
#[derive(Debug, Clone, Default)]
pub struct SteadyTimeConversion {
    set_back: Vec<ClockSetBack>,
    /// Sum of all steps up to each one, in nanoseconds.
    sums: Vec<i64>,
}

impl SteadyTimeConversion {
    /// Builds the conversion from these steps.
    pub fn new(set_back: Vec<ClockSetBack>) -> Self {
        let sums = set_back.iter().scan(0_i64, |sum, set| {
            *sum = sum.saturating_add(set.by);
            Some(*sum)
        });
        Self {
            sums: sums.collect(),
            set_back,
        }
    }

    /// The moments at which the offset limits change to those of other clocks.
    pub fn cuts(&self) -> Vec<ClockCut> {
        self.set_back.iter().map(|set| set.cut).collect()
    }

    /// Converts a fit from steady time to the timestamps.
    pub fn convert_fit(&self, fit: ClockFit) -> ClockFit {
        let before = self.set_back.partition_point(|set| set.cut.from <= fit.at);
        ClockFit {
            offset: fit.offset.saturating_add(self.sum_of_first(before)),
            ..fit
        }
    }

    /// Converts a step. `None` where one capture follows the other and no clock was set.
    pub fn convert_step(&self, step: ClockStep) -> Option<ClockStep> {
        let first = self
            .set_back
            .partition_point(|set| set.cut.until.saturating_add(1) < step.after);
        let end = self
            .set_back
            .partition_point(|set| set.cut.from.saturating_sub(1) <= step.before);
        if end <= first {
            return Some(step);
        }
        let set_between = self
            .sum_of_first(end)
            .saturating_sub(self.sum_of_first(first));
        let by = step.by.saturating_add(set_between);
        (by.saturating_abs() > step.bound).then_some(ClockStep { by, ..step })
    }

    fn sum_of_first(&self, count: usize) -> i64 {
        count.checked_sub(1).map_or(0, |last| self.sums[last])
    }
}
