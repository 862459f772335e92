//! Compares two scenarios block by block: medians of experiments, paired by block.
//!
//! Owns the medians, the family of comparisons that are judged together, and the text of the results. The
//! test and the verdict are those of `neph_stats` ([`judge`]).
//!
//! A message without a reply counts as slower than every reply. If half of a block has no reply, its median
//! is above every number, and a difference to it is infinite.

use std::collections::BTreeMap;

use neph_stats::{
    Claim, Interval, Judgement, Level, PairedShift, Sorted, Verdict, Wanted, blocks_needed,
    distinguishes, judge, median_of_levels,
};

use crate::latencies::Latencies;
use crate::numbers::millis;
use crate::{CampaignData, Layer, PlotSettings};

/// The smallest difference that matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LeastEffect {
    /// As a share of the baseline's median.
    pub share: f64,
    /// Minimum in milliseconds.
    pub(crate) millis: f64,
}

impl LeastEffect {
    fn alongside(self, baseline: f64) -> f64 {
        if baseline.is_finite() {
            self.millis.max(self.share * baseline)
        } else {
            self.millis
        }
    }
}

/// All comparisons of a report, which are judged together.
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
pub(crate) struct Place(usize);

impl Family {
    /// Adds a claim that no other sentence makes.
    pub(crate) fn add(&mut self, claim: Claim) -> Place {
        self.claims.push(claim);
        self.subjects.push(None);
        Place(self.claims.len() - 1)
    }

    /// Adds a claim, or returns the same one: two sentences about the same claim are one test.
    fn add_once(&mut self, subject: Subject, claim: Claim) -> Place {
        let known = self
            .subjects
            .iter()
            .zip(&self.claims)
            .position(|(one, other)| one.as_ref() == Some(&subject) && *other == claim);
        if let Some(place) = known {
            return Place(place);
        }
        let place = self.add(claim);
        self.subjects[place.0] = Some(subject);
        place
    }

    /// The judgement of each claim.
    pub(crate) fn judged(self) -> Judged {
        Judged(judge(&self.claims))
    }
}

/// A family after its judgement.
#[derive(Debug)]
pub(crate) struct Judged(Vec<Judgement>);

impl Judged {
    pub(crate) fn at(&self, place: Place) -> Judgement {
        self.0[place.0]
    }

    /// A comparison with its judgement.
    pub(crate) fn of(&self, comparison: Comparison) -> Decided {
        Decided {
            comparison,
            judgement: self.at(comparison.place),
        }
    }

    /// Several comparisons with their judgements.
    pub(crate) fn all(&self, comparisons: impl IntoIterator<Item = Comparison>) -> Vec<Decided> {
        comparisons.into_iter().map(|one| self.of(one)).collect()
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
    pub least: f64,
    place: Place,
}

/// A comparison with its judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decided {
    pub(crate) comparison: Comparison,
    judgement: Judgement,
}

impl Decided {
    pub(crate) const fn verdict(&self) -> Verdict {
        self.judgement.verdict
    }

    /// The p value after correction.
    pub(crate) const fn p(&self) -> f64 {
        self.judgement.p
    }

    pub(crate) const fn interval(&self) -> Option<Interval> {
        self.judgement.interval
    }

    /// Swaps the two scenarios.
    pub(crate) fn turned(mut self) -> Self {
        self.comparison.baseline += self.comparison.shift;
        self.comparison.shift = -self.comparison.shift;
        self.judgement.interval = self.judgement.interval.map(Interval::turned);
        self.judgement.verdict = match self.judgement.verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        };
        self
    }

    /// The size of the difference: `12.0 ms (95 % confidence interval 11.8 ms to 12.3 ms)`, without the
    /// interval if there is none.
    fn size_in_words(&self) -> String {
        let shift = self.comparison.shift;
        if shift.is_infinite() {
            return IMMEASURABLY.to_owned();
        }
        let interval = interval_in_words(shift, self.interval(), reported);
        format!("{}{interval}", reported(shift.abs()))
    }

    /// The result with both names; `slower` and `faster` only with a verdict.
    pub(crate) fn in_words(&self, name: &str, other: &str) -> String {
        let size = self.size_in_words();
        match self.verdict() {
            Verdict::Worse => format!("{name} is {size} slower than {other}"),
            Verdict::Better => format!("{name} is {size} faster than {other}"),
            Verdict::Equivalent => {
                let least = millis(self.comparison.least);
                format!("{name} and {other} differ by {size}, less than the margin of {least},")
            }
            Verdict::Inconclusive if self.comparison.shift > 0.0 => {
                format!("{name} took {size} more than {other}")
            }
            Verdict::Inconclusive => format!("{name} took {size} less than {other}"),
        }
    }
}

/// The size of an infinite difference.
pub(crate) const IMMEASURABLY: &str = "immeasurably";

