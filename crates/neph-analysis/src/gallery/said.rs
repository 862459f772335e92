//! What neph said of a campaign, findings, causes and medians alike: a topic, whom it speaks of, the
//! sentence and its numbers.

use std::collections::BTreeMap;

use crate::{
    CampaignData, Diagnosis, Finding, Layer, PlotSettings, QuantileCell, SummaryRow, diagnose,
    findings, summary,
};
use neph_model::Scenario;

/// What kind of sentence it is, and its topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Of a finding: a distribution or a comparison.
    Finding(String),
    /// Of a cause: the name of the rule that sees it.
    Cause(String),
    /// Of the median response time of a scenario: `median_ms`.
    Median,
}

/// A sentence of neph's.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    pub topic: Topic,
    /// Endpoints, levels of a parameter, stages.
    pub about: Vec<String>,
    pub text: String,
    /// By name with the unit.
    pub numbers: BTreeMap<String, f64>,
}

/// Everything that neph says of a campaign: its findings, the causes that it sees, then the median of
/// each scenario.
pub fn everything(data: &CampaignData, settings: &PlotSettings) -> Vec<Said> {
    let found = findings(data, settings).into_iter().map(Said::from);
    let causes = diagnose(data, settings).causes.into_iter();
    let causes = causes.map(|cause| Said::of_cause(cause, &data.scenarios));
    let rows = summary(data, settings).into_iter();
    let medians = rows.filter_map(|row| Said::of_median(&row, &data.scenarios));
    found.chain(causes).chain(medians).collect()
}

impl From<Finding> for Said {
    fn from(finding: Finding) -> Self {
        Self {
            topic: Topic::Finding(finding.topic.to_owned()),
            about: finding.about,
            text: finding.text,
            numbers: finding.evidence,
        }
    }
}

impl Said {
    fn of_cause(cause: Diagnosis, scenarios: &[Scenario]) -> Self {
        let about = cause.scenarios.keys();
        let about = about.filter_map(|index| scenarios.get(*index));
        let numbers = cause.evidence.into_iter();
        let numbers = numbers.map(|one| {
            let name = format!("{}, {}", one.name, one.unit);
            (name.trim_end_matches(", ").to_owned(), one.value)
        });
        Self {
            topic: Topic::Cause(cause.rule.to_owned()),
            about: names(about),
            text: cause.cause,
            numbers: numbers.collect(),
        }
    }

    /// Of a row of the summary: nothing but of the response time, and where lost messages do not
    /// decide it.
    fn of_median(row: &SummaryRow, scenarios: &[Scenario]) -> Option<Self> {
        let (Layer::Response, QuantileCell::Known { value, .. }) = (&row.layer, &row.quantiles[0])
        else {
            return None;
        };
        let median = value.number()?;
        Some(Self {
            topic: Topic::Median,
            about: names(scenarios.get(row.scenario)),
            text: format!("the median of {} is {median:.2} ms", row.label),
            numbers: [("median_ms".to_owned(), median)].into(),
        })
    }
}

/// What the labels of scenarios name, each once: endpoints, intervals, sizes, levels.
fn names<'s>(scenarios: impl IntoIterator<Item = &'s Scenario>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in scenarios.into_iter().flat_map(Scenario::label_parts) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
