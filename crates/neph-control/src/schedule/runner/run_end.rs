//! The end of a run, as observed, and the outcome that it means.

use std::process::ExitStatus;

use neph_model::CampaignStatus;

use crate::schedule::book::Outcome;

/// Exit codes of neph run.
const DONE: i32 = 0;
const USAGE: i32 = 2;
const ALARMED: i32 = 3;
const INTERRUPTED: i32 = 130;

/// How the process of a run ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum RunEnd {
    Status(ExitStatus),
    /// It ended without a controller, or as the child of another one.
    Unseen,
}

impl RunEnd {
    /// The outcome of the run, given the status of its campaign. None: it failed.
    pub(super) fn outcome(self, campaign: Option<CampaignStatus>) -> Option<Outcome> {
        let code = match self {
            Self::Status(status) => status.code(),
            Self::Unseen => None,
        };
        match (code, campaign) {
            (Some(ALARMED), _) => Some(Outcome::Alarmed),
            (Some(USAGE), _) => None,
            (Some(DONE), _) | (_, Some(CampaignStatus::Complete)) => Some(Outcome::Complete),
            (_, Some(CampaignStatus::Incomplete)) => Some(Outcome::Incomplete),
            (_, Some(_)) | (Some(INTERRUPTED), _) => Some(Outcome::Interrupted),
            _ => None,
        }
    }
}
