//! Compares one quantity of two scenarios block by block; one sentence covers several such pairs.

use std::collections::BTreeMap;

use neph_model::{Better, Quantity};
use neph_stats::{Claim, Level, PairedShift, Verdict, Wanted, median_of_levels};

use super::compare::{
    Certainty, ClaimIndex, Decisions, Family, UNKNOWN_AMOUNT, certainty_text, interval_text,
};
use super::levels::MIN_SHARE;
use super::{Finding, FindingKind};
use crate::text::{plural, real};

/// A name against a baseline, in all scenarios that both were measured in.
#[derive(Debug)]
pub(crate) struct QuantityShift {
    pub(crate) quantity: Quantity,
    /// What distinguishes the quantity from others: a measure; may be empty.
    pub(crate) of: String,
    pub(crate) name: String,
    pub(crate) baseline: String,
    pub(crate) pairs: Vec<Pair>,
}

/// Two scenarios.
#[derive(Debug)]
pub(crate) struct Pair {
    /// What both have in common.
    title: String,
    shift: f64,
    baseline: f64,
    blocks: usize,
    margin: f64,
    claim_index: ClaimIndex,
}

impl Pair {
    /// The blocks that both were measured in; `None` without one.
    pub(crate) fn of(
        title: String,
        quantity: Quantity,
        candidate: &BTreeMap<u32, Level>,
        baseline_levels: &BTreeMap<u32, Level>,
        family: &mut Family,
    ) -> Option<Self> {
        let level_pairs = candidate.iter();
        let level_pairs = level_pairs
            .filter_map(|(block, candidate)| Some((*candidate, *baseline_levels.get(block)?)));
        let level_pairs: Vec<(Level, Level)> = level_pairs.collect();
        let shift = PairedShift::of_blocks(&level_pairs).ok()?;
        let baseline = median_of_levels(
            level_pairs
                .iter()
                .map(|(_, baseline_levels)| *baseline_levels),
        )
        .ok()?;
        let baseline = baseline.number().unwrap_or(f64::INFINITY);
        let margin = if baseline.is_finite() {
            MIN_SHARE * baseline
        } else {
            0.0
        };
        let better_direction = match quantity.properties().better {
            Better::Higher => Wanted::Higher,
            Better::Lower => Wanted::Lower,
        };
        Some(Self {
            title,
            shift: shift.estimate(),
            baseline,
            blocks: shift.n(),
            margin,
            claim_index: family.add(Claim::Shift {
                shift,
                margin,
                wanted: better_direction,
            }),
        })
    }

    /// The shift as a share of the baseline, if there is one.
    fn share(&self) -> Option<f64> {
        let share = self.shift / self.baseline;
        (self.baseline.is_finite() && share.is_finite()).then_some(share)
    }

    fn certainty(&self, quantity: Quantity, decisions: &Decisions) -> Certainty {
        Certainty {
            blocks: self.blocks,
            decision: decisions.at(self.claim_index),
            margin: quantity.to_text(self.margin),
        }
    }
}

impl QuantityShift {
    /// The sentence; `None` without a pair.
    pub(crate) fn sentence(&self, topic: &'static str, decisions: &Decisions) -> Option<Finding> {
        let by_shift = |a: &&Pair, b: &&Pair| a.shift.total_cmp(&b.shift);
        let smallest = self.pairs.iter().min_by(by_shift)?;
        let largest = self.pairs.iter().max_by(by_shift)?;
        let certainties = self.pairs.iter();
        let certainties: Vec<Certainty> = certainties
            .map(|pair| pair.certainty(self.quantity, decisions))
            .collect();
        let result_text = if let [only] = self.pairs.as_slice() {
            self.of_one(only, decisions)
        } else {
            self.of_several(smallest, largest, &certainties)
        };
        let text = format!("{result_text}; {}.", certainty_text(&certainties));
        let finding = Finding::new(FindingKind::Notable, topic, text)
            .about(&self.name)
            .about(&self.baseline)
            .with("shift_least", smallest.shift)
            .with("shift_most", largest.shift)
            .with("combinations", real(self.pairs.len()));
        let shares = [
            ("share_least", smallest.share()),
            ("share_most", largest.share()),
        ];
        let shares = shares
            .into_iter()
            .filter_map(|(name, share)| Some((name, share?)));
        Some(shares.fold(finding, |finding, (name, share)| finding.with(name, share)))
    }

