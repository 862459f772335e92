//! Comparing two scenarios block by block: medians of experiments, paired by block.

use std::collections::BTreeMap;

use neph_stats::{Interval, Sorted, describe, wilcoxon};

use crate::axis::millis;
use crate::figure::Latencies;
use crate::{CampaignData, PlotSettings};

/// The level of significance of every sentence.
pub(super) const ALPHA: f64 = 0.05;

/// One scenario against another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparison {
    /// Candidate minus baseline in milliseconds: Hodges-Lehmann over blocks, or the one block's
    /// difference.
    pub(super) shift: f64,
    /// Its 95 % interval; exists from 6 blocks on.
    pub(super) interval: Option<Interval>,
    /// Two-sided p of Wilcoxon's signed-rank test.
    pub(super) p: f64,
    /// How many blocks both have.
    pub(super) blocks: usize,
    /// The baseline's median over blocks in milliseconds.
    pub(super) baseline: f64,
}

impl Comparison {
    /// `12.0 ms (95 % interval 11.8 to 12.3 ms)`, without the interval where there is none.
    pub(super) fn shift_in_words(&self) -> String {
        let interval = self.interval.map_or_else(String::new, |interval| {
            format!(
                " (95 % interval {} to {})",
                millis(interval.low),
                millis(interval.high)
            )
        });
        format!("{}{interval}", millis(self.shift))
    }
}

/// The middle value; `None` without values.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    let sample = Sorted::sort(values).ok()?;
    describe(sample).ok().map(|numbers| numbers.five.median)
}

/// Each block's median, of the replies.
fn medians(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> BTreeMap<u32, f64> {
    data.experiments_of(scenario, settings)
        .filter_map(|experiment| {
            let latencies = Latencies::of(experiment.main(), settings.basis);
            let numbers = describe(latencies.sorted()).ok()?;
            Some((experiment.block(), numbers.five.median))
        })
        .collect()
}

/// Compares the blocks that both scenarios have; `None` without one.
pub(super) fn compare(
    data: &CampaignData,
    settings: &PlotSettings,
    candidate: usize,
    baseline: usize,
) -> Option<Comparison> {
    let (of, against) = (
        medians(data, settings, candidate),
        medians(data, settings, baseline),
    );
    let pairs: Vec<(f64, f64)> = of
        .iter()
        .filter_map(|(block, value)| Some((*value, *against.get(block)?)))
        .collect();
    let (first, mut second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let test = wilcoxon(&first, &second).ok()?;
    Some(Comparison {
        shift: test.shift.estimate,
        interval: test.shift.interval,
        p: test.p,
        blocks: first.len(),
        baseline: median(&mut second)?,
    })
}

/// How sure a set of comparisons is, after Holm's correction: a clause to end a sentence with.
pub(super) fn sureness(comparisons: &[Comparison]) -> String {
    let p_values: Vec<f64> = comparisons.iter().map(|c| c.p).collect();
    let corrected = neph_stats::holm(&p_values).unwrap_or_default();
    let sure = corrected.iter().filter(|p| **p < ALPHA).count();
    let blocks = comparisons.iter().map(|c| c.blocks).min().unwrap_or(0);
    let needed = blocks_needed(comparisons.len());
    if blocks < needed {
        let counted = super::plural(blocks, "block");
        let verb = if blocks == 1 { "is" } else { "are" };
        return format!("{counted} {verb} too few to tell this from chance; it takes {needed}");
    }
    match (sure, comparisons.len()) {
        (0, _) => "not significant over the blocks".to_owned(),
        (1, 1) => format!(
            "significant over {} (p {:.3})",
            super::plural(blocks, "block"),
            corrected[0]
        ),
        (sure, all) if sure == all => format!(
            "significant over {} in each, after Holm's correction",
            super::plural(blocks, "block")
        ),
        (sure, all) => format!("significant in {sure} of {all}, after Holm's correction"),
    }
}

/// The least number of blocks for which the signed-rank test can be significant at all, with so
/// many comparisons: the smallest p over n pairs is 2 / 2^n.
fn blocks_needed(comparisons: usize) -> usize {
    let mut blocks = 1;
    let mut p = 1.0;
    while p * super::real(comparisons.max(1)) >= ALPHA {
        blocks += 1;
        p /= 2.0;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_enough_blocks() {
        assert_eq!((blocks_needed(1), blocks_needed(8)), (6, 9));
        let one = |p, blocks| Comparison {
            shift: 1.0,
            interval: None,
            p,
            blocks,
            baseline: 4.0,
        };
        assert_eq!(
            sureness(&[one(0.5, 2)]),
            "2 blocks are too few to tell this from chance; it takes 6"
        );
        assert_eq!(
            sureness(&[one(0.031, 6)]),
            "significant over 6 blocks (p 0.031)"
        );
        assert_eq!(sureness(&[one(0.4, 6)]), "not significant over the blocks");
        assert_eq!(
            sureness(&[one(0.002, 10), one(0.6, 10)]),
            "significant in 1 of 2, after Holm's correction"
        );
    }
}
