//! The end of a campaign that was cut off: what is printed, and the exit status.

use neph_campaign::RunError;
use neph_model::Stop;

use crate::exit::{Failure, Outcome};
use crate::output;

/// Reports why a campaign was cut off, and how to continue it. After ctrl-C it counts as interrupted.
pub(super) fn report_cut_off(
    error: &RunError,
    resume_command: Option<String>,
    stop: &Stop,
) -> Result<Outcome, Failure> {
    let reason = reason_with_remedy(error, resume_command);
    if stop.is_set() {
        output::say(&format!("neph: {reason}"));
        return Ok(Outcome::Interrupted);
    }
    Err(Failure::refused(reason))
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
