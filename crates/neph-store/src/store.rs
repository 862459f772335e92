//! The contract of every store.

use std::fmt::Debug;
use std::path::Path;

use neph_model::{
    Campaign, CampaignId, CampaignStatus, ClassTransfer, Event, Experiment, ExperimentId,
    ExperimentStatus, FleetMessage, FlowTrace, Message, Minute, PingBetween, Provenance, Recorder,
    Sample, Scenario, Throughput, TracedRoute, Traceroute, Wall,
};

use crate::{SentWithin, StoreError};

/// A store of campaigns, experiments and messages.
///
/// Writing needs exclusive access to the workspace (the embedded store locks it); reading does not.
/// Several threads of the writing process write concurrently, each with its
/// [`handle`](Self::handle). A recorder needs the store only for its beginning and its end. The
/// module `contract` tests what every store guarantees.
pub trait Store: Debug + Send {
    /// A further handle of this store, with the same access, for another thread. Handles wait for
    /// each other only during short catalog transactions. The store stays open until the last
    /// handle is dropped.
    fn handle(&self) -> Result<Box<dyn Store>, StoreError>;
    /// Adds a campaign with its matrix.
    fn add_campaign(
        &mut self,
        campaign: &Campaign,
        scenarios: &[Scenario],
    ) -> Result<(), StoreError>;
    /// Removes a campaign without any data: no experiment, throughput check, traceroute or ping. Returns
    /// whether it was removed.
    fn remove_empty_campaign(&mut self, campaign: CampaignId) -> Result<bool, StoreError>;
    /// Sets the status of a campaign, and its end if it has one.
    fn set_campaign_status(
        &mut self,
        campaign: CampaignId,
        status: CampaignStatus,
        ended: Option<Wall>,
    ) -> Result<(), StoreError>;
    /// Begins an experiment: when this returns, it is in the catalog as running. A record survives
    /// a kill -9 as soon as the recorder's call returned. An experiment that the store already has,
    /// with any status, is refused and stays unchanged.
    fn begin(&mut self, experiment: &Experiment) -> Result<Box<dyn Recorder>, StoreError>;
    /// Ends an experiment: its messages become one columnar file, its journal is removed. One that
    /// has ended is refused and stays unchanged.
    fn finish(
        &mut self,
        recorder: Box<dyn Recorder>,
        experiment: &Experiment,
        provenance: &Provenance,
    ) -> Result<(), StoreError>;
    /// Takes in an experiment that another process or host journalled, completely and exactly once.
    /// May be repeated until it succeeds, also after a kill. One that has ended in this store stays
    /// unchanged. Refuses one that is running in this store, and one that ended with more messages
    /// than its journal has. The journals stay.
    fn take_in(&mut self, journalled: &Journalled<'_>) -> Result<IntakeResult, StoreError>;
    /// Marks experiments that a crash left running as interrupted, with every recorded message, and
    /// so their campaigns. Returns the experiments. The caller must have the workspace open for
    /// writing.
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
    /// Adds pings between experiments; they are durable when this returns.
    fn add_pings_between(
        &mut self,
        campaign: CampaignId,
        pings: &[PingBetween],
    ) -> Result<(), StoreError>;
    /// Adds a trace of an experiment's flows; the experiment must have begun.
    fn add_flow_trace(
        &mut self,
        experiment: ExperimentId,
        trace: &FlowTrace,
    ) -> Result<(), StoreError>;
    /// Adds routes that were traced during an experiment, which must have begun. They are durable
    /// when this returns.
    fn add_traced_routes(
        &mut self,
        experiment: ExperimentId,
        routes: &[TracedRoute],
    ) -> Result<(), StoreError>;
    /// Adds transfers on the source ports of an experiment's flows, during it or later. They are
    /// durable when this returns.
    fn add_transfers(
        &mut self,
        experiment: ExperimentId,
        transfers: &[ClassTransfer],
    ) -> Result<(), StoreError>;

    /// Replaces the messages of an ended experiment by its minutes. After a kill the store has
    /// exactly one of the two. May be repeated until it succeeds; the minutes of the first call
    /// stay.
    fn reduce(
        &mut self,
        experiment: ExperimentId,
        minutes: &[Minute],
        at: Wall,
    ) -> Result<(), StoreError>;
    /// Removes the minutes of a reduced experiment; its counts stay.
    fn remove_minutes(&mut self, experiment: ExperimentId, at: Wall) -> Result<(), StoreError>;

    /// Whether any process, including this one, has the store open for writing. If none has,
    /// nothing with status running is alive.
    fn is_being_written(&self) -> Result<bool, StoreError>;
    /// All campaigns, oldest first.
    fn campaigns(&self) -> Result<Vec<Campaign>, StoreError>;
    /// A campaign's matrix, by index.
    fn scenarios(&self, campaign: CampaignId) -> Result<Vec<Scenario>, StoreError>;
    /// A campaign's experiments, by block, position and attempt.
    fn experiments(&self, campaign: CampaignId) -> Result<Vec<Experiment>, StoreError>;
    /// Passes an experiment's messages of all flows to `visit`, by flow and sequence number, in
    /// batches that fit in memory. For a running experiment: those recorded so far.
    fn visit_messages(
        &self,
        experiment: ExperimentId,
        visit: &mut MessageVisitor<'_>,
    ) -> Result<(), StoreError>;
    /// All messages at once: about 400 bytes of memory each.
    fn messages(&self, experiment: ExperimentId) -> Result<Vec<Message>, StoreError> {
        let mut messages = Vec::new();
        self.visit_messages(experiment, &mut |batch| {
            messages.extend_from_slice(batch);
            Ok(())
        })?;
        Ok(messages)
    }
    /// Passes the messages of an experiment's fleet that were sent `within` a time to `visit`, in
    /// batches that fit in memory. The order is that in which messages ended, so approximately by
    /// send time; within a flow it is by send time. A running experiment has those recorded so far,
    /// one without a fleet has none.
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
    /// An experiment's provenance; `None` before its end.
    fn provenance(&self, experiment: ExperimentId) -> Result<Option<Provenance>, StoreError>;
    /// A campaign's throughput checks, by time.
    fn throughputs(&self, campaign: CampaignId) -> Result<Vec<Throughput>, StoreError>;
    /// A campaign's traceroutes, by time.
    fn traceroutes(&self, campaign: CampaignId) -> Result<Vec<Traceroute>, StoreError>;
    /// A campaign's pings between experiments, by time.
    fn pings_between(&self, campaign: CampaignId) -> Result<Vec<PingBetween>, StoreError>;
    /// An experiment's traces of flows, by time.
    fn flow_traces(&self, experiment: ExperimentId) -> Result<Vec<FlowTrace>, StoreError>;
    /// Passes the routes that were traced during an experiment to `visit`, by time, in batches that
    /// fit in memory.
    fn visit_traced_routes(
        &self,
        experiment: ExperimentId,
        visit: &mut RouteVisitor<'_>,
    ) -> Result<(), StoreError>;
    /// When the messages of an experiment were replaced by minutes; `None` if they were not.
    /// Reading these messages returns [`StoreError::Reduced`].
    fn reduction(&self, experiment: ExperimentId) -> Result<Option<Reduction>, StoreError>;
    /// The minutes of a reduced experiment, by flow and time; empty if it has none.
    fn minutes(&self, experiment: ExperimentId) -> Result<Vec<Minute>, StoreError>;
    /// An experiment's transfers, by time.
    fn transfers(&self, experiment: ExperimentId) -> Result<Vec<ClassTransfer>, StoreError>;
}

/// An experiment that a [`JournalRecorder`](neph_journal::JournalRecorder) has journalled. The
/// recorder no longer writes.
#[derive(Clone, Copy, Debug)]
pub struct Journalled<'a> {
    /// The folder of its journals.
    pub folder: &'a Path,
    /// The ended experiment. One that is still running lost its writer: it becomes interrupted,
    /// with the contents of its journals.
    pub experiment: &'a Experiment,
    /// Its provenance, if known.
    pub provenance: Option<&'a Provenance>,
    /// Events that were found while the journal was read: alarms, a changed address.
    pub events: &'a [Event],
    /// The routes of its flows, if they were traced after it.
    pub flow_trace: Option<&'a FlowTrace>,
}

/// The messages of an experiment were replaced by minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Time of the replacement.
    pub at: Wall,
    /// Time of the removal of the minutes.
    pub minutes_removed: Option<Wall>,
}

/// Result of [`Store::take_in`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntakeResult {
    /// The store has it from now on.
    Stored,
    /// The store already had it, with this final status.
    Existing(ExperimentStatus),
}

/// Takes a batch of messages; an error ends the visit.
pub type MessageVisitor<'a> = dyn FnMut(&[Message]) -> Result<(), StoreError> + 'a;

/// Takes a batch of a fleet's messages; an error ends the visit.
pub type FleetVisitor<'a> = dyn FnMut(&[FleetMessage]) -> Result<(), StoreError> + 'a;

/// Takes a batch of traced routes; an error ends the visit.
pub type RouteVisitor<'a> = dyn FnMut(&[TracedRoute]) -> Result<(), StoreError> + 'a;
