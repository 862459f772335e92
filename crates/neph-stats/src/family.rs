//! The family of a report: all comparisons with a verdict, evaluated together.
//!
//! A comparison is tested against the smallest difference that matters, not against zero. "Worse" requires
//! that the shift is significantly above it, "equivalent" that it is significantly within it on both sides.
//! The p values are corrected by Holm over the whole family, so the probability of any false verdict in a
//! report stays below the level.

use crate::casts::usize_to_f64;
use crate::holm::holm;
use crate::interval::{ALPHA, ConfidenceInterval};
use crate::paired::PairedShift;
use crate::verdict::{Verdict, Wanted};

/// A possible statement of a report, with its limit. `margin` is the smallest difference that matters, above
/// 0, in the unit of the shift.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// How a candidate differs from its baseline.
    Shift {
        /// Candidate against baseline.
        shift: PairedShift,
        /// The smallest difference that matters.
        margin: f64,
        /// Which direction is better.
        wanted: Wanted,
    },
    /// That none of several shifts matters. Each of them must be shown, so their number needs no separate
    /// correction (an intersection-union test).
    AllWithin {
        /// One per pair.
        shifts: Vec<PairedShift>,
        /// The smallest difference that matters.
        margin: f64,
    },
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// Its p value: of the strongest of the three statements, two-sided, after Holm's correction over the
    /// family.
    pub p: f64,
    /// The same before the correction.
    pub p_alone: f64,
    /// An interval of the shift that is valid together with those of the whole family, in 95 % of the
    /// reports. Absent with too few blocks, and for several shifts.
    pub interval: Option<ConfidenceInterval>,
    /// How many comparisons are evaluated together.
    pub family: usize,
}

/// The strongest statement of a comparison, by its one-sided p value.
#[derive(Debug, Clone, Copy)]
struct Strongest {
    verdict: Verdict,
    p: f64,
}

impl Claim {
    fn strongest(&self) -> Strongest {
        let (shift, margin, wanted) = match self {
            Self::Shift {
                shift,
                margin,
                wanted,
            } => (shift, margin, wanted),
            Self::AllWithin { shifts, margin } => {
                let tests = shifts.iter().map(|shift| within(shift, *margin));
                return Strongest {
                    verdict: Verdict::Equivalent,
                    // Without shifts nothing is shown.
                    p: tests.reduce(f64::max).unwrap_or(1.0),
                };
            }
        };
        let lower_is = |verdict: [Verdict; 2]| match wanted {
            Wanted::Lower => verdict[0],
            Wanted::Higher => verdict[1],
        };
        let above = lower_is([Verdict::Worse, Verdict::Better]);
        let below = lower_is([Verdict::Better, Verdict::Worse]);
        [
            (above, shift.p_above(*margin)),
            (below, shift.p_below(-margin)),
            (Verdict::Equivalent, within(shift, *margin)),
        ]
        .map(|(verdict, p)| Strongest { verdict, p })
        .into_iter()
        .min_by(|left, other| left.p.total_cmp(&other.p))
        .expect("there are three")
    }

    fn interval(&self, alpha: f64) -> Option<ConfidenceInterval> {
        match self {
            Self::Shift { shift, .. } => shift.interval(alpha),
            Self::AllWithin { .. } => None,
        }
    }
}

/// One-sided p value of "the shift is `margin` or more, in either direction".
fn within(shift: &PairedShift, margin: f64) -> f64 {
    shift.p_below(margin).max(shift.p_above(-margin))
}

/// Error probability of each interval so that all intervals of such a family are valid together in 95 %.
pub fn simultaneous(family: usize) -> f64 {
    ALPHA / usize_to_f64(family.max(1))
}

/// Evaluates all comparisons of a report, in the order given.
///
/// The p value of a comparison is twice the smallest of its three one-sided ones. At most two of the three
/// statements are false at a time, and then each has half of the level.
pub fn decide(family: &[Claim]) -> Vec<Decision> {
    let strongest: Vec<Strongest> = family.iter().map(Claim::strongest).collect();
    let p_values: Vec<f64> = strongest
        .iter()
        .map(|statement| (2.0 * statement.p).min(1.0))
        .collect();
    let corrected = holm(&p_values).unwrap_or_else(|_| vec![1.0; p_values.len()]);
    let alpha = simultaneous(family.len());
    family
        .iter()
        .zip(strongest)
        .zip(corrected.into_iter().zip(p_values))
        .map(|((claim, strongest), (p, p_alone))| Decision {
            verdict: if p <= ALPHA {
                strongest.verdict
            } else {
                Verdict::Inconclusive
            },
            p,
            p_alone,
            interval: claim.interval(alpha),
            family: family.len(),
        })
        .collect()
}

