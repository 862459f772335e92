//! Diagnosis: named causes, each with what it was seen by, how sure it is, what to do about it and
//! what it cannot tell.
//!
//! Owns the rules and the order in which their causes are told. A rule looks at measurements only,
//! never at a lab's truth, and speaks only where its mechanism is visible, not because nothing else
//! is left. What is a distribution or a comparison is a finding (see `findings`); what is a cause
//! is told here.

mod confidence;
mod found;
mod load;
mod needs;
mod ordered;
mod peer;
mod rules;
mod sight;
mod stall;
#[cfg(test)]
mod tests;
mod times;
mod words;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{CampaignData, PlotSettings};

pub(crate) use confidence::Agreement;
pub use confidence::{Confidence, Level};
pub(crate) use found::Found;
pub use found::{Evidence, Seen};
pub(crate) use load::{Doing, is_by_load, measure_without};
pub use needs::Blind;
pub(crate) use needs::Need;
pub(crate) use ordered::Ordered;
pub(crate) use peer::{Peer, is_imported, peer};
pub use rules::RULES;
pub(crate) use sight::{Crossing, Leaving, Place, Run, Sight};
pub(crate) use stall::{Stall, slope, waits};
pub(crate) use times::Times;

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
    /// Without which it cannot look.
    pub(crate) needs: &'static [Need],
    pub(crate) look: fn(&Sight<'_>) -> Vec<Found>,
}

/// A cause that a rule has found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    /// The scenarios that it concerns, by index, with the milliseconds that it explains at most of
    /// a message's there; infinite where no rule calculates them.
    #[serde(skip)]
    pub scenarios: BTreeMap<usize, f64>,
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

    /// How many milliseconds of the scenario's messages it explains at most, where it says what
    /// findings of that topic would say of them.
    pub(crate) fn explains(&self, topic: &str, scenario: usize) -> Option<f64> {
        let explained = self.scenarios.get(&scenario).copied();
        explained.filter(|_| self.covers.contains(&topic))
    }
}

/// What a rule has seen that is no cause, because it changes no figure, or none so far or so surely
/// that it counts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Note {
    /// The rule's name.
    pub rule: &'static str,
    /// Who and how much, in a sentence.
    pub text: String,
    /// The numbers that it rests on, by name with their unit.
    pub evidence: Vec<Evidence>,
    /// The experiments and messages that show it best.
    pub seen: Vec<Seen>,
}

/// What all rules say of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Diagnoses {
    /// Every cause that a rule sees, the costliest first.
    #[serde(rename = "diagnoses")]
    pub causes: Vec<Diagnosis>,
    /// What is no cause and worth knowing.
    pub notes: Vec<Note>,
    /// The rules that could not look, in their order.
    pub blind: Vec<Blind>,
    /// Only fleets were measured: no rule is about them, so none is blind either.
    pub fleets_only: bool,
}

/// What the rules see in a campaign, and which of them could not look.
pub fn diagnose(data: &CampaignData, settings: &PlotSettings) -> Diagnoses {
    if data.is_fleets_alone(settings) {
        return Diagnoses {
            fleets_only: true,
            ..Diagnoses::default()
        };
    }
    let sight = Sight::of(data, settings);
    let mut all = Diagnoses::default();
    for rule in RULES {
        let seen = (rule.look)(&sight);
        if seen.is_empty() {
            all.blind.extend(Blind::of(rule, &sight));
        }
        let (notes, causes): (Vec<Found>, Vec<Found>) =
            seen.into_iter().partition(|found| found.is_note);
        let causes = causes.into_iter();
        all.causes
            .extend(causes.map(|found| Diagnosis::new(rule, found)));
        all.notes.extend(notes.into_iter().map(|found| Note {
            rule: rule.name,
            text: found.cause,
            evidence: found.evidence,
            seen: found.seen,
        }));
    }
    all.causes.sort_by(|a, b| b.cost_ms.total_cmp(&a.cost_ms));
    all
}
