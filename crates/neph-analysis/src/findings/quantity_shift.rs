//! Compares one quantity of two scenarios block by block; one sentence covers several such pairs.

use std::collections::BTreeMap;

use neph_model::{Better, Quantity};
use neph_stats::{Claim, Level, PairedShift, Verdict, Wanted};

use super::certainty::{Certainty, certainty_text};
use super::compare::{
    ClaimIndex, Decisions, Family, UNKNOWN_AMOUNT, interval_text, median_or_infinity,
};
use super::levels::MIN_SHARE;
use super::{Finding, FindingKind};
use crate::numbers::quantity_text;
use crate::text::{plural, to_f64};

/// A name against a baseline, in all scenarios that both were measured in.
#[derive(Debug)]
pub(crate) struct QuantityShift {
    pub(crate) quantity: Quantity,
    /// What is measured, to distinguish equal quantities; may be empty.
    pub(crate) measurement: String,
    pub(crate) name: String,
    pub(crate) baseline: String,
    pub(crate) pairs: Vec<Pair>,
}

/// Two scenarios.
#[derive(Debug)]
pub(crate) struct Pair {
    /// What both have in common.
    title: String,
    /// Hodges-Lehmann over blocks.
    shift: f64,
    /// Median over blocks; infinite if it is unknown.
    candidate: f64,
    /// Median over blocks; infinite if it is unknown.
    baseline: f64,
    blocks: usize,
    /// What the medians are over.
    median_blocks: MedianBlocks,
    margin: f64,
    claim_index: ClaimIndex,
}

/// The blocks of the medians of a pair.
#[derive(Clone, Copy, Debug)]
enum MedianBlocks {
    /// Every block of both scenarios.
    All,
    /// The blocks of both; at least one scenario has more.
    Common(usize),
}

impl MedianBlocks {
    /// ` over all blocks`, ` of the 2 blocks with both`.
    fn to_text(self) -> String {
        match self {
            Self::All => " over all blocks".to_owned(),
            Self::Common(1) => " of the block with both".to_owned(),
            Self::Common(count) => format!(" of the {} with both", plural(count, "block")),
        }
    }
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
        let common = level_pairs.len();
        let median_blocks = if candidate.len() > common || baseline_levels.len() > common {
            MedianBlocks::Common(common)
        } else {
            MedianBlocks::All
        };
        let shift = PairedShift::of_blocks(&level_pairs).ok()?;
        let candidate = median_or_infinity(level_pairs.iter().map(|pair| pair.0))?;
        let baseline = median_or_infinity(level_pairs.iter().map(|pair| pair.1))?;
        let margin = if baseline.is_finite() {
            MIN_SHARE * baseline
        } else {
            0.0
        };
        let wanted = match quantity.properties().better {
            Better::Higher => Wanted::Higher,
            Better::Lower => Wanted::Lower,
        };
        Some(Self {
            title,
            shift: shift.estimate(),
            candidate,
            baseline,
            blocks: shift.n(),
            median_blocks,
            margin,
            claim_index: family.add(Claim::Shift {
                shift,
                margin,
                wanted,
            }),
        })
    }

    /// The shift if there is a confidence interval for it; with fewer blocks, the difference of the
    /// medians. The shift of a few skewed differences can be larger than both medians.
    fn difference(&self, decisions: &Decisions) -> f64 {
        let has_interval = decisions.for_claim(self.claim_index).interval.is_some();
        if has_interval || self.candidate.is_infinite() || self.baseline.is_infinite() {
            self.shift
        } else {
            self.candidate - self.baseline
        }
    }

    /// Whether the medians differ in the other direction than the pairs of blocks.
    fn is_opposite_to_medians(&self, decisions: &Decisions) -> bool {
        let median_difference = self.candidate - self.baseline;
        median_difference.is_finite() && median_difference * self.difference(decisions) < 0.0
    }

    /// The difference as a share of the baseline, if there is one.
    fn share(&self, decisions: &Decisions) -> Option<f64> {
        let share = self.difference(decisions) / self.baseline;
        (self.baseline.is_finite() && share.is_finite()).then_some(share)
    }

    fn certainty(&self, quantity: Quantity, decisions: &Decisions) -> Certainty {
        Certainty {
            blocks: self.blocks,
            decision: decisions.for_claim(self.claim_index),
            margin: quantity_text(quantity, self.margin),
        }
    }
}

