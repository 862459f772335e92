//! From a store to plain values, batch by batch: full messages are never held all at once.

use std::collections::BTreeMap;

use neph_model::{Campaign, Experiment, ExperimentStatus, FleetMessage, ScenarioId};
use neph_store::{SentWithin, Store, StoreError};

use crate::{CampaignData, ExperimentData};

/// Which experiments a report rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Those that were carried out to their end.
    #[default]
    Complete,
    /// Interrupted, failed and running ones too.
    Everything,
}

/// Reads a campaign and all its messages.
///
/// # Errors
/// What the store refused.
pub fn load(
    store: &dyn Store,
    campaign: &Campaign,
    include: Include,
) -> Result<CampaignData, StoreError> {
    let mut scenarios = store.scenarios(campaign.id)?;
    scenarios.sort_by_key(|scenario| scenario.index);
    let places: BTreeMap<ScenarioId, usize> = scenarios
        .iter()
        .enumerate()
        .map(|(place, scenario)| (scenario.id, place))
        .collect();
    let mut experiments = Vec::new();
    let mut left_out = Vec::new();
    for experiment in store.experiments(campaign.id)? {
        let wanted = match include {
            Include::Complete => experiment.status == ExperimentStatus::Complete,
            Include::Everything => true,
        };
        let Some(place) = places.get(&experiment.scenario).filter(|_| wanted) else {
            left_out.push(experiment);
            continue;
        };
        let id = experiment.id;
        let mut data = ExperimentData::new(experiment, *place, &[]);
        store.visit_messages(id, &mut |batch| {
            data.add(batch);
            Ok(())
        })?;
        data.events = store.events(id)?;
        data.samples = store.samples(id)?;
        data.provenance = store.provenance(id)?;
        experiments.push(data);
    }
    experiments.sort_by_key(|data| {
        let experiment = &data.experiment;
        (experiment.block, experiment.position, experiment.attempt)
    });
    Ok(CampaignData {
        campaign: campaign.clone(),
        scenarios,
        experiments,
        left_out,
        throughputs: store.throughputs(campaign.id)?,
        traceroutes: store.traceroutes(campaign.id)?,
    })
}

/// Hands the messages of an experiment's fleet to `visit`, one by one, as they were recorded: those
/// of one flow in order. An experiment without a fleet has none. Nothing is kept here, so weeks of
/// them need no memory but the visitor's.
///
/// # Errors
/// What the store refused.
pub fn load_fleets(
    store: &dyn Store,
    experiment: &Experiment,
    visit: &mut dyn FnMut(&FleetMessage),
) -> Result<(), StoreError> {
    if experiment.fleet.is_none() {
        return Ok(());
    }
    store.visit_fleet(experiment.id, SentWithin::ALL, &mut |batch| {
        batch.iter().for_each(&mut *visit);
        Ok(())
    })
}
