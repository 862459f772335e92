//! What an incomplete campaign lacks, why, and the next step.

use std::collections::{BTreeMap, BTreeSet};

use neph_campaign::CampaignProgress;
use neph_model::{
    Campaign, CampaignId, CampaignStatus, Experiment, ExperimentStatus, Scenario, ScenarioId,
};
use neph_store::Store;

use crate::exit::Failure;
use crate::output;
use neph_text::counted;

/// Maximum number of scenarios that are listed.
const MAX_LISTED: usize = 5;

/// Reports missing scenarios and the next step.
pub(super) fn report(
    store: &dyn Store,
    campaign: &Campaign,
    campaign_progress: CampaignProgress,
    resume_command: &str,
) -> Result<(), Failure> {
    let scenarios = store.scenarios(campaign.id)?;
    let experiments = store.experiments(campaign.id)?;
    let incomplete = incomplete_scenarios(&experiments);
    for (id, IncompleteScenario { blocks, reason }) in incomplete.iter().take(MAX_LISTED) {
        let scenario = scenarios.iter().find(|scenario| scenario.id == *id);
        let label = scenario.map_or_else(|| id.to_string(), Scenario::label);
        let blocks = counted::blocks(blocks.iter().map(|block| block + 1));
        output::say(&format!(
            "neph: {label} has no complete experiment in {blocks}: {reason}"
        ));
    }
    let unlisted_count = incomplete.len().saturating_sub(MAX_LISTED) as u64;
    if unlisted_count > 0 {
        output::say(&format!(
            "neph: and {}",
            counted::counted(unlisted_count, "more scenario")
        ));
    }
    let CampaignProgress {
        total, given_up, ..
    } = campaign_progress;
    output::say(&format!(
        "neph: {given_up} of {total} experiments are left to do; {resume_command} tries them again"
    ));
    Ok(())
}

/// Reports that nothing is left to do. A name can be that of several campaigns: another one may need it.
pub(super) fn report_complete(
    campaign: &Campaign,
    stored: &[Campaign],
    resume_command: impl Fn(CampaignId) -> String,
) {
    let unfinished = stored.iter().rev().find(|other| {
        use CampaignStatus::{Incomplete, Interrupted, Running};
        let is_open = matches!(other.status, Interrupted | Incomplete | Running);
        is_open && other.name == campaign.name && !other.plan_text.is_empty()
    });
    let hint = unfinished.map(|other| {
        format!(
            "; another campaign of this name is not: {}",
            resume_command(other.id)
        )
    });
    output::say(&format!(
        "neph: campaign {} ({}) is complete already{}",
        campaign.name,
        campaign.id,
        hint.unwrap_or_default()
    ));
}

/// A scenario that is not complete.
struct IncompleteScenario<'a> {
    /// Its incomplete blocks, from 0.
    blocks: Vec<u32>,
    /// The reason of its last failure.
    reason: &'a str,
}

/// The scenarios with blocks without a complete experiment. Experiments are ordered by block.
fn incomplete_scenarios(
    experiments: &[Experiment],
) -> BTreeMap<ScenarioId, IncompleteScenario<'_>> {
    let complete: BTreeSet<(u32, ScenarioId)> = experiments
        .iter()
        .filter(|experiment| experiment.status == ExperimentStatus::Complete)
        .map(|experiment| (experiment.block, experiment.scenario))
        .collect();
    let mut incomplete: BTreeMap<ScenarioId, IncompleteScenario<'_>> = BTreeMap::new();
    for experiment in experiments {
        if complete.contains(&(experiment.block, experiment.scenario)) {
            continue;
        }
        let reason = experiment.reason.as_deref().unwrap_or("no reason reported");
        let entry = incomplete
            .entry(experiment.scenario)
            .or_insert_with(|| IncompleteScenario {
                blocks: Vec::new(),
                reason,
            });
        entry.reason = reason;
        if entry.blocks.last() != Some(&experiment.block) {
            entry.blocks.push(experiment.block);
        }
    }
    incomplete
}