impl QuantityShift {
    /// The sentence; `None` without a pair.
    pub(crate) fn sentence(&self, topic: &'static str, decisions: &Decisions) -> Option<Finding> {
        let difference = |pair: &Pair| pair.difference(decisions);
        let by_difference = |a: &&Pair, b: &&Pair| difference(a).total_cmp(&difference(b));
        let smallest = self.pairs.iter().min_by(by_difference)?;
        let largest = self.pairs.iter().max_by(by_difference)?;
        let certainties = self.pairs.iter();
        let certainties: Vec<Certainty> = certainties
            .map(|pair| pair.certainty(self.quantity, decisions))
            .collect();
        let result_text = if let [only] = self.pairs.as_slice() {
            self.one_pair_text(only, decisions)
        } else {
            self.several_pairs_text(smallest, largest, decisions)
        };
        let text = format!("{result_text}; {}.", certainty_text(&certainties));
        let finding = Finding::new(FindingKind::Notable, topic, text)
            .about(&self.name)
            .about(&self.baseline)
            .with("shift_least", difference(smallest))
            .with("shift_most", difference(largest))
            .with("combinations", to_f64(self.pairs.len()));
        let shares = [
            ("share_least", smallest.share(decisions)),
            ("share_most", largest.share(decisions)),
        ];
        let shares = shares
            .into_iter()
            .filter_map(|(name, share)| Some((name, share?)));
        Some(shares.fold(finding, |finding, (name, share)| finding.with(name, share)))
    }

    fn title(&self) -> String {
        let title = self.quantity.properties().title;
        match self.measurement.as_str() {
            "" => title.to_owned(),
            measurement => format!("{title} ({measurement})"),
        }
    }

    fn format_value(&self, value: f64) -> String {
        if value.is_finite() {
            quantity_text(self.quantity, value.abs())
        } else {
            UNKNOWN_AMOUNT.to_owned()
        }
    }

    fn one_pair_text(&self, only: &Pair, decisions: &Decisions) -> String {
        let Self { name, baseline, .. } = self;
        let decision = decisions.for_claim(only.claim_index);
        let format_end = |value: f64| {
            let sign = if value < 0.0 { "−" } else { "" };
            if value.is_finite() {
                format!("{sign}{}", self.format_value(value))
            } else {
                format!("{sign}∞")
            }
        };
        let difference = only.difference(decisions);
        let interval = interval_text(difference, decision.interval, format_end);
        let (title, size) = (self.title(), self.format_value(difference));
        if decision.verdict == Verdict::Equivalent {
            let margin = self.format_value(only.margin);
            return format!(
                "The {title} of '{name}' and '{baseline}' differ by {size}{interval}, less than the margin of {margin}"
            );
        }
        let direction = below_or_above(difference);
        let [candidate, baseline_median] =
            [only.candidate, only.baseline].map(|value| self.format_value(value));
        let are_shown_equal = candidate == baseline_median;
        let medians = if are_shown_equal {
            format!("both {candidate}")
        } else {
            format!("{candidate} and {baseline_median}")
        };
        let blocks = only.median_blocks.to_text();
        if only.is_opposite_to_medians(decisions) && !are_shown_equal {
            return format!(
                "Within the same block, the {title} of '{name}' is {size}{interval} {direction} that of '{baseline}' (the medians{blocks} show the opposite: {medians})"
            );
        }
        // Without an interval, the difference is that of the medians.
        let (within, blocks) = match (decision.interval.is_some(), only.median_blocks) {
            (true, _) => (" within blocks", blocks),
            (false, MedianBlocks::Common(_)) => ("", blocks),
            (false, MedianBlocks::All) => ("", String::new()),
        };
        format!(
            "The {title} of '{name}' is {size}{interval} {direction} that of '{baseline}'{within} (medians{blocks}: {medians})"
        )
    }

