//! The interval type and the one confidence that is used everywhere.

/// The confidence of every interval in this crate.
pub const CONFIDENCE: f64 = 0.95;

/// What an interval may leave out, both sides together.
pub(crate) const ALPHA: f64 = 0.05;

/// A closed 95 % confidence interval, in the unit of the values it was made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end, never below `low`.
    pub high: f64,
}

impl ConfidenceInterval {
    /// Whether `value` lies in the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The interval of the difference the other way round.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            low: -self.high,
            high: -self.low,
        }
    }

    /// Whether the whole interval lies strictly between `-reach` and `reach`.
    pub fn within(&self, reach: f64) -> bool {
        -reach < self.low && self.high < reach
    }
}
