//! What could not be measured: experiments that failed, where, and why.

use std::collections::BTreeSet;

use neph_model::{Experiment, ExperimentStatus, ScenarioId};

use super::{Finding, FindingKind};
use crate::text::{first_few, plural, to_f64};
use crate::{CampaignData, PlotSettings};

/// A scenario in a block, with all of its attempts.
type ScenarioBlock = (ScenarioId, u32);

const fn scenario_block(experiment: &Experiment) -> ScenarioBlock {
    (experiment.scenario, experiment.block)
}

/// Every failed attempt in the blocks of the report, with or without messages.
pub(crate) fn failed_experiments<'a>(
    data: &'a CampaignData,
    settings: &'a PlotSettings,
) -> impl Iterator<Item = &'a Experiment> + 'a {
    let shown_experiments = data.experiments.iter().map(|data| &data.experiment);
    data.left_out
        .iter()
        .chain(shown_experiments)
        .filter(|experiment| {
            experiment.status == ExperimentStatus::Failed && settings.shows_block(experiment.block)
        })
}

/// A sentence about those that never succeeded, else about those that did so later.
pub(crate) fn findings(data: &CampaignData, settings: &PlotSettings) -> Option<Finding> {
    let complete: BTreeSet<ScenarioBlock> = data
        .experiments
        .iter()
        .map(|data| &data.experiment)
        .filter(|experiment| experiment.status == ExperimentStatus::Complete)
        .map(scenario_block)
        .collect();
    let (recovered, unresolved): (Vec<_>, Vec<_>) = failed_experiments(data, settings)
        .partition(|experiment| complete.contains(&scenario_block(experiment)));
    let (failures, phrase, remedy) = if unresolved.is_empty() {
        (recovered, "failed at first and succeeded later", "")
    } else {
        // `neph resume` needs a plan.
        let remedy = if data.campaign.plan_text.is_empty() {
            " Remedy: remove the cause and repeat."
        } else {
            " Remedy: remove the cause, then run neph resume."
        };
        (unresolved, "failed", remedy)
    };
    let first = failures
        .iter()
        .min_by_key(|experiment| (experiment.block, experiment.position, experiment.attempt))?;
    let scenario_blocks: BTreeSet<ScenarioBlock> = failures
        .iter()
        .map(|experiment| scenario_block(experiment))
        .collect();
    let (scenario_list, scenarios) = list_scenarios(data, &scenario_blocks);
    let text = format!(
        "{} {phrase}: {scenario_list}. The {}reason: {}.{remedy}",
        plural(scenario_blocks.len(), "experiment"),
        if failures.len() == 1 { "" } else { "first " },
        reason(first),
    );
    let finding = Finding::new(FindingKind::Flagged, "failed", text)
        .with("experiments", to_f64(scenario_blocks.len()))
        .with("tries", to_f64(failures.len()))
        .with("scenarios", to_f64(scenarios));
    Some(finding)
}

/// The scenarios by their labels, the first few by name, and how many they are.
fn list_scenarios(
    data: &CampaignData,
    scenario_blocks: &BTreeSet<ScenarioBlock>,
) -> (String, usize) {
    let ids: BTreeSet<ScenarioId> = scenario_blocks
        .iter()
        .map(|(scenario, _)| *scenario)
        .collect();
    let labels: Vec<String> = data
        .scenarios
        .iter()
        .filter(|scenario| ids.contains(&scenario.id))
        .map(neph_model::Scenario::label)
        .collect();
    (first_few(&labels), labels.len())
}

/// Why it failed, as a part of a sentence.
fn reason(experiment: &Experiment) -> &str {
    let reason = experiment.reason.as_deref().unwrap_or_default();
    match reason.trim().trim_end_matches('.') {
        "" => "none was recorded",
        reason => reason,
    }
}
