//! The result of a rule, before the name of the rule is added.

use std::collections::BTreeMap;

use neph_model::{ExperimentId, Seq};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Confidence, Run};
use crate::text::to_f64;

/// Maximum number of experiments and of messages that are named as examples.
const EXAMPLES: usize = 6;

/// A number that supports a diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// The name of the quantity.
    pub name: String,
    /// The value.
    pub value: f64,
    /// The unit: `ms`, `segments`, `messages`, `%`; empty for a share (0 to 1), a percentile or a port.
    pub unit: &'static str,
}

/// Where a diagnosis can be observed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Observation {
    /// The experiment.
    pub experiment: ExperimentId,
    /// Label of the experiment's scenario.
    pub scenario: String,
    /// The block, from 1.
    pub block: u32,
    /// Numbers of messages of the main flow; empty if all messages show it.
    pub messages: Vec<u64>,
}

/// A root cause, as a rule found it.
#[derive(Clone, Debug)]
pub(crate) struct RuleResult {
    pub cause: String,
    pub remedy: String,
    pub confidence: Confidence,
    pub(crate) added_ms: f64,
    pub evidence: Vec<Evidence>,
    pub observations: Vec<Observation>,
    pub scenarios: BTreeMap<usize, f64>,
    pub(crate) is_note: bool,
}

impl RuleResult {
    pub(crate) const fn new(cause: String, remedy: String, confidence: Confidence) -> Self {
        Self {
            cause,
            remedy,
            confidence,
            added_ms: 0.0,
            evidence: Vec::new(),
            observations: Vec::new(),
            scenarios: BTreeMap::new(),
            is_note: false,
        }
    }
    /// Turns it into a note: it changes no figure, or not by enough, or not with enough confidence.
    pub(crate) const fn into_note(mut self) -> Self {
        self.is_note = true;
        self
    }
    /// Sets the latency that it adds to a message, in milliseconds.
    pub(crate) const fn with_added_latency(mut self, millis: f64) -> Self {
        self.added_ms = millis;
        self
    }
    /// Adds a number.
    pub(crate) fn with(mut self, name: &str, value: f64, unit: &'static str) -> Self {
        let name = name.to_owned();
        self.evidence.push(Evidence { name, value, unit });
        self
    }
    /// Adds a count, and its share of a total in percent.
    pub(crate) fn with_share(
        self,
        name: &str,
        count: usize,
        total: usize,
        unit: &'static str,
    ) -> Self {
        let percent = 100.0 * to_f64(count) / to_f64(total.max(1));
        self.with(name, to_f64(count), unit)
            .with(&format!("share of {name}"), percent, "%")
    }
    /// Marks it as observed in all messages of these experiments.
    pub(crate) fn observed_in<'a>(mut self, runs: impl IntoIterator<Item = &'a Run<'a>>) -> Self {
        for run in runs {
            self = self.observed_at(run, &[]);
        }
        self
    }
    /// Sets how many milliseconds of a message of this experiment's scenario it explains at most.
    pub(crate) fn explaining(mut self, run: &Run<'_>, millis: f64) -> Self {
        let explained = self.scenarios.entry(run.experiment.scenario);
        let explained = explained.or_insert(millis);
        if explained.is_infinite() || *explained < millis {
            *explained = millis;
        }
        self
    }
    /// Marks it as observed in an experiment, most clearly in these messages.
    pub(crate) fn observed_at(mut self, run: &Run<'_>, messages: &[Seq]) -> Self {
        let explained = self.scenarios.entry(run.experiment.scenario);
        explained.or_insert(f64::INFINITY);
        if self.observations.len() < EXAMPLES {
            self.observations.push(Observation {
                experiment: run.experiment.experiment.id,
                scenario: run.scenario.label(),
                block: run.experiment.block(),
                messages: messages.iter().take(EXAMPLES).map(|seq| seq.0).collect(),
            });
        }
        self
    }
}
