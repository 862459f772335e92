//! The data of a report: a campaign as plain values, in compact form.
//!
//! Owns the per-message record of figures and tables (about 220 bytes with all stages, half of a full
//! message). Does not read the store (see `load.rs`) and calculates no statistics.

mod addresses;
mod exchange;
mod factor;
mod fleet;
mod shown_blocks;
mod traced;

use std::collections::BTreeSet;

use neph_flows::FleetView;
use neph_model::{
    Campaign, CampaignStatus, ClassTransfer, Event, EventKind, Experiment, FlowRole, FlowTrace,
    Instant, Local, Message, Provenance, Sample, Scenario, Throughput, Traceroute, Warning,
};

pub(crate) use addresses::split_by_address;
pub(crate) use exchange::RetransmissionCounts;
pub use exchange::{Exchange, FlowData};
pub use factor::{Factor, factors};
pub(crate) use fleet::digest_fleet;
pub use fleet::read_fleet;
pub(crate) use traced::Verdicts;

use crate::PlotSettings;

/// One experiment with all its measurements.
#[derive(Clone, Debug)]
pub struct ExperimentData {
    /// Its place in the catalog.
    pub experiment: Experiment,
    /// Index of its scenario in [`CampaignData::scenarios`].
    pub scenario: usize,
    /// Provenance: what a reader needs to judge the result.
    pub provenance: Option<Provenance>,
    /// Events of the experiment other than messages, by time.
    pub events: Vec<Event>,
    /// Series, by name and time.
    pub samples: Vec<Sample>,
    /// Flows with their messages, the main flow first.
    pub flows: Vec<FlowData>,
    /// The evaluation of the fleet's messages; `None` if the experiment is no fleet.
    pub fleet: Option<FleetView>,
    /// Routes of the flows, by time.
    pub traces: Vec<FlowTrace>,
    /// Transfers on the ports of its fleet's classes, by time.
    pub transfers: Vec<ClassTransfer>,
}

impl ExperimentData {
    /// Assigns messages, in any order, to their flows.
    pub fn new(experiment: Experiment, scenario: usize, messages: &[Message]) -> Self {
        let flows = experiment
            .flows
            .iter()
            .cloned()
            .map(FlowData::new)
            .collect();
        let mut data = Self {
            experiment,
            scenario,
            provenance: None,
            events: Vec::new(),
            samples: Vec::new(),
            flows,
            fleet: None,
            traces: Vec::new(),
            transfers: Vec::new(),
        };
        data.add(messages);
        data
    }

    /// Adds more messages, so that a long experiment need not be in memory as a whole.
    pub fn add(&mut self, messages: &[Message]) {
        for flow in &mut self.flows {
            flow.add(messages);
        }
    }

    /// The flow of the scenario itself.
    pub fn main(&self) -> Option<&FlowData> {
        self.flow(FlowRole::Main)
    }
    /// The ICMP echoes that were sent alongside the main flow.
    pub fn companion(&self) -> Option<&FlowData> {
        self.flow(FlowRole::Companion)
    }
    /// The ICMP echoes to the destinations that the plan names.
    pub(crate) fn ping_destinations(&self) -> impl Iterator<Item = &FlowData> {
        self.of_role(FlowRole::PingDestination)
    }
    fn flow(&self, role: FlowRole) -> Option<&FlowData> {
        self.of_role(role).next()
    }
    /// The flows with that role.
    pub fn of_role(&self, role: FlowRole) -> impl Iterator<Item = &FlowData> {
        self.flows.iter().filter(move |data| data.flow.role == role)
    }
    /// Whether the experiment is a fleet without a main flow; ICMP echoes may run alongside.
    fn is_fleet_without_main_flow(&self) -> bool {
        let is_fleet = self.fleet.is_some() || self.experiment.fleet.is_some();
        is_fleet && self.main().is_none_or(|main| main.exchanges.is_empty())
    }
    /// The block number, from 1.
    pub fn block(&self) -> u32 {
        self.experiment.block.saturating_add(1)
    }
    /// When the main flow's connection was lost, in nanoseconds since the start.
    pub fn reconnects(&self) -> impl Iterator<Item = i64> {
        let lost = |event: &&Event| event.kind == EventKind::ConnectionLost;
        self.events.iter().filter(lost).map(|event| event.at)
    }
    /// Start and end of each alarm, in nanoseconds since the start; `None`: until the end of the experiment.
    pub fn alarms(&self) -> Vec<(i64, Option<i64>)> {
        let rule = |event: &Event| event.text.split(';').next().map(str::to_owned);
        let mut spans = Vec::new();
        for (index, event) in self.events.iter().enumerate() {
            if event.kind == EventKind::AlarmRaised {
                let mut later = self.events[index..].iter();
                let alarm_end = later
                    .find(|other| other.kind == EventKind::AlarmOver && rule(other) == rule(event));
                spans.push((event.at, alarm_end.map(|other| other.at)));
            }
        }
        spans
    }
    /// When segments of the main flow were retransmitted, and how many. Counted by its sockets, or by the
    /// capture of an imported measurement.
    pub fn retransmissions(&self) -> Vec<(Instant<Local>, u32)> {
        let mut counted = self.main().map_or_else(Vec::new, FlowData::retransmissions);
        let is_retransmission = |event: &&Event| event.kind == EventKind::Retransmitted;
        let captured = self.events.iter().filter(is_retransmission);
        counted.extend(captured.map(|event| (Instant::from_nanos(event.at), 1)));
        counted.sort_by_key(|(at, _)| *at);
        counted
    }
}

