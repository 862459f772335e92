//! The embedded store: a folder with a catalog, a journal per running experiment and a Parquet file
//! per ended one.
//!
//! Owns the order in which these three change. A kill between any two steps leaves a state that
//! `recover` completes (see [`Step`]).

mod active_experiments;
mod begin;
mod finish;
mod messages;
mod record_summary;
mod recorder;
mod recover;
mod reduce;
mod step;
mod take_in;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use neph_journal::Contents;
use neph_model::{
    Campaign, CampaignId, CampaignStatus, ClassTransfer, Event, Experiment, ExperimentId,
    ExperimentStatus, FlowTrace, Minute, PingBetween, Provenance, Recorder, Sample, Scenario,
    Throughput, TracedRoute, Traceroute, Wall,
};

use crate::catalog::Catalog;
use crate::fleet;
use crate::store::{
    FleetVisitor, IntakeResult, Journalled, MessageVisitor, Reduction, RouteVisitor, Store,
};
use crate::workspace::{Workspace, WriteLock};
use crate::{Access, SentWithin, StoreError};
use active_experiments::ActiveExperiments;
use step::{Gate, Step};

/// An open workspace.
#[derive(Debug)]
pub(crate) struct Embedded {
    workspace: Workspace,
    catalog: Catalog,
    /// `Some` if opened for writing.
    lock: Option<Arc<WriteLock>>,
    active_experiments: ActiveExperiments,
    gate: Gate,
}

impl Embedded {
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let workspace = Workspace::at(path);
        let lock = match access {
            Access::Write => {
                workspace.create_folders()?;
                Some(Arc::new(workspace.lock()?))
            }
            Access::Read if workspace.catalog_path().exists() => None,
            Access::Read => {
                return Err(StoreError::NoWorkspace {
                    path: path.to_owned(),
                });
            }
        };
        let catalog = Catalog::open(&workspace.catalog_path(), access)?;
        Ok(Self {
            workspace,
            catalog,
            lock,
            active_experiments: ActiveExperiments::default(),
            gate: Gate::default(),
        })
    }

    /// Refuses to change a workspace that was opened for reading.
    fn check_writable(&self, operation: &'static str) -> Result<(), StoreError> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(StoreError::ReadOnly {
                operation,
                path: self.workspace.root().to_owned(),
            }),
        }
    }

    /// Contents of the journal, if the catalog has the experiment as running.
    fn running_contents(&self, experiment: ExperimentId) -> Result<Option<Contents>, StoreError> {
        match self.require_status(experiment)? {
            ExperimentStatus::Running => {
                let journal = self.workspace.journal_path(experiment);
                Ok(Contents::of(&journal, experiment)?)
            }
            _ => Ok(None),
        }
    }

    /// Status of an experiment; an error if it is not in the catalog.
    fn require_status(&self, experiment: ExperimentId) -> Result<ExperimentStatus, StoreError> {
        let status = self.catalog.status_of(experiment)?;
        status.ok_or_else(|| StoreError::UnknownExperiment {
            experiment,
            path: self.workspace.root().to_owned(),
        })
    }
}

impl Store for Embedded {
    fn handle(&self) -> Result<Box<dyn Store>, StoreError> {
        let access = match self.lock {
            Some(_) => Access::Write,
            None => Access::Read,
        };
        Ok(Box::new(Self {
            workspace: self.workspace.clone(),
            catalog: self.catalog.handle(access)?,
            lock: self.lock.clone(),
            active_experiments: self.active_experiments.clone(),
            gate: Gate::default(),
        }))
    }

    fn add_campaign(
        &mut self,
        campaign: &Campaign,
        scenarios: &[Scenario],
    ) -> Result<(), StoreError> {
        self.check_writable("add a campaign")?;
        self.catalog.add_campaign(campaign, scenarios)
    }

    fn remove_empty_campaign(&mut self, campaign: CampaignId) -> Result<bool, StoreError> {
        self.check_writable("remove an empty campaign")?;
        self.catalog.remove_empty_campaign(campaign)
    }

    fn set_campaign_status(
        &mut self,
        campaign: CampaignId,
        status: CampaignStatus,
        ended: Option<Wall>,
    ) -> Result<(), StoreError> {
        self.check_writable("set a campaign's status")?;
        self.catalog.set_campaign_status(campaign, status, ended)
    }

    fn begin(&mut self, experiment: &Experiment) -> Result<Box<dyn Recorder>, StoreError> {
        self.check_writable("begin an experiment")?;
        if !self.active_experiments.add(experiment.id) {
            return Err(StoreError::ExperimentExists {
                experiment: experiment.id,
                status: ExperimentStatus::Running,
            });
        }
        let recorder = self.begin_new(experiment);
        if recorder.is_err() {
            self.active_experiments.remove(experiment.id);
        }
        recorder
    }

    fn finish(
        &mut self,
        recorder: Box<dyn Recorder>,
        experiment: &Experiment,
        provenance: &Provenance,
    ) -> Result<(), StoreError> {
        self.check_writable("finish an experiment")?;
        finish::check(recorder.as_ref(), experiment, provenance)?;
        drop(recorder);
        let result = self.end(experiment, provenance);
        // Its writer has ended. If the disk refused, recovery may end the experiment.
        self.active_experiments.remove(experiment.id);
        result
    }

    fn take_in(&mut self, journalled: &Journalled<'_>) -> Result<IntakeResult, StoreError> {
        self.check_writable("take in an experiment")?;
        take_in::check(journalled)?;
        let id = journalled.experiment.id;
        if !self.active_experiments.add(id) {
            return Err(StoreError::ExperimentExists {
                experiment: id,
                status: ExperimentStatus::Running,
            });
        }
        let intake = self.take_in_once(journalled);
        self.active_experiments.remove(id);
        intake
    }

