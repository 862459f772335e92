//! The status line of a campaign: its complete experiments, those with warnings, and failed attempts.

use neph_model::{Campaign, ExperimentStatus};
use neph_store::Store;
use neph_text::counted::counted;

use crate::exit::Failure;
use crate::output;
use crate::workspace::Workspace;

/// Prints the status of a campaign, unless the output is quiet.
pub(super) fn print(
    store: &dyn Store,
    campaign: &Campaign,
    workspace: &Workspace,
    is_quiet: bool,
) -> Result<(), Failure> {
    if !is_quiet {
        output::say(&line(store, campaign, workspace)?);
    }
    Ok(())
}

/// The status of a campaign, and the number of experiments with warnings.
fn line(store: &dyn Store, campaign: &Campaign, workspace: &Workspace) -> Result<String, Failure> {
    let mut experiments = store.experiments(campaign.id)?;
    let failed = experiments
        .iter()
        .filter(|experiment| experiment.status == ExperimentStatus::Failed);
    let failed_text = match failed.count() {
        0 => String::new(),
        count => format!("; {} failed", counted(count as u64, "attempt")),
    };
    experiments.retain(|experiment| experiment.status == ExperimentStatus::Complete);
    let status = campaign.status.name();
    if experiments.is_empty() {
        return Ok(format!(
            "campaign {status}: no experiment is complete{failed_text}"
        ));
    }
    let experiment_text = counted(experiments.len() as u64, "experiment");
    let flagged = experiments
        .iter()
        .filter(|experiment| !experiment.warnings.is_empty())
        .count();
    let flagged_text = match flagged {
        0 => "none with warnings".to_owned(),
        count => format!(
            "{count} with warnings; neph list {}{} shows them",
            campaign.id,
            workspace.option()
        ),
    };
    Ok(format!(
        "campaign {status}: {experiment_text}, {flagged_text}{failed_text}"
    ))
}
