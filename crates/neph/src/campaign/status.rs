//! The status line of a campaign: complete, flagged and failed experiments.

use neph_model::{Campaign, ExperimentStatus};
use neph_store::Store;
use neph_text::counted::counted;

use crate::exit::Failure;
use crate::workspace::Workspace;

/// The status of a campaign, and the number of flagged experiments.
pub(super) fn line(
    store: &dyn Store,
    campaign: &Campaign,
    workspace: &Workspace,
) -> Result<String, Failure> {
    let mut entries = store.experiments(campaign.id)?;
    let failed = entries
        .iter()
        .filter(|experiment| experiment.status == ExperimentStatus::Failed);
    let failed = match failed.count() {
        0 => String::new(),
        count => format!("; {} failed", counted(count as u64, "attempt")),
    };
    entries.retain(|experiment| experiment.status == ExperimentStatus::Complete);
    let experiments = counted(entries.len() as u64, "experiment");
    let flagged = entries
        .iter()
        .filter(|experiment| !experiment.warnings.is_empty())
        .count();
    let flagged = match flagged {
        0 => "none flagged".to_owned(),
        count => format!(
            "{count} with warnings; neph list {}{} shows them",
            campaign.id,
            workspace.option()
        ),
    };
    let status = campaign.status.name();
    Ok(format!(
        "campaign {status}: {experiments}, {flagged}{failed}"
    ))
}