    fn recover(&mut self) -> Result<Vec<Experiment>, StoreError> {
        self.check_writable("recover experiments")?;
        self.recover_all()
    }

    fn add_throughput(
        &mut self,
        campaign: CampaignId,
        check: &Throughput,
    ) -> Result<(), StoreError> {
        self.check_writable("add a throughput check")?;
        self.catalog.add_throughput(campaign, check)
    }

    fn add_traceroute(
        &mut self,
        campaign: CampaignId,
        route: &Traceroute,
    ) -> Result<(), StoreError> {
        self.check_writable("add a traceroute")?;
        self.catalog.add_traceroute(campaign, route)
    }

    fn add_pings_between(
        &mut self,
        campaign: CampaignId,
        pings: &[PingBetween],
    ) -> Result<(), StoreError> {
        self.check_writable("add pings between experiments")?;
        self.catalog.add_pings_between(campaign, pings)
    }

    fn add_flow_trace(
        &mut self,
        experiment: ExperimentId,
        trace: &FlowTrace,
    ) -> Result<(), StoreError> {
        self.check_writable("add the routes of flows")?;
        self.catalog.add_flow_trace(experiment, trace)
    }

    fn add_traced_routes(
        &mut self,
        experiment: ExperimentId,
        routes: &[TracedRoute],
    ) -> Result<(), StoreError> {
        self.check_writable("add the routes of flows")?;
        self.catalog.add_traced_routes(experiment, routes)
    }

    fn add_transfers(
        &mut self,
        experiment: ExperimentId,
        transfers: &[ClassTransfer],
    ) -> Result<(), StoreError> {
        self.check_writable("add transfers")?;
        self.catalog.add_transfers(experiment, transfers)
    }

    fn reduce(
        &mut self,
        experiment: ExperimentId,
        minutes: &[Minute],
        at: Wall,
    ) -> Result<(), StoreError> {
        self.check_writable("reduce an experiment")?;
        self.reduce_one(experiment, minutes, at)
    }

    fn remove_minutes(&mut self, experiment: ExperimentId, at: Wall) -> Result<(), StoreError> {
        self.check_writable("remove the minutes of an experiment")?;
        self.require_status(experiment)?;
        self.catalog.remove_minutes(experiment, at)
    }

    fn is_being_written(&self) -> Result<bool, StoreError> {
        match self.lock {
            Some(_) => Ok(true),
            None => self.workspace.is_locked(),
        }
    }

    fn campaigns(&self) -> Result<Vec<Campaign>, StoreError> {
        self.catalog.campaigns()
    }

    fn scenarios(&self, campaign: CampaignId) -> Result<Vec<Scenario>, StoreError> {
        self.catalog.scenarios(campaign)
    }

    fn experiments(&self, campaign: CampaignId) -> Result<Vec<Experiment>, StoreError> {
        self.catalog.experiments(campaign)
    }

    fn visit_messages(
        &self,
        experiment: ExperimentId,
        visit: &mut MessageVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.check_not_reduced(experiment)?;
        let result = self.visit(experiment, visit);
        // A writer may have reduced it in the meantime.
        result.or_else(|error| self.check_not_reduced(experiment).and(Err(error)))
    }

    fn visit_fleet(
        &self,
        experiment: ExperimentId,
        within: SentWithin,
        visit: &mut FleetVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.require_status(experiment)?;
        self.check_not_reduced(experiment)?;
        let result = fleet::visit(&self.workspace.fleet_folders(experiment), within, visit);
        result.or_else(|error| self.check_not_reduced(experiment).and(Err(error)))
    }

    fn events(&self, experiment: ExperimentId) -> Result<Vec<Event>, StoreError> {
        match self.running_contents(experiment)? {
            Some(contents) => {
                let mut events = contents.events;
                events.sort_by_key(|event| event.at);
                Ok(events)
            }
            None => self.catalog.events(experiment),
        }
    }

    fn samples(&self, experiment: ExperimentId) -> Result<Vec<Sample>, StoreError> {
        match self.running_contents(experiment)? {
            Some(contents) => {
                let mut samples = contents.samples;
                samples.sort_by_key(|sample| (sample.series, sample.at));
                Ok(samples)
            }
            None => self.catalog.samples(experiment),
        }
    }

    fn provenance(&self, experiment: ExperimentId) -> Result<Option<Provenance>, StoreError> {
        self.catalog.provenance(experiment)
    }

    fn throughputs(&self, campaign: CampaignId) -> Result<Vec<Throughput>, StoreError> {
        self.catalog.throughputs(campaign)
    }

    fn traceroutes(&self, campaign: CampaignId) -> Result<Vec<Traceroute>, StoreError> {
        self.catalog.traceroutes(campaign)
    }

    fn pings_between(&self, campaign: CampaignId) -> Result<Vec<PingBetween>, StoreError> {
        self.catalog.pings_between(campaign)
    }

    fn flow_traces(&self, experiment: ExperimentId) -> Result<Vec<FlowTrace>, StoreError> {
        self.catalog.flow_traces(experiment)
    }

    fn visit_traced_routes(
        &self,
        experiment: ExperimentId,
        visit: &mut RouteVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.catalog.visit_traced_routes(experiment, visit)
    }

    fn reduction(&self, experiment: ExperimentId) -> Result<Option<Reduction>, StoreError> {
        self.require_status(experiment)?;
        self.catalog.reduction(experiment)
    }

    fn minutes(&self, experiment: ExperimentId) -> Result<Vec<Minute>, StoreError> {
        self.catalog.minutes(experiment)
    }

    fn transfers(&self, experiment: ExperimentId) -> Result<Vec<ClassTransfer>, StoreError> {
        self.catalog.transfers(experiment)
    }
}