    /// From the smallest to the largest difference; how many are better, worse or equal.
    fn several_pairs_text(&self, smallest: &Pair, largest: &Pair, decisions: &Decisions) -> String {
        let verdict_of = |pair: &&Pair| decisions.for_claim(pair.claim_index).verdict;
        let count = |verdict: Verdict| {
            let matching = self.pairs.iter().filter(|pair| verdict_of(pair) == verdict);
            matching.count()
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
        if smallest.difference(decisions) == 0.0 && largest.difference(decisions) == 0.0 {
            return format!(
                "The {} of '{}' against '{}': no difference anywhere; {verdicts} of {combinations}",
                self.title(),
                self.name,
                self.baseline,
            );
        }
        let pair_text = |pair: &Pair| {
            let difference = pair.difference(decisions);
            if difference == 0.0 {
                return format!("no difference ({})", pair.title);
            }
            let share = pair.share(decisions);
            let share = share.map(|share| format!(" ({:.1} %)", share.abs() * 100.0));
            format!(
                "{}{} {} ({})",
                self.format_value(difference),
                share.unwrap_or_default(),
                below_or_above(difference),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn levels<const N: usize>(values: [f64; N]) -> BTreeMap<u32, Level> {
        (1..).zip(values.map(Level::At)).collect()
    }

    /// The finding of 'a' against 'b'.
    fn finding(
        quantity: Quantity,
        candidate: &BTreeMap<u32, Level>,
        baseline: &BTreeMap<u32, Level>,
    ) -> Finding {
        let mut family = Family::default();
        let pair = Pair::of(String::new(), quantity, candidate, baseline, &mut family);
        let shift = QuantityShift {
            quantity,
            measurement: String::new(),
            name: "a".to_owned(),
            baseline: "b".to_owned(),
            pairs: pair.into_iter().collect(),
        };
        let finding = shift.sentence("transfers", &family.decisions());
        finding.expect("a sentence")
    }

    #[test]
    fn few_skewed_blocks_are_compared_by_their_medians() {
        let candidate = levels([4_100.0, 4_200.0, 4_200.0, 4_200.0, 4_300.0]);
        // Two slow blocks: the Hodges-Lehmann shift is 30,000 ns, above both medians.
        let baseline = levels([4_200.0, 4_300.0, 4_300.0, 64_000.0, 65_000.0]);
        let mut family = Family::default();
        let quantity = Quantity::RttP50;
        let pair = Pair::of(String::new(), quantity, &candidate, &baseline, &mut family);
        let pair = pair.expect("five blocks");
        assert!(pair.shift < -4_300.0, "{}", pair.shift);
        let finding = finding(quantity, &candidate, &baseline);
        let expected = "The RTT p50 of 'a' is 100 ns below that of 'b' (medians: 4.2 µs and 4.3 µs); no verdict yet";
        assert!(finding.text.starts_with(expected), "{}", finding.text);
        assert!((finding.evidence["share_least"] + 100.0 / 4_300.0).abs() < 1e-9);
    }

    #[test]
    fn medians_of_common_blocks_are_named_as_such() {
        let longer = levels([4_100.0, 4_300.0, 9_000.0]);
        for (shorter, expected) in [
            (
                levels([4_200.0, 4_600.0]),
                "is 200 ns below that of 'b' (medians of the 2 blocks with both: 4.2 µs and 4.4 µs);",
            ),
            (
                levels([4_200.0]),
                "is 100 ns below that of 'b' (medians of the block with both: 4.1 µs and 4.2 µs);",
            ),
        ] {
            let finding = finding(Quantity::RttP50, &longer, &shorter);
            assert!(finding.text.contains(expected), "{}", finding.text);
        }
    }

    #[test]
    fn medians_that_contradict_the_pairs_of_blocks_are_named_as_opposite() {
        // In six of seven blocks the candidate is lower, yet its median is higher.
        let candidate = levels([1e3, 2e3, 3e3, 4_900.0, 5e3, 6e3, 7e3]);
        let baseline = levels([2e3, 3e3, 4e3, 4_800.0, 6e3, 7e3, 8e3]);
        let opposite = finding(Quantity::RttP50, &candidate, &baseline).text;
        let begin =
            "Within the same block, the RTT p50 of 'a' is 1.0 µs (95 % confidence interval ";
        let end = ") below that of 'b' (the medians over all blocks show the opposite: 4.9 µs and 4.8 µs);";
        assert!(opposite.starts_with(begin), "{opposite}");
        assert!(opposite.contains(end), "{opposite}");
        // Medians that are shown as equal cannot be shown as opposite.
        let mut similar = baseline.clone();
        similar.insert(4, Level::At(4_899.0));
        let equal = finding(Quantity::RttP50, &candidate, &similar).text;
        let end = " within blocks (medians over all blocks: both 4.9 µs);";
        assert!(equal.contains(end), "{equal}");
        let mut longer = candidate;
        longer.insert(8, Level::At(1.0));
        let opposite = finding(Quantity::RttP50, &longer, &baseline).text;
        let medians = "(the medians of the 7 blocks with both show the opposite: ";
        assert!(opposite.contains(medians), "{opposite}");
    }
}
