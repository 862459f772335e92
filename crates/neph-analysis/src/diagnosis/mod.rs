//! Diagnosis: root causes with evidence, confidence, remedy and limits.
//!
//! Owns the rules and the order of their results. A rule uses measurements only, never the true values of a
//! lab. It reports a root cause only if its mechanism is visible, not because nothing else is left.
//! Distributions and comparisons are findings (see `findings`).

mod confidence;
mod load;
mod needs;
mod peer;
mod rule_input;
mod rule_result;
mod rules;
mod sorted_values;
mod stall;
#[cfg(test)]
mod tests;
mod text;
mod times;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{CampaignData, PlotSettings};

pub(crate) use confidence::Agreement;
pub use confidence::{Confidence, Level};
pub(crate) use load::{LoadAttribution, is_by_load, measure_without};
pub(crate) use needs::Need;
pub use needs::NotEvaluated;
pub(crate) use peer::{Peer, is_imported, peer};
pub(crate) use rule_input::{NetworkTime, RuleInput, Run, SendWait, SitePair};
pub(crate) use rule_result::RuleResult;
pub use rule_result::{Evidence, Observation};
pub use rules::RULES;
pub(crate) use sorted_values::SortedValues;
pub(crate) use stall::{Stall, slope, waits};
pub(crate) use times::Times;

/// A mechanism that adds latency, and how to find it.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The name in files: `slow-start-after-idle`.
    pub name: &'static str,
    /// The name on screen.
    pub title: &'static str,
    /// What the rule cannot detect.
    pub limits: &'static str,
    /// Topics of findings that this rule replaces for the same scenarios (see [`crate::Finding::topic`]).
    pub(crate) covers: &'static [&'static str],
    /// The data that the rule requires.
    pub(crate) needs: &'static [Need],
    pub(crate) evaluate: fn(&RuleInput<'_>) -> Vec<RuleResult>,
}

/// A root cause that a rule found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// The rule's name.
    pub rule: &'static str,
    /// The rule's name on screen.
    pub title: &'static str,
    /// What adds latency, where and how much, in a sentence.
    pub cause: String,
    /// Numbers that support the root cause, by name with unit.
    pub evidence: Vec<Evidence>,
    /// Experiments and messages that show the effect best.
    pub observations: Vec<Observation>,
    /// Confidence in the root cause, with its reason.
    pub confidence: Confidence,
    /// What to do about it.
    pub remedy: String,
    /// What the rule cannot detect.
    pub limits: &'static str,
    /// Latency that it adds to an affected message, in milliseconds; diagnoses are ordered by it.
    pub added_ms: f64,
    /// The affected scenarios, by index, with the milliseconds of a message that it explains at most;
    /// infinite where no rule calculates them.
    #[serde(skip)]
    pub scenarios: BTreeMap<usize, f64>,
    #[serde(skip)]
    covers: &'static [&'static str],
}

impl Diagnosis {
    fn new(rule: &Rule, result: RuleResult) -> Self {
        Self {
            rule: rule.name,
            title: rule.title,
            cause: result.cause,
            evidence: result.evidence,
            observations: result.observations,
            confidence: result.confidence,
            remedy: result.remedy,
            limits: rule.limits,
            added_ms: result.added_ms,
            scenarios: result.scenarios,
            covers: rule.covers,
        }
    }

    /// How many milliseconds of the scenario's messages it explains at most; `None` if it does not replace
    /// findings of that topic.
    pub(crate) fn explains(&self, topic: &str, scenario: usize) -> Option<f64> {
        let explained = self.scenarios.get(&scenario).copied();
        explained.filter(|_| self.covers.contains(&topic))
    }
}

/// An observation of a rule that is no root cause: it changes no figure, or not by enough, or not with enough
/// confidence.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Note {
    /// The rule's name.
    pub rule: &'static str,
    /// What was observed and how much, in a sentence.
    pub text: String,
    /// Numbers that support the observation, by name with unit.
    pub evidence: Vec<Evidence>,
    /// Experiments and messages that show it best.
    pub observations: Vec<Observation>,
}

/// The results of all rules for a campaign.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Diagnoses {
    /// Every root cause, ordered by added latency.
    #[serde(rename = "diagnoses")]
    pub causes: Vec<Diagnosis>,
    /// Observations that are no root cause.
    pub notes: Vec<Note>,
    /// The rules that were not evaluated, in their order.
    pub not_evaluated: Vec<NotEvaluated>,
    /// Only fleets were measured. No rule applies to them, so no rule counts as not evaluated.
    pub fleets_only: bool,
}

/// Evaluates all rules on a campaign; reports root causes, notes and the rules that were not evaluated.
pub fn diagnose(data: &CampaignData, settings: &PlotSettings) -> Diagnoses {
    if data.has_only_fleets(settings) {
        return Diagnoses {
            fleets_only: true,
            ..Diagnoses::default()
        };
    }
    let input = RuleInput::of(data, settings);
    let mut diagnoses = Diagnoses::default();
    for rule in RULES {
        let results = (rule.evaluate)(&input);
        if results.is_empty() {
            diagnoses
                .not_evaluated
                .extend(NotEvaluated::of(rule, &input));
        }
        let (notes, causes): (Vec<RuleResult>, Vec<RuleResult>) =
            results.into_iter().partition(|result| result.is_note);
        let causes = causes.into_iter();
        diagnoses
            .causes
            .extend(causes.map(|result| Diagnosis::new(rule, result)));
        diagnoses.notes.extend(notes.into_iter().map(|result| Note {
            rule: rule.name,
            text: result.cause,
            evidence: result.evidence,
            observations: result.observations,
        }));
    }
    diagnoses
        .causes
        .sort_by(|a, b| b.added_ms.total_cmp(&a.added_ms));
    diagnoses
}
