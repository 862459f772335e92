//! Comparing two scenarios block by block: medians of experiments, paired by block, and the verdict.
//!
//! A message without an answer lies above every reply, so that a block of which half went
//! unanswered has a median above every number; a difference to it is infinite.

use std::collections::BTreeMap;

use neph_stats::{
    Interval, Level, Shift, Sorted, Verdict, Wanted, Yardstick, friedman_of_levels, holm,
    median_of_levels, shift_of_blocks, tells_apart, verdict,
};

use crate::axis::millis;
use crate::figure::Latencies;
use crate::{CampaignData, Layer, PlotSettings};

/// The level of significance of every sentence.
pub(super) const ALPHA: f64 = 0.05;

/// The smallest difference that is worth a verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeastEffect {
    /// As a share of the baseline's median.
    pub(super) share: f64,
    /// And at least so many milliseconds.
    pub(super) millis: f64,
}

impl LeastEffect {
    fn beside(self, baseline: f64) -> f64 {
        if baseline.is_finite() {
            self.millis.max(self.share * baseline)
        } else {
            self.millis
        }
    }
}

/// One scenario against another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparison {
    /// Candidate minus baseline in milliseconds: Hodges-Lehmann over blocks, or the one block's
    /// difference.
    pub(super) shift: f64,
    /// Its 95 % interval; exists from 6 blocks on.
    pub(super) interval: Option<Interval>,
    /// Two-sided p of Wilcoxon's signed-rank test; not below that of the test over several scenarios
    /// that it follows up.
    pub(super) p: f64,
    /// How many blocks both have.
    pub(super) blocks: usize,
    /// The baseline's median over blocks in milliseconds.
    pub(super) baseline: f64,
    /// The smallest difference in milliseconds that matters here.
    pub(super) least: f64,
}

impl Comparison {
    /// As the follow-up of a test over several scenarios: two of them differ only if any do.
    pub(super) fn following(mut self, any_differs: Option<f64>) -> Self {
        self.p = any_differs.map_or(self.p, |p| p.max(self.p));
        self
    }

    /// The other one against this one.
    pub(super) fn turned(mut self) -> Self {
        self.baseline += self.shift;
        self.shift = -self.shift;
        self.interval = self.interval.map(Interval::turned);
        self
    }

    /// Candidate minus baseline.
    const fn apart(&self) -> Shift {
        Shift {
            estimate: self.shift,
            interval: self.interval,
        }
    }

    /// What may be said, given p after Holm's correction.
    fn verdict(&self, p: f64) -> Verdict {
        verdict_of(self.apart(), p, self.least)
    }

    /// How far apart the two are: `12.0 ms (95 % interval 11.8 ms to 12.3 ms)`, without the
    /// interval where there is none.
    fn size_in_words(&self) -> String {
        if self.shift.is_infinite() {
            return IMMEASURABLY.to_owned();
        }
        let interval = interval_in_words(self.apart(), told);
        format!("{}{interval}", told(self.shift.abs()))
    }

    /// What may be said of the two by their names; `slower` and `faster` only with a verdict.
    pub(super) fn in_words(&self, verdict: Verdict, name: &str, other: &str) -> String {
        let size = self.size_in_words();
        match verdict {
            Verdict::Worse => format!("{name} is {size} slower than {other}"),
            Verdict::Better => format!("{name} is {size} faster than {other}"),
            Verdict::Equivalent => {
                let least = millis(self.least);
                format!("{name} and {other} differ by {size}, less than the {least} that matter,")
            }
            Verdict::Inconclusive if self.shift > 0.0 => {
                format!("{name} lies {size} above {other}")
            }
            Verdict::Inconclusive => format!("{name} lies {size} below {other}"),
        }
    }
}

/// How far what has no number lies from what has one.
pub(super) const IMMEASURABLY: &str = "immeasurably";

