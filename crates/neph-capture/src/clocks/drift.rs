//! How much faster one clock runs than another, and whether that is known.
//!
//! Owns the rules and words of `neph clock` and `neph hops` for a drift, known or not. Does not own the time
//! over which it is taken (course, and offsets of hops).

use neph_model::Span;
use neph_stats::{ClockFit, ClockNature};

use super::value_format;

/// A drift is unknown if its error bound exceeds this share of the steepest possible drift.
const MAX_BOUND_SHARE: f64 = 0.9;

/// How much faster the other clock runs, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    pub rate: f64,
    /// Error bound of `rate`, as a fraction.
    pub bound: f64,
}

impl Drift {
    /// Drift in a period. In a short period it is that of the messages in the middle, in a long one that
    /// between both ends. The result may be unknown: see [`Self::if_known`].
    pub fn estimate(
        fit_at: impl Fn(i64) -> Option<ClockFit>,
        (start, end): (i64, i64),
        nature: ClockNature,
    ) -> Option<Self> {
        if !Self::is_long_period((start, end), nature) {
            let fit = fit_at(start.midpoint(end))?;
            return Some(Self {
                rate: fit.rate,
                bound: fit.rate_bound,
            });
        }
        let (first, last) = (fit_at(start)?, fit_at(end)?);
        let duration = Span::from_nanos(last.at - first.at).secs_f64();
        let change = Span::from_nanos(last.offset.saturating_sub(first.offset)).secs_f64();
        let error = Span::from_nanos(last.bound.saturating_add(first.bound)).secs_f64();
        Some(Self {
            rate: change / duration,
            bound: error / duration,
        })
    }

    /// Whether a time is long enough to take the drift between both ends.
    pub const fn is_long_period((start, end): (i64, i64), nature: ClockNature) -> bool {
        end - start > nature.horizon.saturating_mul(2)
    }

    /// Drift at the moment of a fit. `None` where it is unknown.
    pub fn from_fit(fit: &ClockFit, nature: ClockNature) -> Option<Self> {
        let (rate, bound) = (fit.rate, fit.rate_bound);
        Self { rate, bound }.if_known(nature)
    }

    /// `None` where the error bound is about as large as any drift of such clocks, or where no clock drifts
    /// so fast: then the clock was set.
    pub fn if_known(self, nature: ClockNature) -> Option<Self> {
        let is_possible = self.rate.abs() - self.bound <= nature.steepest;
        (is_possible && self.bound < MAX_BOUND_SHARE * nature.steepest).then_some(self)
    }

    /// `+12.35 ± 0.12 ppm`, or that it is not known.
    pub fn to_text(drift: Option<Self>) -> String {
        drift.map_or_else(
            || "not known".to_owned(),
            |drift| value_format::rate(drift.rate, drift.bound),
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
            Drift::to_text(drift.if_known(ClockNature::default()))
        };
        assert_eq!(text_of(1e-6, 1_002e-6), "not known");
        assert_eq!(text_of(1e-6, 901e-6), "not known");
        assert_eq!(text_of(1e-6, 899e-6), "+1 ± 899 ppm");
    }
}
