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
    /// interrupted. A new campaign without any data is removed, unless an agent may still measure for it.
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
        let is_final = matches!(error, RunError::Executor(lost) if !lost.has_open_orders);
        let id = self.id.filter(|_| self.is_new && is_final);
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

    use neph_model::{Campaign, CampaignId, ExecutorLost};
    use neph_store::{Access, StoreError, open};

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
    fn an_empty_campaign_stays_while_an_agent_may_measure_for_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let location = folder.path().join("w").display().to_string();
        let mut store = open(&location, Access::Write).expect("a store");
        let campaign = Campaign::new("p", neph_model::Wall::from_unix_nanos(0));
        store.add_campaign(&campaign, &[]).expect("writable");
        let mut cut_off = CutOffCampaign {
            id: Some(campaign.id),
            store: store.as_mut(),
            is_new: true,
            workspace: &Workspace { location },
            is_quiet: true,
            resume_command: None,
        };
        let open = ExecutorLost {
            reason: "agent a does not answer".to_owned(),
            has_open_orders: true,
        };
        assert!(!cut_off.remove_if_empty(&RunError::Executor(open)));
        let refused = ExecutorLost::new("agent a refuses its reflector");
        assert!(cut_off.remove_if_empty(&RunError::Executor(refused)));
    }

    #[test]
    fn a_campaign_stopped_by_the_store_is_reported_with_its_resume_command() {
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