/// The interval of a difference, without its sign: ` (95 % confidence interval 11.8 ms to 12.3 ms)`; empty if
/// there is none.
pub(crate) fn interval_in_words(
    shift: f64,
    interval: Option<Interval>,
    reported: impl Fn(f64) -> String,
) -> String {
    let Some(interval) = interval else {
        return String::new();
    };
    let interval = if shift < 0.0 {
        interval.turned()
    } else {
        interval
    };
    let (low, high) = (reported(interval.low), reported(interval.high));
    format!(" (95 % confidence interval {low} to {high})")
}

/// A difference, or [`IMMEASURABLY`] if it is infinite.
pub(crate) fn determined_by(value: f64, reported: impl Fn(f64) -> String) -> String {
    match value {
        f64::INFINITY => "∞".to_owned(),
        f64::NEG_INFINITY => "−∞".to_owned(),
        value => reported(value),
    }
}

/// Milliseconds, or a word for infinity.
pub(crate) fn reported(value: f64) -> String {
    determined_by(value, millis)
}

/// A sentence that explains infinite values; empty if there are none.
pub(crate) fn why_infinite(decided: &[Decided]) -> &'static str {
    if decided.iter().any(|one| one.comparison.shift.is_infinite()) {
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
                let is_seen = !latencies.sorted().values().is_empty();
                Some((experiment.block(), latencies.median().filter(|_| is_seen)?))
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
    fn with(&self, other: &Self) -> Vec<(Level, Level)> {
        let both = self.by_block.iter();
        let both = both.filter_map(|(block, one)| Some((*one, *other.by_block.get(block)?)));
        both.filter(|block| distinguishes(*block)).collect()
    }

    /// The shift against another scenario; `None` without a block in which at least one has a median.
    pub(crate) fn shift_from(&self, other: &Self) -> Option<PairedShift> {
        PairedShift::of_blocks(&self.with(other)).ok()
    }
}

/// Compares the blocks that both scenarios have, as part of the report's family. `None` without a block in
/// which at least one has a median.
pub(crate) fn compare(
    family: &mut Family,
    candidate: &Medians,
    baseline: &Medians,
    least: LeastEffect,
) -> Option<Comparison> {
    let blocks = candidate.with(baseline);
    let shift = PairedShift::of_blocks(&blocks).ok()?;
    let subject = Subject {
        candidate: candidate.scenario,
        baseline: baseline.scenario,
    };
    let baseline = median_of_levels(blocks.iter().map(|block| block.1)).ok()?;
    // Infinite if messages without a reply decide it.
    let baseline = baseline.number().unwrap_or(f64::INFINITY);
    let least = least.alongside(baseline);
    Some(Comparison {
        shift: shift.estimate(),
        blocks: shift.n(),
        baseline,
        least,
        place: family.add_once(
            subject,
            Claim::Shift {
                shift,
                least,
                wanted: Wanted::Lower,
            },
        ),
    })
}

/// How certain a set of comparisons is, as the end of a sentence.
pub(crate) fn sureness(decided: &[Decided]) -> String {
    let sure = decided.iter().map(|one| Certainty {
        blocks: one.comparison.blocks,
        judgement: one.judgement,
        least: millis(one.comparison.least),
    });
    certainty(&sure.collect::<Vec<_>>())
}

/// What the certainty of a comparison depends on.
#[derive(Clone, Debug)]
pub(crate) struct Certainty {
    /// Number of blocks that both have.
    pub(crate) blocks: usize,
    /// The judgement.
    pub(crate) judgement: Judgement,
    /// The smallest difference that matters, with its unit.
    pub(crate) least: String,
}

/// How certain a set of comparisons is, as the end of a sentence.
pub(crate) fn certainty(decided: &[Certainty]) -> String {
    let blocks = decided.iter().map(|one| one.blocks).min();
    let blocks = blocks.unwrap_or(0);
    let family = decided.first().map_or(1, |one| one.judgement.family);
    let needed = blocks_needed(family);
    let counted = crate::words::plural(blocks, "block");
    let among = match family {
        0 | 1 => String::new(),
        all => format!(" for {all} comparisons in one report"),
    };
    if blocks < needed {
        return format!("no verdict yet: {needed} blocks are needed{among}, not {blocks}");
    }
    let is_sure = |one: &&Certainty| one.judgement.verdict != Verdict::Inconclusive;
    let corrected = match family {
        0 | 1 => String::new(),
        all => format!(", corrected for {all} comparisons"),
    };
    match (decided.iter().filter(is_sure).count(), decided) {
        (0, [one]) => format!(
            "undecided over {counted}: shown to be neither above nor below {}, the smallest difference that matters{corrected}",
            one.least
        ),
        (0, _) => format!("undecided over {counted}{corrected}"),
        (1, [one]) => format!(
            "significant over {counted} (p {:.3}{corrected})",
            one.judgement.p
        ),
        (sure, all) if sure == all.len() => {
            format!("significant over {counted} in each{corrected}")
        }
        (sure, all) => format!("significant in {sure} of {}{corrected}", all.len()),
    }
}
