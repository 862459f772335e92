//! Scenarios of exported experiments, read once per campaign.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{CampaignId, Experiment, Scenario};

use crate::columns::ExperimentContext;
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
    pub(super) fn context_of<'m>(&'m self, experiment: &'m Experiment) -> ExperimentContext<'m> {
        let scenarios = self.0.get(&experiment.campaign);
        ExperimentContext::of(experiment, scenarios.map_or(&[], Vec::as_slice))
    }
}
