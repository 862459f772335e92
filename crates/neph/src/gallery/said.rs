//! What neph said of a campaign, findings and causes alike: a topic, whom it speaks of, the sentence
//! and its numbers.

use std::collections::BTreeMap;

use neph_model::Scenario;
use neph_report::{CampaignData, Diagnosis, Finding, PlotSettings, diagnose, findings};

/// What kind of sentence it is, and its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Of a finding: a distribution or a comparison.
    Finding(&'static str),
    /// Of a cause: the name of the rule that sees it.
    Cause(&'static str),
}

/// A sentence of neph's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) topic: Topic,
    /// Endpoints, levels of a parameter, stages.
    pub(crate) about: Vec<String>,
    pub(crate) text: String,
    /// By name with the unit.
    pub(crate) numbers: BTreeMap<String, f64>,
}

/// Everything that neph says of a campaign: its findings, then the causes that it sees.
pub(super) fn everything(data: &CampaignData, settings: &PlotSettings) -> Vec<Said> {
    let found = findings(data, settings).into_iter().map(Said::from);
    let causes = diagnose(data, settings).causes.into_iter();
    let causes = causes.map(|cause| Said::of_cause(cause, &data.scenarios));
    found.chain(causes).collect()
}

impl From<Finding> for Said {
    fn from(finding: Finding) -> Self {
        Self {
            topic: Topic::Finding(finding.topic),
            about: finding.about,
            text: finding.text,
            numbers: finding.evidence,
        }
    }
}

impl Said {
    fn of_cause(cause: Diagnosis, scenarios: &[Scenario]) -> Self {
        let mut about: Vec<String> = Vec::new();
        for scenario in cause
            .scenarios
            .keys()
            .filter_map(|index| scenarios.get(*index))
        {
            let varied = scenario.varied.iter();
            let levels = varied.filter_map(|name| {
                let value = scenario.parameters.get(name)?;
                Some(format!("{name} {value}"))
            });
            for name in std::iter::once(scenario.endpoint.clone()).chain(levels) {
                if !about.contains(&name) {
                    about.push(name);
                }
            }
        }
        let numbers = cause.evidence.into_iter();
        let numbers = numbers.map(|one| {
            let name = format!("{}, {}", one.name, one.unit);
            (name.trim_end_matches(", ").to_owned(), one.value)
        });
        Self {
            topic: Topic::Cause(cause.rule),
            about,
            text: cause.cause,
            numbers: numbers.collect(),
        }
    }
}
