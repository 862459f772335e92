//! The campaigns that scheduled runs have stored.

use neph_control::{CampaignFinder, FoundCampaign, Schedule};
use neph_model::Wall;
use neph_store::{Access, open};

/// Reads the workspaces of schedules.
#[derive(Debug)]
pub(super) struct StoredCampaigns;

impl CampaignFinder for StoredCampaigns {
    fn find(&self, schedule: &Schedule, earliest_start: Wall) -> Option<FoundCampaign> {
        let store = open(&schedule.workspace, Access::Read)
            .inspect_err(|error| tracing::debug!("{}: {error}", schedule.workspace))
            .ok()?;
        let plan = schedule.plan.display().to_string();
        let campaigns = store.campaigns().ok()?;
        let mut plan_campaigns = campaigns
            .into_iter()
            .filter(|campaign| campaign.plan_path == plan && campaign.started >= earliest_start);
        plan_campaigns.next().map(|campaign| FoundCampaign {
            id: campaign.id,
            status: campaign.status,
        })
    }
}