/// A campaign as plain values.
#[derive(Clone, Debug)]
pub struct CampaignData {
    /// The campaign.
    pub campaign: Campaign,
    /// The scenarios of the plan, by index.
    pub scenarios: Vec<Scenario>,
    /// Its experiments, by block, position and attempt.
    pub experiments: Vec<ExperimentData>,
    /// Experiments that are not shown because they are incomplete.
    pub left_out: Vec<Experiment>,
    /// Throughput checks, by time.
    pub throughputs: Vec<Throughput>,
    /// Traceroutes, by time.
    pub traceroutes: Vec<Traceroute>,
}

impl CampaignData {
    /// Whether another tool measured the campaign. Its files have replies only: no lost messages, no schedule
    /// and nothing about the host.
    pub fn is_imported(&self) -> bool {
        self.campaign.status == CampaignStatus::Imported
    }

    /// The labels of the scenarios, by index, without the parts that all scenarios share.
    pub fn labels(&self) -> Vec<String> {
        Scenario::labels_apart(&self.scenarios)
    }

    /// A scenario's label, without the parts that all scenarios share.
    pub fn label(&self, scenario: usize) -> String {
        self.labels().swap_remove(scenario)
    }

    /// The shared parts of all labels: `Common to all scenarios: every 100 ms · 1 KiB.`; `None` if nothing is
    /// shared.
    pub fn shared_label(&self) -> Option<String> {
        let shared = Scenario::shared_parts(&self.scenarios);
        (!shared.is_empty()).then(|| format!("Common to all scenarios: {}.", shared.join(" · ")))
    }

    /// The blocks that have measurements, counted from 1.
    pub fn blocks(&self) -> BTreeSet<u32> {
        self.experiments.iter().map(ExperimentData::block).collect()
    }

    /// A scenario's experiments in the blocks that the settings show, by block.
    pub fn experiments_of<'a>(
        &'a self,
        scenario: usize,
        settings: &'a PlotSettings,
    ) -> impl Iterator<Item = &'a ExperimentData> + 'a {
        let shown = self.shown(settings);
        shown.filter(move |data| data.scenario == scenario)
    }

    /// The main flows of a scenario in the blocks that the settings show.
    pub fn main_flows<'a>(
        &'a self,
        scenario: usize,
        settings: &'a PlotSettings,
    ) -> impl Iterator<Item = &'a FlowData> + 'a {
        self.experiments_of(scenario, settings)
            .filter_map(ExperimentData::main)
    }

    /// Whether a scenario measures a transfer instead of messages.
    pub(crate) fn is_transfer(&self, scenario: usize) -> bool {
        self.scenarios[scenario].measure().is_transfer()
    }

    /// Indices of the message scenarios that have at least one experiment to show. For transfers see
    /// [`Self::transfers`].
    pub fn measured(&self, settings: &PlotSettings) -> Vec<usize> {
        (0..self.scenarios.len())
            .filter(|index| {
                !self.is_transfer(*index) && self.experiments_of(*index, settings).next().is_some()
            })
            .collect()
    }

    /// Indices of the scenarios whose single messages can be shown. Fleets are left out: they have figures of
    /// their own.
    pub fn scenarios_with_messages(&self, settings: &PlotSettings) -> Vec<usize> {
        let is_reported = |experiment: &ExperimentData| {
            experiment.fleet.is_none()
                || experiment
                    .flows
                    .iter()
                    .any(|flow| !flow.exchanges.is_empty())
        };
        let mut indices = self.measured(settings);
        indices.retain(|index| self.experiments_of(*index, settings).any(is_reported));
        indices
    }

    /// Indices of the scenarios whose messages can be compared within one flow. The echoes alongside a fleet
    /// do not count.
    pub fn scenarios_with_main_flow(&self, settings: &PlotSettings) -> Vec<usize> {
        let mut indices = self.measured(settings);
        indices.retain(|index| {
            let mut experiments = self.experiments_of(*index, settings);
            experiments.any(|experiment| !experiment.is_fleet_without_main_flow())
        });
        indices
    }

    /// Whether the settings show fleets only, which are not evaluated message by message.
    pub(crate) fn has_only_fleets(&self, settings: &PlotSettings) -> bool {
        !self.measured(settings).is_empty() && self.scenarios_with_main_flow(settings).is_empty()
    }

    /// The warnings of a scenario's experiments, each with the block number (from 1).
    pub fn flags(&self, scenario: usize, settings: &PlotSettings) -> Vec<(u32, &Warning)> {
        let flagged = self.flagged(scenario, settings);
        flagged
            .map(|(experiment, w)| (experiment.block(), w))
            .collect()
    }

    /// The warnings of a scenario's experiments, each with the experiment.
    pub(crate) fn flagged(
        &self,
        scenario: usize,
        settings: &PlotSettings,
    ) -> impl Iterator<Item = (&ExperimentData, &Warning)> {
        let experiments = self.shown(settings);
        let experiments = experiments.filter(move |data| data.scenario == scenario);
        experiments.flat_map(|experiment| {
            experiment
                .experiment
                .warnings
                .iter()
                .map(move |w| (experiment, w))
        })
    }
}
