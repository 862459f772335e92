//! Alarms of the plan that were raised: which rules, how often, where first, and for how long.

use std::collections::BTreeMap;

use neph_model::{Event, EventKind, Span, Wall};

use super::{Finding, FindingKind};
use crate::data::ExperimentData;
use crate::text::{plural, to_f64};
use crate::{CampaignData, PlotSettings};

/// The topic of a raised alarm.
pub const ALARM: &str = "alarm";

/// What a rule found.
struct RuleOutcome<'a> {
    times: usize,
    experiments: usize,
    /// The first time: where, in which block, and since its start.
    first: (&'a ExperimentData, Span),
}

/// A sentence for each rule, in the order of the rules' texts.
pub(crate) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut rules: BTreeMap<&str, RuleOutcome<'_>> = BTreeMap::new();
    for scenario in data.measured(settings) {
        for experiment in data.experiments_of(scenario, settings) {
            let mut first_by_rule: BTreeMap<&str, (usize, Span)> = BTreeMap::new();
            for event in raised_alarms(experiment) {
                let at = Span::from_nanos(event.at);
                first_by_rule.entry(rule_text(event)).or_insert((0, at)).0 += 1;
            }
            for (rule, (times, at)) in first_by_rule {
                let first = (experiment, at);
                let outcome = rules.entry(rule).or_insert(RuleOutcome {
                    times: 0,
                    experiments: 0,
                    first,
                });
                outcome.times += times;
                outcome.experiments += 1;
                if order_key(experiment, at) < order_key(outcome.first.0, outcome.first.1) {
                    outcome.first = first;
                }
            }
        }
    }
    let sentences = rules.into_iter();
    sentences
        .map(|(rule, raised)| sentence(data, rule, &raised))
        .collect()
}

/// What orders alarms by when they were raised.
fn order_key(data: &ExperimentData, at: Span) -> (Wall, u32, u32, u32, Span) {
    let experiment = &data.experiment;
    (
        experiment.started,
        experiment.block,
        experiment.position,
        experiment.attempt,
        at,
    )
}

fn raised_alarms(experiment: &ExperimentData) -> impl Iterator<Item = &Event> {
    let events = experiment.events.iter();
    events.filter(|event| event.kind == EventKind::AlarmRaised)
}

/// The rule in the text of an alarm: what precedes the numbers.
fn rule_text(event: &Event) -> &str {
    let (rule, _) = event.text.split_once(';').unwrap_or((&event.text, ""));
    rule
}

fn sentence(data: &CampaignData, rule: &str, raised: &RuleOutcome<'_>) -> Finding {
    let (experiment, at) = raised.first;
    let label = data.scenarios[experiment.scenario].label();
    let times = match raised.times {
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    let text = format!(
        "The alarm \"{rule}\" was raised {times}, in {}; first {:.0} s after the beginning of block {} of '{label}'.",
        plural(raised.experiments, "experiment"),
        at.secs_f64(),
        experiment.block(),
    );
    Finding::new(FindingKind::Notable, ALARM, text)
        .with("times", to_f64(raised.times))
        .with("experiments", to_f64(raised.experiments))
        .with("first s", at.secs_f64())
}
