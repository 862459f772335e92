//! A result of neph for a campaign: a finding, root cause or median with topic, subjects, sentence and
//! numbers.

use std::collections::BTreeMap;

use crate::{
    CampaignData, Diagnosis, Finding, Layer, PlotSettings, QuantileCell, SummaryRow, diagnose,
    findings, summary,
};
use neph_model::Scenario;

/// The kind of statement, with its topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A finding: a distribution or a comparison.
    Finding(String),
    /// A root cause: the name of its rule.
    Cause(String),
    /// The median response time of a scenario: `median_ms`.
    Median,
}

/// A statement of neph.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub topic: Topic,
    /// Endpoints, levels of a parameter, stages.
    pub about: Vec<String>,
    pub text: String,
    /// By name with the unit.
    pub numbers: BTreeMap<String, f64>,
}

/// All results for a campaign: findings, root causes, then the median of each scenario.
pub fn all_statements(data: &CampaignData, settings: &PlotSettings) -> Vec<Statement> {
    let findings = findings(data, settings).into_iter().map(Statement::from);
    let causes = diagnose(data, settings).causes.into_iter();
    let causes = causes.map(|cause| Statement::of_cause(cause, &data.scenarios));
    let rows = summary(data, settings).into_iter();
    let medians = rows.filter_map(|row| Statement::of_median(&row, &data.scenarios));
    findings.chain(causes).chain(medians).collect()
}

impl From<Finding> for Statement {
    fn from(finding: Finding) -> Self {
        Self {
            topic: Topic::Finding(finding.topic.to_owned()),
            about: finding.about,
            text: finding.text,
            numbers: finding.evidence,
        }
    }
}

impl Statement {
    fn of_cause(cause: Diagnosis, scenarios: &[Scenario]) -> Self {
        let about = cause.scenarios.keys();
        let about = about.filter_map(|index| scenarios.get(*index));
        let numbers = cause.evidence.into_iter();
        let numbers = numbers.map(|number| {
            let name = format!("{}, {}", number.name, number.unit);
            (name.trim_end_matches(", ").to_owned(), number.value)
        });
        Self {
            topic: Topic::Cause(cause.rule.to_owned()),
            about: names(about),
            text: cause.cause,
            numbers: numbers.collect(),
        }
    }

    /// From a row of the summary: response time only, and only if lost messages do not decide the median.
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

/// The names in the labels of scenarios, each once: endpoints, intervals, sizes, levels.
fn names<'s>(scenarios: impl IntoIterator<Item = &'s Scenario>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in scenarios.into_iter().flat_map(Scenario::label_parts) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
