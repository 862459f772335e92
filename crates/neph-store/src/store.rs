//! The contract that every store keeps, whatever is behind it.

use std::fmt::Debug;
use std::path::Path;

use neph_model::{
    Campaign, CampaignId, CampaignStatus, ClassTransfer, Event, Experiment, ExperimentId,
    ExperimentStatus, FleetMessage, FlowTrace, Message, Minute, PingBetween, Provenance, Recorder,
    Sample, Scenario, Throughput, TracedRoute, Traceroute, Wall,
};

use crate::{SentWithin, StoreError};

/// Where campaigns, experiments and messages live.
///
/// Writing needs the workspace for oneself (the embedded store locks it); reading does not. Several
/// threads of the writing process write at the same time, each through a [`handle`](Self::handle): a
/// recorder needs the store for its beginning and its end only. What every store promises is in the
/// module `contract`.
pub trait Store: Debug + Send {
    /// A further handle of this store, with the same access, for another thread. Handles change the
    /// catalog in short transactions and do not wait for each other beyond these. The store stays
    /// open until the last handle is dropped.
    fn handle(&self) -> Result<Box<dyn Store>, StoreError>;
    /// Adds a campaign with its matrix.
    fn add_campaign(
        &mut self,
        campaign: &Campaign,
        scenarios: &[Scenario],
    ) -> Result<(), StoreError>;
    /// Records how a campaign stands, and its end if it has one.
    fn set_campaign_status(
        &mut self,
        campaign: CampaignId,
        status: CampaignStatus,
        ended: Option<Wall>,
    ) -> Result<(), StoreError>;
    /// Begins an experiment: it is in the catalog as running before this returns, and everything
    /// given to the recorder survives a kill -9 from the moment the recorder's call returned. One that
    /// the store has, in whatever state, is refused and stays as it is.
    fn begin(&mut self, experiment: &Experiment) -> Result<Box<dyn Recorder>, StoreError>;
    /// Ends an experiment: its messages become one columnar file, its journal goes away. One that has
    /// ended is refused and stays as it is.
    fn finish(
        &mut self,
        recorder: Box<dyn Recorder>,
        experiment: &Experiment,
        provenance: &Provenance,
    ) -> Result<(), StoreError>;
    /// Takes in an experiment that another process or host journalled, exactly once: when this returns, it is
    /// in the store as it ended, whole, or nothing of it is. May be repeated until it succeeds, also after a
    /// kill. One that has ended here stays as it is; one that is running here is refused, and one that ended
    /// with more messages than its journal has. The journals stay.
    fn take_in(&mut self, journalled: &Journalled<'_>) -> Result<TakenIn, StoreError>;
    /// Turns experiments that a crash left running into interrupted ones, with every message that
    /// was recorded, and so their campaigns; returns the experiments. Called by whoever holds the workspace for writing.
    fn recover(&mut self) -> Result<Vec<Experiment>, StoreError>;
    /// Adds a throughput check.
    fn add_throughput(
        &mut self,
        campaign: CampaignId,
        check: &Throughput,
    ) -> Result<(), StoreError>;
    /// Adds a traceroute.
    fn add_traceroute(
        &mut self,
        campaign: CampaignId,
        route: &Traceroute,
    ) -> Result<(), StoreError>;
    /// Adds pings that were sent while no experiment ran: safe when this returns.
    fn add_pings_between(
        &mut self,
        campaign: CampaignId,
        pings: &[PingBetween],
    ) -> Result<(), StoreError>;
    /// Adds a trace of an experiment's flows; the experiment has begun.
    fn add_flow_trace(
        &mut self,
        experiment: ExperimentId,
        trace: &FlowTrace,
    ) -> Result<(), StoreError>;
    /// Adds routes that were traced while an experiment's flows are measured: safe when this
    /// returns; the experiment has begun.
    fn add_traced_routes(
        &mut self,
        experiment: ExperimentId,
        routes: &[TracedRoute],
    ) -> Result<(), StoreError>;
    /// Adds transfers on the ports of an experiment's flows, while it runs or afterwards: safe when
    /// this returns.
    fn add_transfers(
        &mut self,
        experiment: ExperimentId,
        transfers: &[ClassTransfer],
    ) -> Result<(), StoreError>;

    /// Replaces the messages of an experiment that has ended by its minutes: when this returns, the minutes count and
    /// the messages are gone. A kill leaves the one or the other, never none and never both. May be repeated until it
    /// succeeds; the minutes of the first time stay.
    fn reduce(
        &mut self,
        experiment: ExperimentId,
        minutes: &[Minute],
        at: Wall,
    ) -> Result<(), StoreError>;
    /// Removes the minutes of a reduced experiment: its counts are left.
    fn remove_minutes(&mut self, experiment: ExperimentId, at: Wall) -> Result<(), StoreError>;

    /// Whether somebody, this process too, holds it for writing: without them nothing that is said
    /// to be running is.
    fn is_being_written(&self) -> Result<bool, StoreError>;
    /// All campaigns, oldest first.
    fn campaigns(&self) -> Result<Vec<Campaign>, StoreError>;
    /// A campaign's matrix, by index.
    fn scenarios(&self, campaign: CampaignId) -> Result<Vec<Scenario>, StoreError>;
    /// A campaign's experiments, by block, position and attempt.
    fn experiments(&self, campaign: CampaignId) -> Result<Vec<Experiment>, StoreError>;
    /// Hands out an experiment's messages of all flows, by flow and sequence number, in batches
    /// that fit in memory. Of an experiment that is running: those recorded so far.
    fn visit_messages(
        &self,
        experiment: ExperimentId,
        visit: &mut MessageVisitor<'_>,
    ) -> Result<(), StoreError>;
    /// All of them at once: about 400 bytes of memory each.
    fn messages(&self, experiment: ExperimentId) -> Result<Vec<Message>, StoreError> {
        let mut all = Vec::new();
        self.visit_messages(experiment, &mut |batch| {
            all.extend_from_slice(batch);
            Ok(())
        })?;
        Ok(all)
    }
    /// Hands out the messages of an experiment's fleet that were sent within a time, in batches that
    /// fit in memory, as they were recorded: in the order in which they ended, so nearly by sending;
    /// those of one flow by sending. Of an experiment that is running: those recorded so far. One
    /// without a fleet has none.
    fn visit_fleet(
        &self,
        experiment: ExperimentId,
        within: SentWithin,
        visit: &mut FleetVisitor<'_>,
    ) -> Result<(), StoreError>;
    /// An experiment's events, by time.
    fn events(&self, experiment: ExperimentId) -> Result<Vec<Event>, StoreError>;
    /// An experiment's samples, by series and time.
    fn samples(&self, experiment: ExperimentId) -> Result<Vec<Sample>, StoreError>;
    /// An experiment's provenance, once it has ended.
    fn provenance(&self, experiment: ExperimentId) -> Result<Option<Provenance>, StoreError>;
    /// A campaign's throughput checks, by time.
    fn throughputs(&self, campaign: CampaignId) -> Result<Vec<Throughput>, StoreError>;
    /// A campaign's traceroutes, by time.
    fn traceroutes(&self, campaign: CampaignId) -> Result<Vec<Traceroute>, StoreError>;
    /// A campaign's pings between experiments, by time.
    fn pings_between(&self, campaign: CampaignId) -> Result<Vec<PingBetween>, StoreError>;
    /// An experiment's traces of flows, by time.
    fn flow_traces(&self, experiment: ExperimentId) -> Result<Vec<FlowTrace>, StoreError>;
    /// Hands out the routes that were traced while an experiment's flows were measured, by time, in
    /// batches that fit in memory.
    fn visit_traced_routes(
        &self,
        experiment: ExperimentId,
        visit: &mut RouteVisitor<'_>,
    ) -> Result<(), StoreError>;
    /// When the messages of an experiment were replaced by minutes; `None` if they were not. Reading these messages is
    /// [`StoreError::Reduced`].
    fn reduction(&self, experiment: ExperimentId) -> Result<Option<Reduction>, StoreError>;
    /// The minutes of a reduced experiment, by flow and time; none where there is none.
    fn minutes(&self, experiment: ExperimentId) -> Result<Vec<Minute>, StoreError>;
    /// An experiment's transfers, by time.
    fn transfers(&self, experiment: ExperimentId) -> Result<Vec<ClassTransfer>, StoreError>;
}

/// An experiment that was journalled by a [`JournalRecorder`](neph_journal::JournalRecorder), which writes no
/// more.
#[derive(Clone, Copy, Debug)]
pub struct Journalled<'a> {
    /// The folder of its journals.
    pub folder: &'a Path,
    /// How it ended. One that is still running lost its writer: what its journals have is kept, and it is
    /// interrupted.
    pub experiment: &'a Experiment,
    /// Under which circumstances, if that is known.
    pub provenance: Option<&'a Provenance>,
    /// What was found while the journal was read: alarms, a changed address.
    pub events: &'a [Event],
    /// The routes of its flows, if they were traced when it was over.
    pub flow_trace: Option<&'a FlowTrace>,
}

/// That the messages of an experiment were replaced by minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// When.
    pub at: Wall,
    /// When these were removed too.
    pub minutes_removed: Option<Wall>,
}

/// What became of an experiment that was to be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenIn {
    /// It is in the store from now on.
    Now,
    /// It was there, and had ended so.
    Before(ExperimentStatus),
}

/// Takes a batch of messages; an error ends the visit.
pub type MessageVisitor<'a> = dyn FnMut(&[Message]) -> Result<(), StoreError> + 'a;

/// Takes a batch of a fleet's messages; an error ends the visit.
pub type FleetVisitor<'a> = dyn FnMut(&[FleetMessage]) -> Result<(), StoreError> + 'a;

/// Takes a batch of traced routes; an error ends the visit.
pub type RouteVisitor<'a> = dyn FnMut(&[TracedRoute]) -> Result<(), StoreError> + 'a;
