//! Warnings of a campaign: those with the same code in one sentence, with the remedy.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::Warning;

use super::failed::failed_experiments;
use super::{Finding, FindingKind};
use crate::text::{plural, to_f64};
use crate::{CampaignData, PlotSettings};

/// The experiments with one kind of warning. A busy host is separate if the plan generates a load.
struct Flagged<'a> {
    worst: &'a Warning,
    /// Where it was at its worst.
    scenario: usize,
    scenarios: BTreeSet<usize>,
    /// The load that the plan generated, by scenario.
    loads: BTreeMap<usize, String>,
    experiments: usize,
}

pub(crate) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut kinds: BTreeMap<(&'static str, bool), Flagged<'_>> = BTreeMap::new();
    let transfers = data.transfers(settings);
    for scenario in data.measured(settings).into_iter().chain(transfers) {
        let load = data.scenarios[scenario].stress();
        for (experiment, warning) in data.flagged(scenario, settings) {
            // The advice is the same for all warnings of a kind, and for these only.
            let kind = warning.advice();
            let generated_load = experiment.experiment.generated_load(load);
            let is_planned = warning.advice_under(generated_load.as_deref().as_slice()) != kind;
            let flagged = kinds.entry((kind, is_planned)).or_insert_with(|| Flagged {
                worst: warning,
                scenario,
                scenarios: BTreeSet::new(),
                loads: BTreeMap::new(),
                experiments: 0,
            });
            if warning.magnitude() > flagged.worst.magnitude() {
                (flagged.worst, flagged.scenario) = (warning, scenario);
            }
            flagged.experiments += 1;
            flagged.scenarios.insert(scenario);
            if let Some(generated_load) = generated_load {
                flagged.loads.entry(scenario).or_insert(generated_load);
            }
        }
    }
    if kinds.is_empty() {
        if !is_complete(data, settings) {
            return Vec::new();
        }
        let text = if data.is_imported() {
            "Warnings are not available: imported files contain no sender lateness, host load or kernel timestamps."
        } else {
            "No warnings: messages were sent on schedule, the client host had idle CPU time, and kernel timestamps are complete."
        };
        return vec![Finding::new(FindingKind::Flagged, "none", text.to_owned())];
    }
    let mut kinds: Vec<Flagged<'_>> = kinds.into_values().collect();
    kinds.sort_by_key(|flagged| std::cmp::Reverse(flagged.experiments));
    kinds
        .iter()
        .map(|flagged| sentence(data, flagged))
        .collect()
}

/// Whether something was measured and no experiment failed.
fn is_complete(data: &CampaignData, settings: &PlotSettings) -> bool {
    !data.measured(settings).is_empty() && failed_experiments(data, settings).next().is_none()
}

fn sentence(data: &CampaignData, flagged: &Flagged<'_>) -> Finding {
    let advice = flagged.worst.advice_under(&loads(flagged));
    let (fact, reason) = warning_text(flagged.worst);
    let phrase = match flagged.experiments {
        experiments @ 2.. => format!(
            "{}, {} of {}. Worst: {}",
            flagged.worst.code(),
            plural(experiments, "experiment"),
            plural(flagged.scenarios.len(), "scenario"),
            flagged.worst.fact()
        ),
        _ => fact,
    };
    let label = data.scenarios[flagged.scenario].label();
    // Some reasons are questions.
    let full_stop = if reason.ends_with('?') { "" } else { "." };
    let text = format!("{phrase} in '{label}'{reason}{full_stop} Remedy: {advice}.");
    Finding::new(FindingKind::Flagged, "warning", text)
        .with("experiments", to_f64(flagged.experiments))
        .with("scenarios", to_f64(flagged.scenarios.len()))
}

/// The loads that the plan generated, that of the worst warning first.
fn loads<'a>(flagged: &'a Flagged<'_>) -> Vec<&'a str> {
    let worst = flagged.loads.get(&flagged.scenario).into_iter();
    let mut loads: Vec<&str> = Vec::new();
    for load in worst.chain(flagged.loads.values()) {
        if !loads.contains(&load.as_str()) {
            loads.push(load);
        }
    }
    loads
}

/// The text of a warning, and its reason if that is a sentence of its own; the reason comes last.
fn warning_text(warning: &Warning) -> (String, String) {
    let reason = warning
        .why()
        .map_or_else(String::new, |reason| format!(": {reason}"));
    (warning.without_why(), reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_warning_comes_last() {
        let missing = Warning::EchoMissing {
            names: vec!["home".to_owned()],
            reason: "run this, or use another probe".to_owned(),
        };
        let (fact, reason) = warning_text(&missing);
        assert_eq!(fact, "W014 echo-missing: no ICMP echo to home");
        assert_eq!(reason, ": run this, or use another probe");
        let few = Warning::FewMessages { replies: 1 };
        assert_eq!(
            warning_text(&few),
            ("W011 few-messages: only 1 reply".to_owned(), String::new())
        );
    }
}
