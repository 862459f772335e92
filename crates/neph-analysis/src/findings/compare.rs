//! Compares two scenarios block by block: medians of experiments, paired by block.
//!
//! Owns the medians, the family of comparisons that are evaluated together, and the text of the results. The
//! test and the verdict are those of `neph_stats` ([`decide`]).
//!
//! A message without a reply counts as slower than every reply. If half of a block has no reply, its median
//! is above every number, and a difference to it is infinite.

use std::collections::BTreeMap;

use neph_stats::{
    Claim, ConfidenceInterval, Decision, Level, PairedShift, Sorted, Verdict, Wanted, decide,
    distinguishes, median_of_levels,
};

use crate::latencies::Latencies;
use crate::numbers::millis;
use crate::{CampaignData, Layer, PlotSettings};

/// The smallest difference that matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MinEffect {
    /// As a share of the baseline's median.
    pub share: f64,
    /// Minimum in milliseconds.
    pub(crate) millis: f64,
}

impl MinEffect {
    fn at_baseline(self, baseline: f64) -> f64 {
        if baseline.is_finite() {
            self.millis.max(self.share * baseline)
        } else {
            self.millis
        }
    }
}

/// All comparisons of a report, which are evaluated together.
#[derive(Debug, Default)]
pub(crate) struct Family {
    claims: Vec<Claim>,
    /// What each claim compares; `None` for claims that occur once only.
    subjects: Vec<Option<Subject>>,
}

/// Two scenarios by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subject {
    candidate: usize,
    baseline: usize,
}

/// The index of a comparison in its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimIndex(usize);

impl Family {
    /// Adds a claim that no other sentence makes.
    pub(crate) fn add(&mut self, claim: Claim) -> ClaimIndex {
        self.claims.push(claim);
        self.subjects.push(None);
        ClaimIndex(self.claims.len() - 1)
    }

    /// Adds a claim, or returns the same one: two sentences about the same claim are one test.
    fn add_once(&mut self, subject: Subject, claim: Claim) -> ClaimIndex {
        let mut existing = self.subjects.iter().zip(&self.claims);
        let is_same = |(known_subject, known_claim): (&Option<Subject>, &Claim)| {
            known_subject.as_ref() == Some(&subject) && *known_claim == claim
        };
        if let Some(index) = existing.position(is_same) {
            return ClaimIndex(index);
        }
        let index = self.add(claim);
        self.subjects[index.0] = Some(subject);
        index
    }

    /// The judgement of each claim.
    pub(crate) fn decisions(self) -> Decisions {
        Decisions(decide(&self.claims))
    }
}

/// A family after its judgement.
#[derive(Debug)]
pub(crate) struct Decisions(Vec<Decision>);

impl Decisions {
    pub(crate) fn for_claim(&self, index: ClaimIndex) -> Decision {
        self.0[index.0]
    }

    /// A comparison with its judgement.
    pub(crate) fn for_comparison(&self, comparison: Comparison) -> DecidedComparison {
        DecidedComparison {
            comparison,
            decision: self.for_claim(comparison.index),
        }
    }

    /// Several comparisons with their judgements.
    pub(crate) fn for_comparisons(
        &self,
        comparisons: impl IntoIterator<Item = Comparison>,
    ) -> Vec<DecidedComparison> {
        comparisons
            .into_iter()
            .map(|comparison| self.for_comparison(comparison))
            .collect()
    }
}

/// One scenario against another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// Candidate minus baseline in milliseconds: Hodges-Lehmann over blocks, or the difference of a single
    /// block.
    pub shift: f64,
    /// Number of blocks that both have.
    pub blocks: usize,
    /// The baseline's median over blocks in milliseconds.
    pub(crate) baseline: f64,
    /// The smallest difference in milliseconds that matters.
    pub margin: f64,
    index: ClaimIndex,
}

/// A comparison with its judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DecidedComparison {
    pub(crate) comparison: Comparison,
    pub(super) decision: Decision,
}

impl DecidedComparison {
    pub(crate) const fn verdict(&self) -> Verdict {
        self.decision.verdict
    }

    /// The p value after correction.
    pub(crate) const fn p(&self) -> f64 {
        self.decision.p
    }

    pub(crate) const fn interval(&self) -> Option<ConfidenceInterval> {
        self.decision.interval
    }

    /// Swaps the two scenarios.
    pub(crate) fn swapped(mut self) -> Self {
        self.comparison.baseline += self.comparison.shift;
        self.comparison.shift = -self.comparison.shift;
        self.decision.interval = self.decision.interval.map(ConfidenceInterval::reversed);
        self.decision.verdict = match self.decision.verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        };
        self
    }

    /// The size of the difference: `12.0 ms (95 % confidence interval 11.8 ms to 12.3 ms)`, without the
    /// interval if there is none.
    fn size_text(&self) -> String {
        let shift = self.comparison.shift;
        if shift.is_infinite() {
            return UNKNOWN_AMOUNT.to_owned();
        }
        let interval = interval_text(shift, self.interval(), format_millis);
        format!("{}{interval}", format_millis(shift.abs()))
    }

    /// The result with both names; `slower` and `faster` only with a verdict.
    pub(crate) fn to_text(self, name: &str, other: &str) -> String {
        let size = self.size_text();
        match self.verdict() {
            Verdict::Worse => format!("{name} is {size} slower than {other}"),
            Verdict::Better => format!("{name} is {size} faster than {other}"),
            Verdict::Equivalent => {
                let margin = millis(self.comparison.margin);
                format!("{name} and {other} differ by {size}, less than the margin of {margin},")
            }
            Verdict::Inconclusive if self.comparison.shift > 0.0 => {
                format!("{name} took {size} more than {other}")
            }
            Verdict::Inconclusive => format!("{name} took {size} less than {other}"),
        }
    }
}