/// What may be said of a shift with this p after Holm's correction, where a difference of `least`
/// matters and less is better.
pub(super) fn verdict_of(shift: Shift, p: f64, least: f64) -> Verdict {
    let yardstick = Yardstick {
        minimum_effect: least,
        alpha: ALPHA,
        wanted: Wanted::Lower,
    };
    verdict(shift, p, yardstick).unwrap_or(Verdict::Inconclusive)
}

/// ` (95 % interval 11.8 ms to 12.3 ms)` of how far two lie apart, told without its sign; nothing
/// where there is none.
pub(super) fn interval_in_words(shift: Shift, told: impl Fn(f64) -> String) -> String {
    let Some(interval) = shift.interval else {
        return String::new();
    };
    let interval = if shift.estimate < 0.0 {
        interval.turned()
    } else {
        interval
    };
    let (low, high) = (told(interval.low), told(interval.high));
    format!(" (95 % interval {low} to {high})")
}

/// A difference, or that there is no end to it.
pub(super) fn told_by(value: f64, told: impl Fn(f64) -> String) -> String {
    match value {
        f64::INFINITY => "∞".to_owned(),
        f64::NEG_INFINITY => "−∞".to_owned(),
        value => told(value),
    }
}

/// Milliseconds, or that there is no end to them.
pub(super) fn told(value: f64) -> String {
    told_by(value, millis)
}

/// A sentence about what has no number; nothing if everything has one.
pub(super) fn why_infinite(comparisons: &[Comparison]) -> &'static str {
    if comparisons.iter().any(|c| c.shift.is_infinite()) {
        " Half or more of the slower one's messages went unanswered, so that there is no median to subtract."
    } else {
        ""
    }
}

/// The middle value; `None` without values.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    let sample = Sorted::sort(values).ok()?;
    neph_stats::median(sample, 0).ok()?.number()
}

/// Each block's median.
pub(super) type Medians = BTreeMap<u32, Level>;

/// A scenario's; an experiment without messages has none.
pub(super) fn medians(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Medians {
    data.experiments_of(scenario, settings)
        .filter_map(|experiment| {
            let latencies = Latencies::of(experiment.main(), settings.basis);
            Some((experiment.block(), latencies.median()?))
        })
        .collect()
}

/// A scenario's in one layer. Below the response time an experiment has none in which no message
/// has that layer: kernel stamps may be missing, which says nothing of the network.
pub(super) fn medians_of_layer(
    data: &CampaignData,
    settings: &PlotSettings,
    scenario: usize,
    layer: &Layer,
) -> Medians {
    if *layer == Layer::Response {
        return medians(data, settings, scenario);
    }
    data.experiments_of(scenario, settings)
        .filter_map(|experiment| {
            let latencies = Latencies::of_layer(layer.flow(experiment)?, layer);
            let is_seen = !latencies.sorted().values().is_empty();
            Some((experiment.block(), latencies.median().filter(|_| is_seen)?))
        })
        .collect()
}

/// Compares the blocks that both scenarios have; `None` without one in which either has a median.
pub(super) fn compare(
    candidate: &Medians,
    baseline: &Medians,
    least: LeastEffect,
) -> Option<Comparison> {
    let both = candidate.iter();
    let both = both.filter_map(|(block, one)| Some((*one, *baseline.get(block)?)));
    let blocks: Vec<(Level, Level)> = both.filter(|block| tells_apart(*block)).collect();
    let test = shift_of_blocks(&blocks).ok()?;
    let baseline = median_of_levels(blocks.iter().map(|block| block.1)).ok()?;
    // Infinite where those without a number decide it.
    let baseline = baseline.number().unwrap_or(f64::INFINITY);
    Some(Comparison {
        shift: test.shift.estimate,
        interval: test.shift.interval,
        p: test.p,
        blocks: blocks.len(),
        baseline,
        least: least.beside(baseline),
    })
}

/// Friedman's p over several scenarios, in the blocks that all of them have: whether any differs
/// from the others. `None` for fewer than three, for which [`compare`] is the test.
pub(super) fn any_differs<'m>(scenarios: impl Iterator<Item = &'m Medians>) -> Option<f64> {
    let columns: Vec<&Medians> = scenarios.filter(|medians| !medians.is_empty()).collect();
    let row = |block: &u32| -> Option<Vec<Level>> {
        let levels = columns.iter().map(|medians| medians.get(block).copied());
        levels.collect()
    };
    let rows: Vec<Vec<Level>> = columns.first()?.keys().filter_map(row).collect();
    friedman_of_levels(&rows).ok().map(|test| test.p)
}

