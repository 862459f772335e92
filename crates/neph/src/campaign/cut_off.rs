//! The end of a campaign that was cut off: what is printed, and the exit status.

use neph_campaign::RunError;
use neph_model::{CampaignId, CampaignStatus, Stop};
use neph_store::Store;

use super::status;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::workspace::Workspace;

/// A campaign that was cut off; it has no id if it was cut off before its start.
pub(super) struct CutOffCampaign<'s> {
    pub(super) id: Option<CampaignId>,
    pub(super) store: &'s mut dyn Store,
    /// It was started by this process, not resumed.
    pub(super) is_new: bool,
    pub(super) workspace: &'s Workspace,
    /// No status is printed.
    pub(super) is_quiet: bool,
    pub(super) resume_command: Option<String>,
}

impl CutOffCampaign<'_> {
    /// Prints the status, and reports why it was cut off and how to continue it. After ctrl-C it counts as
    /// interrupted. A new campaign without any data is removed.
    pub(super) fn report(mut self, error: &RunError, stop: &Stop) -> Result<Outcome, Failure> {
        if self.remove_if_empty(error) {
            self.resume_command = None;
        } else {
            self.print_status();
        }
        let reason = reason_with_remedy(error, self.resume_command);
        if stop.is_set() {
            output::say(&format!("neph: {reason}"));
            return Ok(Outcome::Interrupted);
        }
        Err(Failure::refused(reason))
    }

    fn remove_if_empty(&mut self, error: &RunError) -> bool {
        let is_lost = matches!(error, RunError::Executor(_));
        let id = self.id.filter(|_| self.is_new && is_lost);
        id.is_some_and(|id| matches!(self.store.remove_empty_campaign(id), Ok(true)))
    }

    /// Errors of the store have no effect: they may be the reason of the cut.
    fn print_status(&self) {
        let campaigns = self.store.campaigns().unwrap_or_default();
        let campaign = campaigns
            .into_iter()
            .find(|campaign| Some(campaign.id) == self.id);
        if let Some(mut campaign) = campaign {
            // The store has it as running until it is resumed.
            campaign.status = CampaignStatus::Interrupted;
            let _ = status::print(self.store, &campaign, self.workspace, self.is_quiet);
        }
    }
}

/// Why a campaign was cut off, and how to continue it.
fn reason_with_remedy(error: &RunError, resume_command: Option<String>) -> String {
    match (error, resume_command) {
        (RunError::MatrixDiffers { .. }, _) | (_, None) => error.to_string(),
        (_, Some(resume_command)) if error.is_disk_full() => {
            format!("{error}; the results so far are kept: free space, then {resume_command}")
        }
        (_, Some(resume_command)) => {
            format!("{error}; {resume_command} continues the campaign")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use neph_model::CampaignId;
    use neph_store::StoreError;

    use super::*;

    fn store_error(source: io::Error) -> RunError {
        RunError::Store {
            operation: "finish an experiment",
            source: StoreError::Output {
                format: "CSV",
                source,
            },
        }
    }

    #[test]
    fn a_campaign_stopped_by_the_store_is_reported_with_its_resume() {
        let id = CampaignId::new();
        let disk_full = store_error(io::ErrorKind::StorageFull.into());
        let resume = Some(format!("neph resume {id}"));
        let message = reason_with_remedy(&disk_full, resume.clone());
        let text = format!("; the results so far are kept: free space, then neph resume {id}");
        assert!(message.ends_with(&text), "{message}");
        assert_eq!(reason_with_remedy(&disk_full, None), disk_full.to_string());
        let other =
            reason_with_remedy(&store_error(io::ErrorKind::PermissionDenied.into()), resume);
        assert!(
            other.ends_with(&format!("neph resume {id} continues the campaign")),
            "{other}"
        );
    }
}
