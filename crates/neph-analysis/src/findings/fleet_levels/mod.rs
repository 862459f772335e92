//! Compares fleets of scenarios that differ in one parameter only, such as the season: path changes,
//! inflation and unfairness, one value per experiment.
//!
//! The unit is the experiment, not the flow: flows of one experiment share the state of the network. Owns the
//! sentences; `compared` calculates their numbers.

mod compared;
mod samples;

use neph_flows::Measure;
use neph_stats::{Verdict, blocks_needed};

pub(crate) use compared::{Compared, LevelVersusFirst};
pub(crate) use compared::{comparisons, decide, prepare};

use super::compare::{UNKNOWN_AMOUNT, format_or_infinity, interval_text};
use super::{Finding, FindingKind};
use crate::numbers::{count, signed};
use crate::text::{plural, to_f64};

/// For each group of scenarios, a sentence per level other than the first.
pub(crate) fn findings(comparisons: &[LevelVersusFirst]) -> Vec<Finding> {
    comparisons
        .iter()
        .filter_map(LevelVersusFirst::sentence)
        .collect()
}

impl LevelVersusFirst {
    fn sentence(&self) -> Option<Finding> {
        let first = self.compared.first()?;
        let part = |compared: &Compared| {
            format!("{}{}", compared.to_text(), compared.deviating_base(first))
        };
        let parts: Vec<String> = self.compared.iter().map(part).collect();
        let mut text = format!(
            "{}: {} against {}: {}. {}.",
            self.title,
            self.level,
            self.first,
            parts.join("; "),
            first.evidence_text()
        );
        for limit in &self.limits {
            text.push_str(&format!(" {limit}."));
        }
        let mut finding = Finding::new(FindingKind::Notable, "flows", text)
            .about(&self.endpoint)
            .about(&self.level)
            .about(&self.first)
            .with("experiments_first", to_f64(first.n.1))
            .with("experiments_other", to_f64(first.n.0))
            .with("comparisons_together", to_f64(first.family_size()));
        for compared in &self.compared {
            let key = compared.key();
            finding = finding
                .with(&format!("{key}_n_first"), to_f64(compared.n.1))
                .with(&format!("{key}_n_other"), to_f64(compared.n.0))
                .with(&format!("{key}_shift"), compared.shift);
            if let Some(decision) = compared.decision {
                finding = finding
                    .with(&format!("{key}_p"), decision.p_alone)
                    .with(&format!("{key}_p_holm"), decision.p);
            }
        }
        Some(finding)
    }
}

impl Compared {
    const fn key(&self) -> &'static str {
        match self.measure {
            Measure::Changes => "changes_per_flow_hour",
            Measure::Inflation => "inflation",
            Measure::Unfairness => "unfairness",
        }
    }

    /// A difference as a number; shares in percentage points.
    fn number(&self, difference: f64) -> String {
        format_or_infinity(difference, |difference| {
            signed(&match self.measure {
                Measure::Changes => format!("{difference:.2}"),
                Measure::Inflation | Measure::Unfairness => format!("{:.1}", difference * 100.0),
            })
        })
    }

    /// A difference without its sign, with the measure's unit.
    fn size(&self, difference: f64) -> String {
        if difference.is_infinite() {
            return UNKNOWN_AMOUNT.to_owned();
        }
        let unit = match self.measure {
            Measure::Changes => "",
            Measure::Inflation | Measure::Unfairness => " percentage points",
        };
        format!("{}{unit}", self.number(difference))
    }

    /// `latency inflation 12.0 percentage points higher (95 % confidence interval 11.0 to 13.0): worse`.
    fn to_text(&self) -> String {
        let shift = self.shift;
        let change = match shift {
            shift if self.number(shift) == self.number(0.0) => "no different".to_owned(),
            shift if shift > 0.0 => format!("{} higher", self.size(shift)),
            shift => format!("{} lower", self.size(-shift)),
        };
        let interval = self.decision.and_then(|decision| decision.interval);
        let interval = interval_text(shift, interval, |end| self.number(end));
        let verdict = match self.decision.map(|decision| decision.verdict) {
            Some(Verdict::Better) => "better".to_owned(),
            Some(Verdict::Worse) => "worse".to_owned(),
            Some(Verdict::Equivalent) => {
                format!("equivalent within a margin of {}", self.size(self.margin))
            }
            Some(Verdict::Inconclusive) => "inconclusive".to_owned(),
            None => "no verdict".to_owned(),
        };
        format!("{} {change}{interval}: {verdict}", self.measure.name())
    }

    /// States other experiments than those of the sentence, if the measure has others. For example, bins with
    /// too few flows have no unfairness.
    fn deviating_base(&self, first: &Self) -> String {
        let (other_count, first_count) = self.n;
        if (self.is_paired(), self.n) == (first.is_paired(), first.n) {
            return String::new();
        }
        if self.is_paired() {
            return format!(" (only {})", plural(first_count, "block"));
        }
        let experiments = plural(other_count, "experiment");
        format!(
            " ({experiments} against {}, of different blocks)",
            count(first_count)
        )
    }

    /// Number of statements of the report that are evaluated together.
    fn family_size(&self) -> usize {
        self.decision.map_or(0, |decision| decision.family)
    }

    /// The number of blocks or experiments that the comparison uses.
    fn evidence_text(&self) -> String {
        let (other, first) = self.n;
        if !self.is_paired() {
            let experiments = |n: usize| plural(n, "experiment");
            return format!(
                "{} against {}, of different blocks",
                experiments(other),
                count(first)
            );
        }
        let blocks_text = format!("An experiment of each in {}", plural(first, "block"));
        match blocks_needed(self.family_size()) {
            needed if first < needed => {
                format!("{blocks_text}: not significant ({needed} blocks needed)")
            }
            _ => blocks_text,
        }
    }
}
