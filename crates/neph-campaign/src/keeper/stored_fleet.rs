//! A fleet whose messages are kept: its campaign goes on until what comes after them is kept too.

use neph_model::{
    Campaign, CampaignStatus, ClassTransfer, Ending, Experiment, Instant, Local, Wall,
};
use neph_store::Store;

use crate::run::{RunError, map_store_error};

/// The experiment has ended; the workspace stays locked until [`Self::end`]. A kill before leaves an
/// interrupted campaign with everything that was recorded.
#[derive(Debug)]
pub struct StoredFleet {
    pub(super) store: Box<dyn Store>,
    pub(super) campaign: Campaign,
    pub(super) experiment: Experiment,
    pub(super) origin: Instant<Local>,
}

impl StoredFleet {
    /// Records transfers on the ports of its flows; safe when this returns.
    ///
    /// # Errors
    /// The store refused.
    pub fn record_transfers(&mut self, transfers: &[ClassTransfer]) -> Result<(), RunError> {
        let mut transfers = transfers.to_vec();
        for transfer in &mut transfers {
            transfer.transfer.begun = relative_to(self.origin, transfer.transfer.begun);
        }
        let added = self.store.add_transfers(self.experiment.id, &transfers);
        map_store_error("add the transfers", added)
    }

    /// Ends the campaign now; `ending` is that of what came after the messages.
    ///
    /// # Errors
    /// The store refused.
    pub fn end(mut self, ending: &Ending, now: Wall) -> Result<Campaign, RunError> {
        use neph_model::ExperimentStatus as Status;
        let mut campaign = self.campaign;
        campaign.status = match (self.experiment.status, ending) {
            (Status::Complete, Ending::Complete) => CampaignStatus::Complete,
            (Status::Interrupted, _) | (Status::Complete, Ending::Interrupted) => {
                CampaignStatus::Interrupted
            }
            _ => CampaignStatus::Incomplete,
        };
        campaign.ended = Some(now);
        let (id, status) = (campaign.id, campaign.status);
        let set = self.store.set_campaign_status(id, status, campaign.ended);
        map_store_error("record how the campaign ended", set)?;
        Ok(campaign)
    }
}

/// Counted from the experiment's start, as everything that is kept.
pub(super) fn relative_to(origin: Instant<Local>, at: Instant<Local>) -> Instant<Local> {
    Instant::from_nanos((at - origin).nanos())
}