/// The p values after Holm's correction.
fn corrected(comparisons: &[Comparison]) -> Vec<f64> {
    let p_values: Vec<f64> = comparisons.iter().map(|c| c.p).collect();
    holm(&p_values).expect("a test's p values lie between 0 and 1")
}

/// What may be said of each, after Holm's correction.
pub(super) fn verdicts(comparisons: &[Comparison]) -> Vec<Verdict> {
    let judged = comparisons.iter().zip(corrected(comparisons));
    judged.map(|(c, p)| c.verdict(p)).collect()
}

/// How sure a set of comparisons is, after Holm's correction: a clause to end a sentence with.
pub(super) fn sureness(comparisons: &[Comparison]) -> String {
    let corrected = corrected(comparisons);
    let sure = corrected.iter().filter(|p| **p < ALPHA).count();
    let blocks = comparisons.iter().map(|c| c.blocks).min().unwrap_or(0);
    let needed = blocks_needed(comparisons.len());
    let counted = super::plural(blocks, "block");
    if blocks < needed {
        let verb = if blocks == 1 { "is" } else { "are" };
        return format!("{counted} {verb} too few to tell this from chance; it takes {needed}");
    }
    match (sure, comparisons) {
        (0, _) => "not significant over the blocks".to_owned(),
        (1, [one]) => {
            let undecided = one.verdict(corrected[0]) == Verdict::Inconclusive;
            let small = if undecided {
                format!(", but less than the {} that matter", millis(one.least))
            } else {
                String::new()
            };
            format!("significant over {counted} (p {:.3}){small}", corrected[0])
        }
        (sure, all) if sure == all.len() => {
            format!("significant over {counted} in each, after Holm's correction")
        }
        (sure, all) => {
            let all = all.len();
            format!("significant in {sure} of {all}, after Holm's correction")
        }
    }
}

/// The least number of blocks for which the signed-rank test can be significant at all, with so
/// many comparisons: the smallest p over n pairs is 2 / 2^n.
pub(super) fn blocks_needed(comparisons: usize) -> usize {
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

    fn one(p: f64, blocks: usize) -> Comparison {
        Comparison {
            shift: 1.0,
            interval: None,
            p,
            blocks,
            baseline: 4.0,
            least: 0.2,
        }
    }

    #[test]
    fn a_verdict_needs_enough_blocks() {
        assert_eq!((blocks_needed(1), blocks_needed(8)), (6, 9));
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

    #[test]
    fn slower_is_a_verdict_and_needs_significance_and_effect() {
        let said = |comparison: Comparison| {
            let verdict = verdicts(&[comparison])[0];
            comparison.in_words(verdict, "a", "b")
        };
        assert_eq!(said(one(0.031, 6)), "a is 1.00 ms slower than b");
        assert_eq!(said(one(0.4, 6)), "a lies 1.00 ms above b");
        let narrow = Interval {
            low: 0.01,
            high: 0.1,
        };
        let small = Comparison {
            shift: -0.05,
            interval: Some(narrow),
            ..one(0.031, 6)
        };
        assert_eq!(
            said(small),
            "a and b differ by 50.0 µs (95 % interval −100 µs to −10.0 µs), less than the 200 µs that matter,"
        );
        let unsure = Comparison {
            interval: None,
            ..small
        };
        assert_eq!(said(unsure), "a lies 50.0 µs below b");
        assert_eq!(
            sureness(&[unsure]),
            "significant over 6 blocks (p 0.031), but less than the 200 µs that matter"
        );
    }
}
