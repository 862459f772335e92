//! How much faster one clock runs than another, and whether that is known.
//!
//! Owns the rules and words of `neph clock` and `neph hops` for a drift, known or not. Does not own the time
//! over which it is taken (course, and offsets of hops).

use neph_model::Span;
use neph_stats::{ClockFit, ClockNature};

use super::words;

/// A drift is unknown if its error bound exceeds this share of the steepest possible drift.
const UNKNOWN: f64 = 0.9;

/// How much faster the other clock runs, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    pub rate: f64,
    /// Error bound of `rate`, as a fraction.
    pub bound: f64,
}

impl Drift {
    /// Drift over a time. Over a short time it is that of the messages in the middle, over a long one that
    /// between both ends. The result may be unknown: see [`Self::known`].
    pub fn over(
        at: impl Fn(i64) -> Option<ClockFit>,
        (since, until): (i64, i64),
        nature: ClockNature,
    ) -> Option<Self> {
        if !Self::is_long((since, until), nature) {
            let fit = at(since.midpoint(until))?;
            return Some(Self {
                rate: fit.rate,
                bound: fit.rate_bound,
            });
        }
        let (first, last) = (at(since)?, at(until)?);
        let time = Span::from_nanos(last.at - first.at).secs_f64();
        let change = Span::from_nanos(last.offset.saturating_sub(first.offset)).secs_f64();
        let error = Span::from_nanos(last.bound.saturating_add(first.bound)).secs_f64();
        Some(Self {
            rate: change / time,
            bound: error / time,
        })
    }

    /// Whether a time is long enough to take the drift between both ends.
    pub const fn is_long((since, until): (i64, i64), nature: ClockNature) -> bool {
        until - since > nature.horizon.saturating_mul(2)
    }

    /// Drift at the moment of a fit. `None` where it is unknown.
    pub fn at(fit: &ClockFit, nature: ClockNature) -> Option<Self> {
        let (rate, bound) = (fit.rate, fit.rate_bound);
        Self { rate, bound }.known(nature)
    }

    /// `None` where the error bound is about as large as any drift of such clocks, or where no clock drifts
    /// so fast: then the clock was set.
    pub fn known(self, nature: ClockNature) -> Option<Self> {
        let is_possible = self.rate.abs() - self.bound <= nature.steepest;
        (is_possible && self.bound < UNKNOWN * nature.steepest).then_some(self)
    }

    /// `+12.35 ± 0.12 ppm`, or that it is not known.
    pub fn to_text(drift: Option<Self>) -> String {
        drift.map_or_else(
            || "not known".to_owned(),
            |drift| words::rate(drift.rate, drift.bound),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_with_a_bound_above_900_ppm_is_not_known() {
        let text_of = |rate, bound| {
            let drift = Drift { rate, bound };
            Drift::to_text(drift.known(ClockNature::default()))
        };
        assert_eq!(text_of(1e-6, 1_002e-6), "not known");
        assert_eq!(text_of(1e-6, 901e-6), "not known");
        assert_eq!(text_of(1e-6, 899e-6), "+1 ± 899 ppm");
    }
}
