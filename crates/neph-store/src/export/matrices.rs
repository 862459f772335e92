//! Scenarios of exported experiments, read once per campaign.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{CampaignId, Experiment, Scenario};

use crate::columns::Belonging;
use crate::{Store, StoreError};

/// The scenarios of the campaigns of some experiments.
pub(super) struct Matrices(BTreeMap<CampaignId, Vec<Scenario>>);

impl Matrices {
    pub(super) fn from_store(
        store: &dyn Store,
        experiments: &[Experiment],
    ) -> Result<Self, StoreError> {
        let campaigns: BTreeSet<CampaignId> = experiments
            .iter()
            .map(|experiment| experiment.campaign)
            .collect();
        let read_scenarios = |campaign| Ok((campaign, store.scenarios(campaign)?));
        campaigns
            .into_iter()
            .map(read_scenarios)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// `experiment`, which must be one of them, with its scenario.
    pub(super) fn belonging<'m>(&'m self, experiment: &'m Experiment) -> Belonging<'m> {
        let scenarios = self.0.get(&experiment.campaign);
        Belonging::of(experiment, scenarios.map_or(&[], Vec::as_slice))
    }
}
