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
    let mut entries = store.experiments(campaign.id)?;
    let failed = entries
        .iter()
        .filter(|experiment| experiment.status == ExperimentStatus::Failed);
    let failed = match failed.count() {
        0 => String::new(),
        count => format!("; {} failed", counted(count as u64, "attempt")),
    };
    entries.retain(|experiment| experiment.status == ExperimentStatus::Complete);
    let status = campaign.status.name();
    if entries.is_empty() {
        return Ok(format!(
            "campaign {status}: no experiment is complete{failed}"
        ));
    }
    let experiments = counted(entries.len() as u64, "experiment");
    let flagged = entries
        .iter()
        .filter(|experiment| !experiment.warnings.is_empty())
        .count();
    let flagged = match flagged {
        0 => "none with warnings".to_owned(),
        count => format!(
            "{count} with warnings; neph list {}{} shows them",
            campaign.id,
            workspace.option()
        ),
    };
    Ok(format!(
        "campaign {status}: {experiments}, {flagged}{failed}"
    ))
}
