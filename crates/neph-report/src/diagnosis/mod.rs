//! Diagnosis: named causes, each with what it was seen by, how sure it is, what to do about it and
//! what it cannot tell.
//!
//! Owns the rules and the order in which their causes are told. A rule looks at measurements only,
//! never at a lab's truth, and speaks only where its mechanism is visible, not because nothing else
//! is left. What is a distribution or a comparison is a finding (see `findings`); what is a cause
//! is told here.

mod confidence;
mod found;
mod rules;
mod sight;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{CampaignData, PlotSettings};

pub(crate) use confidence::Agreement;
pub use confidence::{Confidence, Level};
pub(crate) use found::Found;
pub use found::{Evidence, Seen};
pub use rules::RULES;
pub(crate) use sight::{Crossing, Ordered, Place, Run, Sight, Times};
pub use text::{diagnoses_in_brief, diagnoses_in_full};

/// A mechanism that makes messages slow, and how it is found.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name in files: `slow-start-after-idle`.
    pub name: &'static str,
    /// Its name on screen.
    pub title: &'static str,
    /// What it cannot tell.
    pub limits: &'static str,
    /// The topics of findings that say less of the same scenarios (see [`crate::Finding::topic`]).
    pub(crate) covers: &'static [&'static str],
    pub(crate) look: fn(&Sight<'_>) -> Vec<Found>,
}

/// A cause that a rule has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The rule's name.
    pub rule: &'static str,
    /// The rule's name on screen.
    pub title: &'static str,
    /// Who, where and how much, in a sentence.
    pub cause: String,
    /// The numbers that it rests on, by name with their unit.
    pub evidence: Vec<Evidence>,
    /// The experiments and messages that show it best.
    pub seen: Vec<Seen>,
    /// How sure it is, and why.
    pub confidence: Confidence,
    /// What to do about it.
    pub remedy: String,
    /// What the rule cannot tell.
    pub limits: &'static str,
    /// What it costs a message that it concerns, in milliseconds; what orders diagnoses.
    pub cost_ms: f64,
    /// The scenarios that it concerns, by index.
    #[serde(skip)]
    pub scenarios: BTreeSet<usize>,
    #[serde(skip)]
    covers: &'static [&'static str],
}

impl Diagnosis {
    fn new(rule: &Rule, found: Found) -> Self {
        Self {
            rule: rule.name,
            title: rule.title,
            cause: found.cause,
            evidence: found.evidence,
            seen: found.seen,
            confidence: found.confidence,
            remedy: found.remedy,
            limits: rule.limits,
            cost_ms: found.cost,
            scenarios: found.scenarios,
            covers: rule.covers,
        }
    }

    /// Whether it says what findings of that topic would say of the scenario.
    pub(crate) fn covers(&self, topic: &str, scenario: usize) -> bool {
        self.covers.contains(&topic) && self.scenarios.contains(&scenario)
    }
}

/// Every cause that a rule sees in a campaign, the costliest first.
pub fn diagnose(data: &CampaignData, settings: &PlotSettings) -> Vec<Diagnosis> {
    let sight = Sight::of(data, settings);
    let mut found: Vec<Diagnosis> = RULES
        .iter()
        .flat_map(|rule| {
            let seen = (rule.look)(&sight).into_iter();
            seen.map(move |found| Diagnosis::new(rule, found))
        })
        .collect();
    found.sort_by(|a, b| b.cost_ms.total_cmp(&a.cost_ms));
    found
}
