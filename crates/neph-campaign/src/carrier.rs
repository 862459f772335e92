//! The contract between a campaign and whatever carries its experiments out: probers in this
//! process, in a lab's namespace, later on an agent far away.
//!
//! Owns orders and answers as plain data. The store stays with the campaign; a carrier is given a
//! recorder and hands over what it measures.

use std::fmt::Debug;
use std::net::IpAddr;

use neph_model::{
    Experiment, Fleet, Flow, FlowTrace, HostFacts, Load, PingBetween, Scenario, Span, Throughput,
    Traceroute, Wall, Warning,
};
use neph_probe::Stop;
use neph_store::{Recorder, StoreError};

use crate::plan::{FlowTracePlan, Ping, ThroughputServer, ThroughputTool, TraceroutePlan};

/// One experiment to carry out. Plain data but for the flag, so that it can travel to an agent.
#[derive(Clone, Debug)]
pub struct ExperimentOrder {
    /// Its identity and place in the campaign. Flows and start are the carrier's to tell.
    pub experiment: Experiment,
    /// What it fixes; every other probe parameter is in its `parameters`, as
    /// [`crate::plan::PARAMETERS`] lists them.
    pub scenario: Scenario,
    /// The lab site whose namespace the prober runs in; this host as it is if absent.
    pub site: Option<String>,
    /// A reflector answered at this endpoint earlier in the campaign: a stranger would be measured
    /// differently, so nobody else will do.
    pub reflector: bool,
    /// The address at which this endpoint was measured last in the campaign: it stays, as long as the
    /// host has it and it answers.
    pub last_address: Option<IpAddr>,
    /// After how long a message counts as lost.
    pub timeout: Span,
    /// Interval of the ICMP echo beside the main flow, if there is to be one.
    pub companion: Option<Span>,
    /// Further ICMP destinations.
    pub pings: Vec<Ping>,
    /// The routes of a fleet's flows are looked for when it is over.
    pub trace: Option<FlowTracePlan>,
    /// Ends it early: what was measured is kept.
    pub stop: Stop,
}

/// What is known when everything is ready and before the first message goes.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The moment from which this experiment's own marks will count.
    pub started: Wall,
    /// The flows with their addresses; the main flow is the first. A source port may still be
    /// open. They are stored at once, so that messages that survive a crash have their flows.
    pub flows: Vec<Flow>,
    /// The fleet in the place of a main flow; `flows` holds only what runs beside it then.
    pub fleet: Option<Fleet>,
}

/// How a carried-out experiment came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The whole schedule was gone through.
    Complete,
    /// The stop flag cut it off.
    Interrupted,
    /// It could not go on, and why.
    Failed(String),
}

/// An experiment that has been carried out, to whatever end. Messages, events and samples are with
/// the recorder already.
#[derive(Clone, Debug)]
pub struct Carried {
    /// How it ended.
    pub ending: Ending,
    /// When.
    pub ended: Wall,
    /// The flows as they were in the end.
    pub flows: Vec<Flow>,
    /// Of a fleet: replies that came after their message was counted lost.
    pub late: Option<u64>,
    /// The routes of a fleet's flows, where the order asks for them and they could be had.
    pub trace: Option<FlowTrace>,
    /// (monotonic since start, wall) pairs in nanoseconds, one a second; of more than an hour fewer.
    pub anchors: Vec<(i64, i64)>,
    /// The host that sent, by [`crate::provenance::host_facts`] in the sender's namespace.
    pub host: HostFacts,
    /// How busy it was.
    pub load: Load,
    /// What only the carrier can see: clock steps, a late lab link. The campaign adds the rest.
    pub warnings: Vec<Warning>,
}

/// An experiment that did not come about.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    /// It failed and will be tried again: a name without an address, a connection refused ...
    #[error("{operation} failed: {reason}")]
    Failed {
        /// What was tried, on which subject.
        operation: String,
        /// Why it did not work.
        reason: String,
    },
    /// What was measured could not be recorded: the campaign stops, for the disk will not get
    /// better by going on.
    #[error("recording failed: {0}")]
    Store(#[from] StoreError),
}

