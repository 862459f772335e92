//! What a rule says before it gets the rule's name.

use std::collections::BTreeMap;

use neph_model::{ExperimentId, Seq};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Confidence, Run};

/// Experiments and messages that are named as examples, at most so many.
const EXAMPLES: usize = 6;

/// A number that a diagnosis rests on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// What it is.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what: `ms`, `segments`, `Mbit/s`, `messages`; a share has none.
    pub unit: &'static str,
}

/// Where a diagnosis can be looked at.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Seen {
    /// The experiment.
    pub experiment: ExperimentId,
    /// Its scenario's label.
    pub scenario: String,
    /// Its block, from 1.
    pub block: u32,
    /// Numbers of messages of its main flow; none where all of them show it.
    pub messages: Vec<u64>,
}

/// A cause, as a rule found it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub cause: String,
    pub remedy: String,
    pub confidence: Confidence,
    pub(crate) cost: f64,
    pub evidence: Vec<Evidence>,
    pub seen: Vec<Seen>,
    pub scenarios: BTreeMap<usize, f64>,
    pub(crate) is_note: bool,
}

impl Found {
    pub(crate) const fn new(cause: String, remedy: String, confidence: Confidence) -> Self {
        Self {
            cause,
            remedy,
            confidence,
            cost: 0.0,
            evidence: Vec::new(),
            seen: Vec::new(),
            scenarios: BTreeMap::new(),
            is_note: false,
        }
    }
    /// No cause, because it changes no figure, or none so far or so surely that it counts.
    pub(crate) const fn into_note(mut self) -> Self {
        self.is_note = true;
        self
    }
    /// What it adds to a message, in milliseconds.
    pub(crate) const fn costing(mut self, millis: f64) -> Self {
        self.cost = millis;
        self
    }
    /// With one more number.
    pub(crate) fn with(mut self, name: &str, value: f64, unit: &'static str) -> Self {
        let name = name.to_owned();
        self.evidence.push(Evidence { name, value, unit });
        self
    }
    /// Seen in all messages of these experiments.
    pub(crate) fn seen_in<'a>(mut self, runs: impl IntoIterator<Item = &'a Run<'a>>) -> Self {
        for run in runs {
            self = self.seen_at(run, &[]);
        }
        self
    }
    /// Explaining at most so many milliseconds of a message of this experiment's scenario.
    pub(crate) fn explaining(mut self, run: &Run<'_>, millis: f64) -> Self {
        let explained = self.scenarios.entry(run.experiment.scenario);
        let explained = explained.or_insert(millis);
        if explained.is_infinite() || *explained < millis {
            *explained = millis;
        }
        self
    }
    /// Seen in an experiment, best in these messages.
    pub(crate) fn seen_at(mut self, run: &Run<'_>, messages: &[Seq]) -> Self {
        let explained = self.scenarios.entry(run.experiment.scenario);
        explained.or_insert(f64::INFINITY);
        if self.seen.len() < EXAMPLES {
            self.seen.push(Seen {
                experiment: run.experiment.experiment.id,
                scenario: run.scenario.label(),
                block: run.experiment.block(),
                messages: messages.iter().take(EXAMPLES).map(|seq| seq.0).collect(),
            });
        }
        self
    }
}
