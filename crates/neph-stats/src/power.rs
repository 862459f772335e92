//! How many blocks a wanted difference takes, before anything is measured.
//!
//! Noether's sample size for Wilcoxon's signed ranks (1987), against the smallest difference that matters
//! instead of zero, with the share of the level that a comparison has in its family.

use crate::casts::to_usize;
use crate::distribution::{normal_above, normal_quantile};
use crate::family::{blocks_needed, simultaneous};

/// What is to be found. Differences and the spread are in one unit, as shares of the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerTarget {
    /// The true difference that is to be called one.
    pub effect: f64,
    /// The smallest difference that matters: what is tested against.
    pub margin: f64,
    /// Standard deviation of experiments of one scenario, without what all experiments of a block share.
    pub spread: f64,
    /// How many comparisons the report judges together.
    pub family: usize,
    /// The chance with which it is to be found, above 0 and below 1.
    pub power: f64,
}

/// The number of blocks; `None` where the effect is no larger than what matters, so that no number is
/// enough.
pub fn blocks_for(target: &PowerTarget) -> Option<usize> {
    let beyond = target.effect - target.margin;
    if beyond <= 0.0 {
        return None;
    }
    let of_difference = target.spread * f64::sqrt(2.0);
    // The chance that the sum of two differences lies beyond twice the least.
    let above = normal_above(-f64::sqrt(2.0) * beyond / of_difference);
    let level = normal_quantile(1.0 - 0.5 * simultaneous(target.family));
    let reach = level + normal_quantile(target.power);
    let blocks = (reach / (above - 0.5)).powi(2) / 3.0;
    Some(to_usize(blocks.ceil()).max(blocks_needed(target.family)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{Claim, decide};
    use crate::paired::PairedShift;
    use crate::random::Random;
    use crate::verdict::{Verdict, Wanted};

    const TARGET: PowerTarget = PowerTarget {
        effect: 0.1,
        margin: 0.05,
        spread: 0.03,
        family: 1,
        power: 0.8,
    };

    /// The number that is named finds the difference about as often as was requested.
    #[test]
    fn the_number_of_blocks_has_the_power() {
        let blocks = blocks_for(&TARGET).unwrap();
        let mut random = Random::new(11);
        let mut normal = || normal_quantile(random.unit().max(1e-16));
        let mut is_found = |blocks: usize| {
            let difference = |_| TARGET.effect + TARGET.spread * (normal() - normal());
            let shift = PairedShift::of_differences((0..blocks).map(difference).collect()).unwrap();
            let claim = Claim::Shift {
                shift,
                margin: TARGET.margin,
                wanted: Wanted::Lower,
            };
            decide(&[claim])[0].verdict == Verdict::Worse
        };
        let mut count = |blocks: usize| (0..500).filter(|_| is_found(blocks)).count();
        // Noether's size is on the safe side where few blocks make the null distribution coarse.
        let (detected, fewer) = (count(blocks), count(blocks - 4));
        assert!(
            detected >= 380 && fewer < detected,
            "{blocks} blocks find it in {detected} of 500, 4 fewer in {fewer}"
        );
    }

    #[test]
    fn a_larger_family_and_a_smaller_effect_need_more_blocks() {
        let of = |effect: f64, family: usize| {
            blocks_for(&PowerTarget {
                effect,
                family,
                ..TARGET
            })
        };
        assert!(of(0.1, 1) < of(0.1, 10) && of(0.1, 10) < of(0.07, 10));
        assert_eq!(of(0.05, 1), None);
        // However large it is, one side takes so many.
        assert_eq!(of(100.0, 1), Some(blocks_needed(1).max(11)));
    }
}