/// How far a running experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Since its start.
    pub elapsed: Span,
    /// Messages of the main flow that are due by now.
    pub due: u64,
}

/// A throughput check to carry out.
#[derive(Clone, Debug)]
pub struct ThroughputOrder {
    /// The block it belongs to.
    pub block: u32,
    /// Where to.
    pub server: ThroughputServer,
    /// How long.
    pub duration: Span,
    /// With what.
    pub tool: ThroughputTool,
    /// The lab site it runs in.
    pub site: Option<String>,
    /// Ends it early.
    pub stop: Stop,
}

/// A traceroute to carry out.
#[derive(Clone, Debug)]
pub struct TracerouteOrder {
    /// The block it belongs to.
    pub block: u32,
    /// The endpoint's name.
    pub endpoint: String,
    /// Its host.
    pub host: String,
    /// How far and how often.
    pub settings: TraceroutePlan,
    /// The lab site it runs in.
    pub site: Option<String>,
    /// Ends it early.
    pub stop: Stop,
}

/// Pings to send while no experiment runs.
#[derive(Clone, Debug)]
pub struct PingOrder {
    /// The block that is waited for.
    pub block: u32,
    /// Where to, and how often.
    pub pings: Vec<Ping>,
    /// The last of them are sent before this.
    pub until: Wall,
    /// After how long one counts as lost.
    pub timeout: Span,
    /// The lab site that they are sent from.
    pub site: Option<String>,
    /// Ends it early.
    pub stop: Stop,
}

/// Keeps pings; an error ends the sending.
pub type KeepPings<'a> = dyn FnMut(&[PingBetween]) -> Result<(), StoreError> + 'a;

/// An experiment to carry out, and who keeps what it measures.
#[derive(Debug)]
pub struct Part<'a> {
    /// The experiment.
    pub order: &'a ExperimentOrder,
    /// Takes what it measures.
    pub recorder: &'a mut dyn Recorder,
}

/// Carries out what a campaign orders, one thing at a time: experiments that run at the same time
/// are one.
pub trait Carrier: Debug {
    /// Resolves, enters the sites, opens sockets: everything before the first message of
    /// experiments that are to run at the same time. Answers for each, in their order.
    ///
    /// # Errors
    /// [`CarryError::Failed`]: the experiment is stored as failed and tried again later; the others
    /// go on.
    fn prepare(&mut self, orders: &[&ExperimentOrder]) -> Vec<Result<Prepared, CarryError>>;

    /// Carries out those of what was prepared last that are named, at the same time. Tells
    /// `progress` a few times a second. What was measured goes to the recorders, also when it ends
    /// early. Answers for each, in their order.
    ///
    /// # Errors
    /// As for [`Self::prepare`], or the recorder refused.
    fn carry_out(
        &mut self,
        parts: &mut [Part<'_>],
        progress: &dyn Fn(Progress),
    ) -> Vec<Result<Carried, CarryError>>;

    /// Carries out a throughput check; a failure is part of the result. Returns only when all it
    /// sent is acknowledged: what still stands in a queue would slow the first experiment.
    fn check_throughput(&mut self, order: &ThroughputOrder) -> Throughput;

    /// Carries out a traceroute; a failure is part of the result.
    fn trace_route(&mut self, order: &TracerouteOrder) -> Traceroute;

    /// Pings until the order's end, and hands over what came of it every few seconds.
    ///
    /// # Errors
    /// `keep` refused. That no ping can be sent is none: the experiments report it.
    fn ping_between(
        &mut self,
        order: &PingOrder,
        keep: &mut KeepPings<'_>,
    ) -> Result<(), StoreError>;
}

/// Tells the time and waits. The campaign reads no clock itself.
pub trait Clock: Debug {
    /// Now.
    fn now(&self) -> Wall;
    /// Waits until `until`, or until `stop` is set, whichever comes first; at once if it is past.
    fn wait_until(&self, until: Wall, stop: &Stop);
}
