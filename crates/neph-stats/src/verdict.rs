//! The verdict on two scenarios. Owns the rule; the shift and the p value come from a test.

use crate::error::StatsError;
use crate::shift::Shift;

/// What may be said about a candidate beside its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Significant, and at least the minimum effect in the wanted direction.
    Better,
    /// Significant, and at least the minimum effect in the other direction.
    Worse,
    /// The whole interval lies inside plus and minus the minimum effect, so that a difference, if
    /// there is one, does not matter.
    Equivalent,
    /// Neither can be said: more experiments are needed, or a coarser minimum effect.
    Inconclusive,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Smaller values, as of a latency.
    Lower,
    /// Larger values, as of a throughput.
    Higher,
}

/// What a difference is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Yardstick {
    /// The smallest difference that matters, 0 or more, in the unit of the shift.
    pub minimum_effect: f64,
    /// Level of significance, 0..1, usually 0.05. With several comparisons compare Holm's p values
    /// with it.
    pub alpha: f64,
    /// Which way is better.
    pub wanted: Wanted,
}

/// Judges a shift (candidate minus baseline) and its p value.
///
/// # Errors
/// [`StatsError::OutOfRange`] for a negative minimum effect, an alpha outside 0..1 or a p outside
/// 0..=1.
pub fn verdict(shift: Shift, p: f64, yardstick: Yardstick) -> Result<Verdict, StatsError> {
    let Yardstick {
        minimum_effect,
        alpha,
        wanted,
    } = yardstick;
    let refuse = |what, value, wanted| {
        Err(StatsError::OutOfRange {
            what,
            value,
            wanted,
        })
    };
    if !(minimum_effect >= 0.0 && minimum_effect.is_finite()) {
        return refuse("minimum effect", minimum_effect, "0 or more");
    }
    if !(alpha > 0.0 && alpha < 1.0) {
        return refuse(
            "level of significance",
            alpha,
            "between 0 and 1, both excluded",
        );
    }
    if !(0.0..=1.0).contains(&p) {
        return refuse("p value", p, "from 0 to 1");
    }
    let size = shift.estimate.abs();
    if p <= alpha && size > 0.0 && size >= minimum_effect {
        let lower = shift.estimate < 0.0;
        return Ok(if lower == (wanted == Wanted::Lower) {
            Verdict::Better
        } else {
            Verdict::Worse
        });
    }
    match shift.interval {
        Some(interval) if interval.within(minimum_effect) => Ok(Verdict::Equivalent),
        _ => Ok(Verdict::Inconclusive),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;

    fn judge((low, estimate, high): (f64, f64, f64), p: f64, wanted: Wanted) -> Verdict {
        let shift = Shift {
            estimate,
            interval: Some(Interval { low, high }),
        };
        verdict(
            shift,
            p,
            Yardstick {
                minimum_effect: 2.0,
                alpha: 0.05,
                wanted,
            },
        )
        .unwrap()
    }

    #[test]
    fn needs_significance_and_effect() {
        use Verdict::{Better, Equivalent, Inconclusive, Worse};
        assert_eq!(judge((-5.0, -4.0, -3.0), 0.01, Wanted::Lower), Better);
        assert_eq!(judge((-5.0, -4.0, -3.0), 0.01, Wanted::Higher), Worse);
        assert_eq!(judge((3.0, 4.0, 5.0), 0.01, Wanted::Lower), Worse);
        // Significant, but it does not matter.
        assert_eq!(judge((0.5, 1.0, 1.5), 0.001, Wanted::Lower), Equivalent);
        assert_eq!(judge((0.5, 1.5, 2.5), 0.001, Wanted::Lower), Inconclusive);
        // Large, but not significant.
        assert_eq!(judge((-9.0, -4.0, 1.0), 0.2, Wanted::Lower), Inconclusive);
    }

    #[test]
    fn without_an_interval_nothing_is_equivalent() {
        let shift = Shift {
            estimate: 0.0,
            interval: None,
        };
        let yardstick = Yardstick {
            minimum_effect: 2.0,
            alpha: 0.05,
            wanted: Wanted::Lower,
        };
        assert_eq!(verdict(shift, 1.0, yardstick), Ok(Verdict::Inconclusive));
        let negative = Yardstick {
            minimum_effect: -1.0,
            ..yardstick
        };
        assert!(verdict(shift, 1.0, negative).is_err() && verdict(shift, 1.5, yardstick).is_err());
    }
}
