//! The end of a campaign that was cut off: what is printed, and the exit status.

use neph_campaign::RunError;
use neph_model::Stop;

use crate::exit::{Failure, Outcome};
use crate::output;

/// Reports why a campaign was cut off, and how to continue it. After ctrl-C it counts as interrupted.
pub(super) fn cut_off(
    error: &RunError,
    resume: Option<String>,
    stop: &Stop,
) -> Result<Outcome, Failure> {
    let reason = with_the_way_on(error, resume);
    if stop.is_set() {
        output::say(&format!("neph: {reason}"));
        return Ok(Outcome::Interrupted);
    }
    Err(Failure::refused(reason))
}

/// Why a campaign was cut off, and how to continue it.
fn with_the_way_on(error: &RunError, resume: Option<String>) -> String {
    match (error, resume) {
        (RunError::MatrixDiffers { .. }, _) | (_, None) => error.to_string(),
        (_, Some(resume)) if error.is_disk_full() => {
            format!("{error}; the results so far are kept: free space, then {resume}")
        }
        (_, Some(resume)) => format!("{error}; the results so far are kept: {resume} continues"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use neph_model::CampaignId;
    use neph_store::StoreError;

    use super::*;

    fn refused(source: io::Error) -> RunError {
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
        let full = refused(io::ErrorKind::StorageFull.into());
        let resume = Some(format!("neph resume {id}"));
        let message = with_the_way_on(&full, resume.clone());
        let text = format!("; the results so far are kept: free space, then neph resume {id}");
        assert!(message.ends_with(&text), "{message}");
        assert_eq!(with_the_way_on(&full, None), full.to_string());
        let other = with_the_way_on(&refused(io::ErrorKind::PermissionDenied.into()), resume);
        assert!(
            other.ends_with(&format!("neph resume {id} continues")),
            "{other}"
        );
    }
}
