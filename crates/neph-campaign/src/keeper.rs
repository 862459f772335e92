//! Keeps a fleet that runs without a plan: a campaign of one experiment, in which everything is as
//! it would be if a plan had asked for it.

mod stored_fleet;

use std::sync::{Arc, Mutex};

use neph_model::{
    Anchor, Campaign, Experiment, ExperimentResult, Fleet, Instant, Local, Measure, Provenance,
    Records, Scenario, TracedRoute,
};
use neph_store::Store;

use crate::expand::identity;
use crate::meter::{Meter, MeteredRecorder, lock};
use crate::plan::Limits;
use crate::run::experiment::{
    Judgement, apply_executor_result, apply_meter_results, provenance as provenance_of,
};
use crate::run::{Build, RunError, map_store_error};
pub use stored_fleet::StoredFleet;
use stored_fleet::relative_to;

/// As what a fleet is kept.
#[derive(Clone, Debug)]
pub struct FleetStorage {
    /// The campaign's name.
    pub name: String,
    /// What was requested, in the place of a plan's path.
    pub description: String,
    /// The lab site that it measures from.
    pub site: Option<String>,
    /// The program that measures.
    pub build: Build,
}

/// A fleet that is being kept. What [`Self::record`] has recorded survives a kill.
#[derive(Debug)]
pub struct FleetKeeper {
    store: Box<dyn Store>,
    storage: FleetStorage,
    campaign: Campaign,
    experiment: Experiment,
    recorder: MeteredRecorder,
    meter: Arc<Mutex<Meter>>,
    origin: Instant<Local>,
}

impl FleetKeeper {
    /// Begins the campaign and its only experiment, of a scenario whose identity is found here. Local
    /// timestamps count from `origin`, which is not later than the fleet's first message.
    ///
    /// # Errors
    /// The store refused.
    pub fn begin(
        mut store: Box<dyn Store>,
        storage: FleetStorage,
        scenario: Scenario,
        fleet: Fleet,
        origin: Anchor<Local>,
    ) -> Result<Self, RunError> {
        map_store_error("recover what was cut off", store.recover())?;
        let scenario = Scenario {
            id: identity(&scenario),
            ..scenario
        };
        let campaign = campaign(&storage, origin);
        let experiment = Experiment {
            fleet: Some(fleet),
            ..Experiment::new(campaign.id, scenario.id, campaign.started)
        };
        let added = store.add_campaign(&campaign, &[scenario]);
        map_store_error("add the campaign", added)?;
        let recorder = map_store_error("begin an experiment", store.begin(&experiment))?;
        let meter = Arc::new(Mutex::new(Meter::new(false)));
        Ok(Self {
            store,
            storage,
            campaign,
            experiment,
            recorder: MeteredRecorder::new(recorder, Arc::clone(&meter)),
            meter,
            origin: origin.at,
        })
    }

    /// Keeps what was measured.
    ///
    /// # Errors
    /// The store refused.
    pub fn record(&mut self, records: &Records) -> Result<(), RunError> {
        map_store_error("record what is measured", self.recorder.record_all(records))
    }

    /// Keeps the routes of its flows.
    ///
    /// # Errors
    /// The store refused.
    pub fn record_routes(&mut self, mut routes: Vec<TracedRoute>) -> Result<(), RunError> {
        if routes.is_empty() {
            return Ok(());
        }
        for route in &mut routes {
            route.at = relative_to(self.origin, route.at);
            if let Some(change) = &mut route.change {
                change.at = relative_to(self.origin, change.at);
            }
        }
        let added = self.store.add_traced_routes(self.experiment.id, &routes);
        map_store_error("add the routes of flows", added)
    }

    /// Ends the experiment; what was measured last is kept already.
    ///
    /// # Errors
    /// The store refused.
    pub fn finish(mut self, result: ExperimentResult) -> Result<StoredFleet, RunError> {
        let mut experiment = self.experiment;
        let mut meter = lock(&self.meter);
        meter.set_late_replies(result.late.unwrap_or(0));
        let run_end = apply_executor_result(result, &mut experiment);
        let judgement = Judgement {
            measure: &Measure::Messages,
            limits: &Limits::default(),
        };
        apply_meter_results(&mut experiment, &run_end, &meter, judgement);
        let provenance = Provenance {
            site: self.storage.site,
            ..provenance_of(&experiment, "", &self.storage.build, run_end, &meter)
        };
        let recorder = self.recorder.into_inner();
        let finished = self.store.finish(recorder, &experiment, &provenance);
        map_store_error("finish an experiment", finished)?;
        Ok(StoredFleet {
            store: self.store,
            campaign: self.campaign,
            experiment,
            origin: self.origin,
        })
    }
}

fn campaign(storage: &FleetStorage, origin: Anchor<Local>) -> Campaign {
    Campaign {
        plan_path: storage.description.clone(),
        ..Campaign::new(&storage.name, origin.wall)
    }
}

#[cfg(test)]
mod tests;
