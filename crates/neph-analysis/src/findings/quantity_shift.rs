//! Compares one quantity of two scenarios block by block; one sentence covers several such pairs.

use std::collections::BTreeMap;

use neph_model::{Better, Quantity};
use neph_stats::{Claim, Level, PairedShift, Verdict, Wanted, median_of_levels};

use super::compare::{Certainty, Family, Judged, Place, certainty, interval_in_words};
use super::levels::MIN_SHARE;
use super::{Finding, FindingKind};
use crate::words::{plural, real};

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
    least: f64,
    place: Place,
}

impl Pair {
    /// The blocks that both were measured in; `None` without one.
    pub(crate) fn of(
        title: String,
        quantity: Quantity,
        one: &BTreeMap<u32, Level>,
        other: &BTreeMap<u32, Level>,
        family: &mut Family,
    ) -> Option<Self> {
        let both = one.iter();
        let both = both.filter_map(|(block, one)| Some((*one, *other.get(block)?)));
        let both: Vec<(Level, Level)> = both.collect();
        let shift = PairedShift::of_blocks(&both).ok()?;
        let baseline = median_of_levels(both.iter().map(|(_, other)| *other)).ok()?;
        let baseline = baseline.number().unwrap_or(f64::INFINITY);
        let least = if baseline.is_finite() {
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
            baseline,
            blocks: shift.n(),
            least,
            place: family.add(Claim::Shift {
                shift,
                least,
                wanted,
            }),
        })
    }

    /// The shift as a share of the baseline, if there is one.
    fn share(&self) -> Option<f64> {
        let share = self.shift / self.baseline;
        (self.baseline.is_finite() && share.is_finite()).then_some(share)
    }

    fn certainty(&self, quantity: Quantity, judged: &Judged) -> Certainty {
        Certainty {
            blocks: self.blocks,
            judgement: judged.at(self.place),
            least: quantity.in_words(self.least),
        }
    }
}

impl QuantityShift {
    /// The sentence; `None` without a pair.
    pub(crate) fn sentence(&self, topic: &'static str, judged: &Judged) -> Option<Finding> {
        let by_shift = |a: &&Pair, b: &&Pair| a.shift.total_cmp(&b.shift);
        let least = self.pairs.iter().min_by(by_shift)?;
        let most = self.pairs.iter().max_by(by_shift)?;
        let sure = self.pairs.iter();
        let sure: Vec<Certainty> = sure
            .map(|pair| pair.certainty(self.quantity, judged))
            .collect();
        let how = if let [only] = self.pairs.as_slice() {
            self.of_one(only, judged)
        } else {
            self.of_several(least, most, &sure)
        };
        let text = format!("{how}; {}.", certainty(&sure));
        let finding = Finding::new(FindingKind::Notable, topic, text)
            .about(&self.name)
            .about(&self.baseline)
            .with("shift_least", least.shift)
            .with("shift_most", most.shift)
            .with("combinations", real(self.pairs.len()));
        let shares = [("share_least", least.share()), ("share_most", most.share())];
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

    fn reported(&self, value: f64) -> String {
        if value.is_finite() {
            self.quantity.in_words(value.abs())
        } else {
            "immeasurably".to_owned()
        }
    }

    fn of_one(&self, only: &Pair, judged: &Judged) -> String {
        let Self { name, baseline, .. } = self;
        let judgement = judged.at(only.place);
        let end = |value: f64| {
            let sign = if value < 0.0 { "−" } else { "" };
            if value.is_finite() {
                format!("{sign}{}", self.reported(value))
            } else {
                format!("{sign}∞")
            }
        };
        let interval = interval_in_words(only.shift, judgement.interval, end);
        let (title, size, base) = (
            self.title(),
            self.reported(only.shift),
            self.reported(only.baseline),
        );
        if judgement.verdict == Verdict::Equivalent {
            let least = self.reported(only.least);
            return format!(
                "The {title} of {name} and {baseline} differ by {size}{interval}, less than the margin of {least}"
            );
        }
        let way = way(only.shift);
        format!("The {title} of {name} is {size}{interval} {way} that of {baseline}, {base}")
    }

    /// From the smallest to the largest shift; how many are better, worse or equal.
    fn of_several(&self, least: &Pair, most: &Pair, sure: &[Certainty]) -> String {
        let count = |wanted: Verdict| {
            let of_kind = sure.iter().filter(|one| one.judgement.verdict == wanted);
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
        if least.shift == 0.0 && most.shift == 0.0 {
            return format!(
                "The {} of {} against {}: no difference anywhere; {verdicts} of {combinations}",
                self.title(),
                self.name,
                self.baseline,
            );
        }
        let one = |pair: &Pair| {
            if pair.shift == 0.0 {
                return format!("no difference ({})", pair.title);
            }
            let share = pair.share();
            let share = share.map(|share| format!(" ({:.1} %)", share.abs() * 100.0));
            format!(
                "{}{} {} ({})",
                self.reported(pair.shift),
                share.unwrap_or_default(),
                way(pair.shift),
                pair.title
            )
        };
        format!(
            "The {} of {} against {}: from {} to {}; {verdicts} of {combinations}",
            self.title(),
            self.name,
            self.baseline,
            one(least),
            one(most),
        )
    }
}

fn way(shift: f64) -> &'static str {
    if shift < 0.0 { "below" } else { "above" }
}