/// The fewest blocks with which a family of that size can reach a verdict. All differences of a comparison
/// then lie on one side, which is one arrangement of 2^n.
pub fn blocks_needed(family: usize) -> usize {
    let tests = usize_to_f64(family.max(1));
    let mut blocks = 1;
    let mut p = 1.0;
    while p * tests > ALPHA {
        blocks += 1;
        p /= 2.0;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(differences: &[f64], margin: f64) -> Claim {
        Claim::Shift {
            shift: shift(differences),
            margin,
            wanted: Wanted::Lower,
        }
    }

    fn shift(differences: &[f64]) -> PairedShift {
        PairedShift::of_differences(differences.to_vec()).unwrap()
    }

    fn verdict_of(differences: &[f64], margin: f64) -> Verdict {
        decide(&[claim(differences, margin)])[0].verdict
    }

    const AROUND_THREE: [f64; 8] = [2.6, 2.8, 2.9, 3.0, 3.05, 3.1, 3.3, 3.5];

    #[test]
    fn a_verdict_is_worse_only_above_the_margin() {
        assert_eq!(verdict_of(&AROUND_THREE, 2.0), Verdict::Worse);
        assert_eq!(verdict_of(&AROUND_THREE, 3.0), Verdict::Inconclusive);
        assert_eq!(verdict_of(&AROUND_THREE, 4.0), Verdict::Equivalent);
        let better = AROUND_THREE.map(|left| -left);
        assert_eq!(verdict_of(&better, 2.0), Verdict::Better);
        let higher = Claim::Shift {
            shift: shift(&better),
            margin: 2.0,
            wanted: Wanted::Higher,
        };
        assert_eq!(decide(&[higher])[0].verdict, Verdict::Worse);
    }

    /// Even identical values in five blocks show nothing.
    #[test]
    fn without_an_interval_nothing_is_equivalent() {
        let five = decide(&[claim(&[0.0; 5], 2.0)])[0];
        assert_eq!((five.verdict, five.interval), (Verdict::Inconclusive, None));
    }

    #[test]
    fn several_comparisons_are_equivalent_if_each_is() {
        let near = [-0.4, -0.3, -0.2, -0.1, 0.1, 0.2, 0.3, 0.4];
        let all = |shifts: &[&[f64]]| Claim::AllWithin {
            shifts: shifts.iter().map(|left| shift(left)).collect(),
            margin: 1.0,
        };
        let decisions = decide(&[all(&[&near, &near, &near])]);
        assert_eq!(
            (decisions[0].verdict, decisions[0].family),
            (Verdict::Equivalent, 1)
        );
        let decisions = decide(&[all(&[&near, &AROUND_THREE])]);
        assert_eq!(decisions[0].verdict, Verdict::Inconclusive);
    }

    /// One of 256 arrangements, two-sided: 2 / 256, and 9 times that with 9 comparisons.
    #[test]
    fn a_larger_family_needs_more_blocks() {
        let alone = decide(&[claim(&AROUND_THREE, 2.0)])[0];
        assert_eq!((alone.p, alone.family), (2.0 / 256.0, 1));
        let undecided = claim(&[-1.0, 1.0, -2.0, 2.0, -3.0, 3.0, -4.0, 4.0], 1.0);
        let mut family = vec![undecided; 8];
        family.push(claim(&AROUND_THREE, 2.0));
        let together = decide(&family)[8];
        assert_eq!(
            (together.p, together.verdict),
            (18.0 / 256.0, Verdict::Inconclusive)
        );
        assert!(alone.interval.is_some() && together.interval.is_none());
        assert_eq!(
            (blocks_needed(1), blocks_needed(8), blocks_needed(9)),
            (6, 9, 9)
        );
        assert_eq!(decide(&[]), []);
    }
}
