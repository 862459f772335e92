//! How much faster one clock runs than another, and whether anything is known of that.
//!
//! Owns the rules of `neph clock` and `neph hops` for a drift over a time and for one that is not told,
//! and its words. Does not own from when until when (course, and offsets of hops).

use neph_model::Span;
use neph_stats::{ClockFit, ClockNature};

use super::words;

/// A bound of this share of what clocks differ by at most says nothing of the drift.
const UNKNOWN: f64 = 0.9;

/// How much faster the other clock runs, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    pub rate: f64,
    /// How far `rate` may be wrong either way.
    pub bound: f64,
}

impl Drift {
    /// Over short times what the messages in the middle say, over long ones from end to end; whether it
    /// is known or not.
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
        let moved = Span::from_nanos(last.offset.saturating_sub(first.offset)).secs_f64();
        let doubt = Span::from_nanos(last.bound.saturating_add(first.bound)).secs_f64();
        Some(Self {
            rate: moved / time,
            bound: doubt / time,
        })
    }

    /// Whether a drift is taken from end to end.
    pub const fn is_long((since, until): (i64, i64), nature: ClockNature) -> bool {
        until - since > nature.horizon.saturating_mul(2)
    }

    /// At the moment of a fit; `None` where nothing is known of it.
    pub fn at(fit: &ClockFit, nature: ClockNature) -> Option<Self> {
        let (rate, bound) = (fit.rate, fit.rate_bound);
        Self { rate, bound }.known(nature)
    }

    /// `None` where clocks of this nature can hardly differ by more than it may be wrong, or where none
    /// drifts so: it was set.
    pub fn known(self, nature: ClockNature) -> Option<Self> {
        let is_possible = self.rate.abs() - self.bound <= nature.steepest;
        (is_possible && self.bound < UNKNOWN * nature.steepest).then_some(self)
    }

    /// `+12.35 ± 0.12 ppm`, or that it is not known.
    pub fn in_words(drift: Option<Self>) -> String {
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
    fn a_drift_that_may_be_wrong_by_as_much_as_clocks_differ_is_not_known() {
        let told = |rate, bound| {
            let drift = Drift { rate, bound };
            Drift::in_words(drift.known(ClockNature::default()))
        };
        assert_eq!(told(1e-6, 1_002e-6), "not known");
        assert_eq!(told(1e-6, 901e-6), "not known");
        assert_eq!(told(1e-6, 899e-6), "+1 ± 899 ppm");
    }
}
