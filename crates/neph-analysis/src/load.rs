//! Reads a campaign from a store in batches: never all full messages at once.

use std::collections::BTreeMap;

use neph_flows::{FleetView, Settings, StatsError};
use neph_model::{
    Campaign, Experiment, ExperimentStatus, FleetMessage, FlowTrace, LatestRoutes, ScenarioId,
};
use neph_store::{SentWithin, Store, StoreError};

use crate::data::{Verdicts, digest_fleet, split_by_address};
use crate::{CampaignData, ExperimentData, read_fleet};

/// A campaign that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store reported an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The settings of the path change detection are inconsistent.
    #[error("look for path changes: {0}")]
    Detection(#[from] StatsError),
}

/// The experiments of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Complete experiments only.
    #[default]
    Complete,
    /// Interrupted, failed and running ones too.
    Everything,
}

/// Reads a campaign and all its messages.
///
/// # Errors
/// The error of the store.
pub fn load(
    store: &dyn Store,
    campaign: &Campaign,
    include: Include,
) -> Result<CampaignData, LoadError> {
    let mut scenarios = store.scenarios(campaign.id)?;
    scenarios.sort_by_key(|scenario| scenario.index);
    let index_by_scenario: BTreeMap<ScenarioId, usize> = scenarios
        .iter()
        .enumerate()
        .map(|(index, scenario)| (scenario.id, index))
        .collect();
    let mut experiments = Vec::new();
    let mut left_out = Vec::new();
    for experiment in store.experiments(campaign.id)? {
        let is_included = match include {
            Include::Complete => experiment.status == ExperimentStatus::Complete,
            Include::Everything => true,
        };
        let Some(index) = index_by_scenario
            .get(&experiment.scenario)
            .filter(|_| is_included)
        else {
            left_out.push(experiment);
            continue;
        };
        let id = experiment.id;
        let (fleet, latest) = fleet_of(store, &experiment)?.unzip();
        let mut data = ExperimentData::new(experiment, *index, &[]);
        data.fleet = fleet.filter(|view| !view.flows.is_empty());
        // If a retention policy reduced a transfer, only the echoes alongside are missing.
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
    split_by_address(&mut data);
    Ok(data)
}

/// Evaluates the messages of an experiment's fleet, without single flows and advice; `None` without a fleet.
/// Reads them once.
///
/// # Errors
/// The error of the store, or inconsistent settings of the detection.
pub fn fleet_view(
    store: &dyn Store,
    experiment: &Experiment,
) -> Result<Option<FleetView>, LoadError> {
    let Some(fleet) = &experiment.fleet else {
        return Ok(None);
    };
    let visit = |take: &mut dyn FnMut(&FleetMessage)| visit_fleet_messages(store, experiment, take);
    let mut view = digest_fleet(fleet, Settings::of(fleet), visit)?;
    view.record_late_replies(experiment.tally.late);
    Ok(Some(view))
}

fn visit_fleet_messages(
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

/// Evaluates the messages of an experiment's fleet, and the last routes of its flows. Reads in batches, so
/// that memory does not depend on the duration.
fn fleet_of(
    store: &dyn Store,
    experiment: &Experiment,
) -> Result<Option<(FleetView, Vec<FlowTrace>)>, LoadError> {
    let Some(fleet) = &experiment.fleet else {
        return Ok(None);
    };
    let visit = |take: &mut dyn FnMut(&FleetMessage)| visit_fleet_messages(store, experiment, take);
    let mut view = read_fleet(fleet, Settings::of(fleet), visit)?;
    view.record_late_replies(experiment.tally.late);
    let mut verdicts = Verdicts::new(&mut view.changes);
    let mut latest = LatestRoutes::default();
    store.visit_traced_routes(experiment.id, &mut |batch| {
        verdicts.add(batch);
        latest.take(batch);
        Ok(())
    })?;
    let latest = latest.traces(fleet, experiment.started);
    Ok(Some((view, latest)))
}
