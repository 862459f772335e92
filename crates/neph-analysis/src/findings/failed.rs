//! What could not be measured: experiments that failed, where, and why.

use std::collections::BTreeSet;

use neph_model::{Experiment, ExperimentStatus, ScenarioId};

use super::{Finding, FindingKind};
use crate::text::{first_few, plural, real};
use crate::{CampaignData, PlotSettings};

/// One execution of a scenario, however often it was tried.
type Cell = (ScenarioId, u32);

const fn cell(experiment: &Experiment) -> Cell {
    (experiment.scenario, experiment.block)
}

/// Every failed try in the blocks that are shown, whether its messages are shown or not.
pub(crate) fn failed<'a>(
    data: &'a CampaignData,
    settings: &'a PlotSettings,
) -> impl Iterator<Item = &'a Experiment> + 'a {
    let shown = data.experiments.iter().map(|one| &one.experiment);
    data.left_out
        .iter()
        .chain(shown)
        .filter(|one| one.status == ExperimentStatus::Failed && settings.shows_block(one.block))
}

/// A sentence about those that never succeeded, else about those that did so later.
pub(crate) fn findings(data: &CampaignData, settings: &PlotSettings) -> Option<Finding> {
    let complete: BTreeSet<Cell> = data
        .experiments
        .iter()
        .map(|one| &one.experiment)
        .filter(|one| one.status == ExperimentStatus::Complete)
        .map(cell)
        .collect();
    let (repeated, not_repeated): (Vec<_>, Vec<_>) =
        failed(data, settings).partition(|one| complete.contains(&cell(one)));
    let (all, what, then) = if not_repeated.is_empty() {
        (repeated, "failed at first and succeeded later", "")
    } else {
        // What was measured without a plan has nothing to go on with.
        let then = if data.campaign.plan_text.is_empty() {
            " Remedy: remove the cause and repeat."
        } else {
            " Remedy: remove the cause, then run neph resume."
        };
        (not_repeated, "failed", then)
    };
    let first = all
        .iter()
        .min_by_key(|one| (one.block, one.position, one.attempt))?;
    let cells: BTreeSet<Cell> = all.iter().map(|one| cell(one)).collect();
    let (cell_list, scenarios) = list_cells(data, &cells);
    let text = format!(
        "{} {what}: {cell_list}. The {}reason: {}.{then}",
        plural(cells.len(), "experiment"),
        if all.len() == 1 { "" } else { "first " },
        reason(first),
    );
    let finding = Finding::new(FindingKind::Flagged, "failed", text)
        .with("experiments", real(cells.len()))
        .with("tries", real(all.len()))
        .with("scenarios", real(scenarios));
    Some(finding)
}

/// The scenarios by their labels, the first few by name, and how many they are.
fn list_cells(data: &CampaignData, cells: &BTreeSet<Cell>) -> (String, usize) {
    let ids: BTreeSet<ScenarioId> = cells.iter().map(|(scenario, _)| *scenario).collect();
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
