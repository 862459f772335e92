//! From a store to plain values, batch by batch: full messages are never held all at once.

use std::collections::BTreeMap;

use neph_flows::{FleetView, Settings, StatsError};
use neph_model::{
    Campaign, Experiment, ExperimentStatus, FleetMessage, FlowTrace, LatestRoutes, ScenarioId,
};
use neph_store::{SentWithin, Store, StoreError};

use crate::data::{Verdicts, digest_fleet, keep_apart};
use crate::{CampaignData, ExperimentData, read_fleet};

/// A campaign that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The numbers by which path changes are told do not fit together.
    #[error("look for path changes: {0}")]
    Detection(#[from] StatsError),
}

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
) -> Result<CampaignData, LoadError> {
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
        let (fleet, latest) = fleet_of(store, &experiment)?.unzip();
        let mut data = ExperimentData::new(experiment, *place, &[]);
        data.fleet = fleet.filter(|view| !view.flows.is_empty());
        // Of a transfer that a retention policy reduced, only echoes beside it are gone.
        let is_transfer = data.experiment.quantities.is_some();
        if !is_transfer || store.reduction(id)?.is_none() {
            store.visit_messages(id, &mut |batch| {
                data.add(batch);
                Ok(())
            })?;
        }
        data.events = store.events(id)?;
        data.samples = store.samples(id)?;
        data.provenance = store.provenance(id)?;
        data.traces = store.flow_traces(id)?;
        data.traces.extend(latest.unwrap_or_default());
        data.transfers = store.transfers(id)?;
        experiments.push(data);
    }
    experiments.sort_by_key(|data| {
        let experiment = &data.experiment;
        (experiment.block, experiment.position, experiment.attempt)
    });
    let mut data = CampaignData {
        campaign: campaign.clone(),
        scenarios,
        experiments,
        left_out,
        throughputs: store.throughputs(campaign.id)?,
        traceroutes: store.traceroutes(campaign.id)?,
    };
    keep_apart(&mut data);
    Ok(data)
}

/// What the messages of an experiment's fleet say, but for single flows taken apart and advice; `None`
/// without a fleet. Reads them once.
///
/// # Errors
/// What the store refused, or that the numbers of the detection do not fit together.
pub fn fleet_view(
    store: &dyn Store,
    experiment: &Experiment,
) -> Result<Option<FleetView>, LoadError> {
    let Some(fleet) = &experiment.fleet else {
        return Ok(None);
    };
    let visit = |take: &mut dyn FnMut(&FleetMessage)| each_message(store, experiment, take);
    let mut view = digest_fleet(fleet, Settings::of(fleet), visit)?;
    view.came_late(experiment.tally.late);
    Ok(Some(view))
}

fn each_message(
    store: &dyn Store,
    experiment: &Experiment,
    take: &mut dyn FnMut(&FleetMessage),
) -> Result<(), LoadError> {
    store.visit_fleet(experiment.id, SentWithin::ALL, &mut |batch| {
        batch.iter().for_each(&mut *take);
        Ok(())
    })?;
    Ok(())
}

/// What the messages of an experiment's fleet say, and the routes that its flows had last. Messages
/// and routes pass by, batch by batch: weeks of them need no more memory than minutes.
fn fleet_of(
    store: &dyn Store,
    experiment: &Experiment,
) -> Result<Option<(FleetView, Vec<FlowTrace>)>, LoadError> {
    let Some(fleet) = &experiment.fleet else {
        return Ok(None);
    };
    let visit = |take: &mut dyn FnMut(&FleetMessage)| each_message(store, experiment, take);
    let mut view = read_fleet(fleet, Settings::of(fleet), visit)?;
    view.came_late(experiment.tally.late);
    let mut verdicts = Verdicts::on(&mut view.changes);
    let mut latest = LatestRoutes::default();
    store.visit_traced_routes(experiment.id, &mut |batch| {
        verdicts.take(batch);
        latest.take(batch);
        Ok(())
    })?;
    let latest = latest.traces(fleet, experiment.started);
    Ok(Some((view, latest)))
}
