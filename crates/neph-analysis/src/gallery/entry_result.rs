//! The result of an entry: what neph reported, and whether that is correct.

use std::path::PathBuf;

use neph_model::Warning;

use super::entry::{Entry, Side};
use super::expectation::ExpectationResult;
use super::statement::{Statement, Topic};
use crate::CampaignData;

/// An entry that was run, with neph's results.
#[derive(Debug)]
pub struct EntryResult {
    /// The entry.
    pub entry: &'static Entry,
    /// The entry itself or its control.
    pub side: Side,
    /// Everything that neph reported.
    pub statements: Vec<Statement>,
    /// Whether an experiment is flagged for its host: a late sender, CPU steal, a busy CPU, a clock step.
    pub is_disturbed: bool,
    /// The figure as an image; `None` if nothing was drawn.
    pub figure: Option<PathBuf>,
    /// Duration of the campaign in seconds.
    pub seconds: f64,
}

impl EntryResult {
    /// Each expectation of the entry, compared with the results.
    pub fn results(&self) -> Vec<ExpectationResult<'_>> {
        let expected = self.entry.expected.iter();
        match self.side {
            Side::Finding => expected
                .map(|expectation| expectation.check(&self.statements))
                .collect(),
            Side::Control => {
                let absent = expected.map(|expectation| expectation.check_absent(&self.statements));
                let present = self.entry.expected_of_control.iter();
                let present = present.map(|expectation| expectation.check(&self.statements));
                absent.chain(present).collect()
            }
        }
    }

    /// Root causes that the entry's network does not have, or not at the reported place.
    pub fn wrong_causes(&self) -> impl Iterator<Item = &Statement> {
        self.statements
            .iter()
            .filter(|statement| match &statement.topic {
                Topic::Cause(_) if self.is_disturbance(statement) => false,
                Topic::Cause(rule) => {
                    !self.entry.has_cause(rule, self.side)
                        || self.entry.is_without_cause(&statement.about)
                }
                Topic::Finding(_) | Topic::Median => false,
            })
    }

    /// Root causes of the client host, which belong to no entry.
    pub fn disturbances(&self) -> impl Iterator<Item = &Statement> {
        self.statements
            .iter()
            .filter(|statement| self.is_disturbance(statement))
    }

    /// Whether a root cause concerns the client host (busy, clock step), and experiments are flagged for it.
    fn is_disturbance(&self, statement: &Statement) -> bool {
        let Topic::Cause(rule) = &statement.topic else {
            return false;
        };
        self.is_disturbed && matches!(rule.as_str(), "starved-client" | "clock-step")
    }

    /// Whether neph reports everything expected and no other cause; for a control, none of it.
    pub fn is_right(&self) -> bool {
        self.results().iter().all(|result| result.is_right) && self.wrong_causes().next().is_none()
    }

    /// Whether an experiment is flagged for its host.
    pub fn is_disturbed_in(data: &CampaignData) -> bool {
        let experiments = data.experiments.iter();
        let mut warnings = experiments.flat_map(|data| &data.experiment.warnings);
        warnings.any(|warning| {
            warning.is_of_a_busy_host() || matches!(warning, Warning::ClockStepped { .. })
        })
    }
}