    fn title(&self) -> String {
        let title = self.quantity.properties().title;
        match self.of.as_str() {
            "" => title.to_owned(),
            of => format!("{title} ({of})"),
        }
    }

    fn format_value(&self, value: f64) -> String {
        if value.is_finite() {
            self.quantity.to_text(value.abs())
        } else {
            UNKNOWN_AMOUNT.to_owned()
        }
    }

    fn of_one(&self, only: &Pair, decisions: &Decisions) -> String {
        let Self { name, baseline, .. } = self;
        let decision = decisions.at(only.claim_index);
        let end = |value: f64| {
            let sign = if value < 0.0 { "−" } else { "" };
            if value.is_finite() {
                format!("{sign}{}", self.format_value(value))
            } else {
                format!("{sign}∞")
            }
        };
        let interval = interval_text(only.shift, decision.interval, end);
        let (title, size, base) = (
            self.title(),
            self.format_value(only.shift),
            self.format_value(only.baseline),
        );
        if decision.verdict == Verdict::Equivalent {
            let margin = self.format_value(only.margin);
            return format!(
                "The {title} of '{name}' and '{baseline}' differ by {size}{interval}, less than the margin of {margin}"
            );
        }
        let direction = below_or_above(only.shift);
        format!(
            "The {title} of '{name}' is {size}{interval} {direction} that of '{baseline}', {base}"
        )
    }

    /// From the smallest to the largest shift; how many are better, worse or equal.
    fn of_several(&self, smallest: &Pair, largest: &Pair, certainties: &[Certainty]) -> String {
        let count = |verdict: Verdict| {
            let of_kind = certainties
                .iter()
                .filter(|pair_text| pair_text.decision.verdict == verdict);
            of_kind.count()
        };
        let verdicts = [
            (Verdict::Worse, "worse"),
            (Verdict::Better, "better"),
            (Verdict::Equivalent, "equivalent"),
            (Verdict::Inconclusive, "undecided"),
        ];
        let verdicts = verdicts.map(|(verdict, word)| (count(verdict), word));
        let verdicts = verdicts.iter().filter(|(count, _)| *count > 0);
        let verdicts: Vec<String> = verdicts
            .map(|(count, word)| format!("{word} in {count}"))
            .collect();
        let verdicts = verdicts.join(", ");
        let combinations = plural(self.pairs.len(), "combination");
        if smallest.shift == 0.0 && largest.shift == 0.0 {
            return format!(
                "The {} of '{}' against '{}': no difference anywhere; {verdicts} of {combinations}",
                self.title(),
                self.name,
                self.baseline,
            );
        }
        let pair_text = |pair: &Pair| {
            if pair.shift == 0.0 {
                return format!("no difference ({})", pair.title);
            }
            let share = pair.share();
            let share = share.map(|share| format!(" ({:.1} %)", share.abs() * 100.0));
            format!(
                "{}{} {} ({})",
                self.format_value(pair.shift),
                share.unwrap_or_default(),
                below_or_above(pair.shift),
                pair.title
            )
        };
        format!(
            "The {} of '{}' against '{}': from {} to {}; {verdicts} of {combinations}",
            self.title(),
            self.name,
            self.baseline,
            pair_text(smallest),
            pair_text(largest),
        )
    }
}

fn below_or_above(shift: f64) -> &'static str {
    if shift < 0.0 { "below" } else { "above" }
}