/// The size of an infinite difference.
pub(crate) const UNKNOWN_AMOUNT: &str = "an unknown amount";

/// The interval of a difference, without its sign: ` (95 % confidence interval 11.8 ms to 12.3 ms)`; empty if
/// there is none.
pub(crate) fn interval_text(
    shift: f64,
    interval: Option<ConfidenceInterval>,
    format_value: impl Fn(f64) -> String,
) -> String {
    let Some(interval) = interval else {
        return String::new();
    };
    let interval = if shift < 0.0 {
        interval.reversed()
    } else {
        interval
    };
    let (low, high) = (format_value(interval.low), format_value(interval.high));
    format!(" (95 % confidence interval {low} to {high})")
}

/// A difference, or [`UNKNOWN_AMOUNT`] if it is infinite.
pub(crate) fn format_or_infinity(value: f64, format_value: impl Fn(f64) -> String) -> String {
    match value {
        f64::INFINITY => "∞".to_owned(),
        f64::NEG_INFINITY => "−∞".to_owned(),
        value => format_value(value),
    }
}

/// Milliseconds, or a word for infinity.
pub(crate) fn format_millis(value: f64) -> String {
    format_or_infinity(value, millis)
}

/// A sentence that explains infinite values; empty if there are none.
pub(crate) fn infinity_reason(decided: &[DecidedComparison]) -> &'static str {
    let mut shifts = decided.iter().map(|decided| decided.comparison.shift);
    if shifts.any(f64::is_infinite) {
        " At least half of the messages of the slower side have no reply, so its median is unknown."
    } else {
        ""
    }
}

/// The median; `None` without values.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    let sample = Sorted::sort(values).ok()?;
    neph_stats::median(sample, 0).ok()?.number()
}

/// The median of levels, infinite if messages without a reply decide it; `None` without levels.
pub(crate) fn median_or_infinity(levels: impl Iterator<Item = Level>) -> Option<f64> {
    let median = median_of_levels(levels).ok()?;
    Some(median.number().unwrap_or(f64::INFINITY))
}

/// A scenario with the median of each block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Medians {
    /// Index of the scenario.
    scenario: usize,
    by_block: BTreeMap<u32, Level>,
}

impl Medians {
    /// Medians of a scenario; an experiment without messages has none.
    pub(crate) fn of(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Self {
        let by_block = data
            .experiments_of(scenario, settings)
            .filter_map(|experiment| {
                let latencies = Latencies::of(experiment.main(), settings.basis);
                Some((experiment.block(), latencies.median()?))
            });
        Self {
            scenario,
            by_block: by_block.collect(),
        }
    }

    /// Medians of a scenario in one layer. Below the response time, an experiment without messages in that
    /// layer has none: missing kernel timestamps say nothing about the network.
    pub(crate) fn of_layer(
        data: &CampaignData,
        settings: &PlotSettings,
        scenario: usize,
        layer: &Layer,
    ) -> Self {
        if *layer == Layer::Response {
            return Self::of(data, settings, scenario);
        }
        let by_block = data
            .experiments_of(scenario, settings)
            .filter_map(|experiment| {
                let latencies = Latencies::of_layer(layer.flow(experiment)?, layer);
                let has_values = !latencies.sorted().values().is_empty();
                Some((
                    experiment.block(),
                    latencies.median().filter(|_| has_values)?,
                ))
            });
        Self {
            scenario,
            by_block: by_block.collect(),
        }
    }

    /// The logarithm of each block's median, if that is a number above zero.
    pub(crate) fn logarithms(&self) -> BTreeMap<u32, f64> {
        let numbers = self.by_block.iter();
        let numbers = numbers.filter_map(|(block, level)| Some((*block, level.number()?)));
        let numbers = numbers.filter(|(_, number)| *number > 0.0);
        numbers
            .map(|(block, number)| (block, number.ln()))
            .collect()
    }

    /// The blocks that both have and in which at least one has a median; returns both values.
    fn paired_blocks(&self, other: &Self) -> Vec<(Level, Level)> {
        let pairs = self.by_block.iter();
        let pairs = pairs.filter_map(|(block, level)| Some((*level, *other.by_block.get(block)?)));
        pairs.filter(|block| distinguishes(*block)).collect()
    }

    /// The shift against another scenario; `None` without a block in which at least one has a median.
    pub(crate) fn shift_from(&self, other: &Self) -> Option<PairedShift> {
        PairedShift::of_blocks(&self.paired_blocks(other)).ok()
    }
}

/// Compares the blocks that both scenarios have, as part of the report's family. `None` without a block in
/// which at least one has a median.
pub(crate) fn compare(
    family: &mut Family,
    candidate: &Medians,
    baseline: &Medians,
    margin: MinEffect,
) -> Option<Comparison> {
    let blocks = candidate.paired_blocks(baseline);
    let shift = PairedShift::of_blocks(&blocks).ok()?;
    let subject = Subject {
        candidate: candidate.scenario,
        baseline: baseline.scenario,
    };
    let baseline = median_or_infinity(blocks.iter().map(|block| block.1))?;
    let margin = margin.at_baseline(baseline);
    Some(Comparison {
        shift: shift.estimate(),
        blocks: shift.n(),
        baseline,
        margin,
        index: family.add_once(
            subject,
            Claim::Shift {
                shift,
                margin,
                wanted: Wanted::Lower,
            },
        ),
    })
}
