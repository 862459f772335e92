//! Evaluates a fleet's messages one after the other.
//!
//! Memory grows with the number of flows and, within limits, with path changes and bins of time, never with
//! messages.

use std::collections::VecDeque;

use neph_model::{Fleet, FleetMessage, FleetOutcome, Instant, Local, Slot};
use neph_stats::StatsError;

use crate::base::{Bases, DetectorEvent, EventKind};
use crate::build_view::build_view;
use crate::changes::{MAX_CHANGES, PathChangeHistory};
use crate::flow::{ChangeContext, Conditions, FlowSnapshot};
use crate::flow_tally::FlowTally;
use crate::hidden::HiddenTimes;
use crate::known::{DigestState, KnownEndpointFlows};
use crate::latency::Latency;
use crate::latency_bins::Bins;
use crate::loss_by_base::{self, LossByBase};
use crate::outage::Lost;
use crate::settings::Settings;
use crate::skew::Drift;
use crate::succession::Succession;
use crate::unexplained::UnexplainedTime;
use crate::view::{FleetView, PathChange};

/// A new event about paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// A path change.
    Changed(PathChange),
    /// A reported path change is withdrawn.
    Withdrawn(PathChange),
}

/// The data of the flows to one endpoint.
#[derive(Debug)]
struct EndpointFlows {
    bases: Bases,
    drift: Drift,
    bins: Option<Bins>,
    tally: FlowTally,
    lost: Lost,
    loss_by_base: LossByBase,
    /// Time at levels that lasted and were not reported as paths.
    unexplained: UnexplainedTime,
}

impl EndpointFlows {
    /// Compares temporary levels with the queues that all flows shared, and with the time left out after
    /// these.
    fn settle(&mut self, now: Option<Instant<Local>>, fleet: &Fleet, settings: &Settings) {
        let window_time = fleet.interval.times(settings.detection.window.into());
        let queue_periods: Vec<_> = self.bases.queue_periods().collect();
        let queue_periods = HiddenTimes::new(&queue_periods, window_time);
        self.unexplained.settle(now, fleet.interval, &queue_periods);
    }
}

/// The evaluation of a fleet's messages. Messages of one flow must be in order; those of different flows may
/// be interleaved in any way.
#[derive(Debug)]
pub struct Digest {
    fleet: Fleet,
    settings: Settings,
    flows: Succession,
    flows_by_endpoint: Vec<EndpointFlows>,
    changes: PathChangeHistory,
    /// `None` if events are not needed.
    events: Option<VecDeque<PathEvent>>,
    /// Time of the first and the last message.
    extent: Option<(Instant<Local>, Instant<Local>)>,
}

impl Digest {
    /// A fleet without messages yet.
    ///
    /// # Errors
    /// When the numbers of the detection are inconsistent.
    pub fn new(fleet: &Fleet, settings: Settings) -> Result<Self, StatsError> {
        let endpoint_flows = |_: &neph_model::FleetEndpoint| {
            Ok(EndpointFlows {
                bases: Bases::new(&settings)?,
                drift: Drift::default(),
                bins: None,
                tally: FlowTally::default(),
                lost: Lost::default(),
                loss_by_base: LossByBase::default(),
                unexplained: UnexplainedTime::default(),
            })
        };
        Ok(Self {
            fleet: fleet.clone(),
            settings,
            flows: Succession::default(),
            flows_by_endpoint: fleet
                .endpoints
                .iter()
                .map(endpoint_flows)
                .collect::<Result<_, _>>()?,
            changes: PathChangeHistory::new(MAX_CHANGES),
            events: Some(VecDeque::new()),
            extent: None,
        })
    }

    /// Does not collect events, for messages that are read from a store.
    #[must_use]
    pub fn without_events(self) -> Self {
        Self {
            events: None,
            ..self
        }
    }

    /// Adds the next message. Ignores a slot that the fleet does not have.
    pub fn push(&mut self, message: &FleetMessage) {
        let endpoint = self.fleet.endpoint_of(message.slot);
        if message.slot.0 >= self.fleet.slots || endpoint >= self.flows_by_endpoint.len() {
            return;
        }
        let (first, last) = *self.extent.get_or_insert((message.sent, message.sent));
        self.extent = Some((first.min(message.sent), last.max(message.sent)));
        let flow_index = self.flow_index(message.slot);
        self.begin_or_continue_flow(message, endpoint, flow_index);
        let latency = match &message.outcome {
            FleetOutcome::Reply(reply) => Some(Latency::Took(reply.network())),
            FleetOutcome::Lost => Some(Latency::Lost),
            FleetOutcome::Failed => None,
        };
        if let Some(latency) = latency {
            let endpoint_flows = &mut self.flows_by_endpoint[endpoint];
            let (settings, fleet) = (&self.settings, &self.fleet);
            let bins = endpoint_flows
                .bins
                .get_or_insert_with(|| Bins::new(first, settings, fleet));
            bins.push(flow_index, message, latency);
            if let Latency::Took(round_trip) = latency {
                endpoint_flows
                    .bases
                    .push(flow_index, message.sent, round_trip);
            }
        }
        self.process_detections(endpoint);
    }

    /// Ends the input: evaluates what waited for messages of other flows.
    pub fn finish(&mut self) {
        for endpoint in 0..self.flows_by_endpoint.len() {
            self.flows_by_endpoint[endpoint].bases.finish();
            self.process_detections(endpoint);
        }
    }

    /// New events about paths since the last call.
    pub fn events(&mut self) -> impl Iterator<Item = PathEvent> + '_ {
        self.events.iter_mut().flat_map(|events| events.drain(..))
    }

    /// Stores the trace of a changed flow: it used other routers than before, or the same.
    pub fn record_trace(&mut self, change: &PathChange, routers_differ: bool) {
        self.changes.record_trace(change, routers_differ);
    }

    /// The fleet that is evaluated.
    pub const fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Number of path changes.
    pub fn changes(&self) -> usize {
        self.changes.reported_count()
    }

    /// All changes that are kept, by time.
    pub(crate) fn changes_by_time(&self) -> Vec<PathChange> {
        self.changes.by_time()
    }

    /// Outcomes of the messages so far: faster than the whole view.
    pub fn tally(&self) -> FlowTally {
        let mut total = FlowTally::default();
        self.flows_by_endpoint
            .iter()
            .for_each(|endpoint_flows| total.add(&endpoint_flows.tally));
        total
    }

    /// Data before this moment is incomplete because of the memory limit.
    pub(crate) const fn horizon(&self) -> Option<Instant<Local>> {
        self.changes.complete_since()
    }

    /// The view of the fleet.
    pub fn view(self) -> FleetView {
        build_view(self.end())
    }

    /// The index of a slot's flow among the endpoint's flows.
    fn flow_index(&self, slot: Slot) -> u32 {
        slot.0
            / u32::try_from(self.fleet.endpoints.len())
                .unwrap_or(u32::MAX)
                .max(1)
    }

    fn begin_or_continue_flow(&mut self, message: &FleetMessage, endpoint: usize, flow_index: u32) {
        let endpoint_flows = &mut self.flows_by_endpoint[endpoint];
        if self.flows.is_replaced_by(message) {
            // The events up to the previous message are already processed.
            let detector_nth = endpoint_flows.bases.nth(flow_index);
            endpoint_flows.bases.restart(flow_index, message.sent);
            if let Some(complete_since) = self.flows.replace(message, detector_nth) {
                self.changes.set_complete_since(complete_since);
            }
        }
        let flow = self.flows.current(message);
        let conditions = Conditions {
            probe: self.fleet.probe,
            interval: self.fleet.interval,
            shared_drift: endpoint_flows.bases.shared_drift(),
            settings: &self.settings,
        };
        let tally = flow.push(message, conditions, &mut endpoint_flows.drift);
        endpoint_flows.tally.add(&tally);
        endpoint_flows
            .lost
            .push(message, &self.fleet, &self.settings);
        let silence_length = loss_by_base::silence_length(&self.fleet, &self.settings);
        let base_outcomes = flow.outcome_counts(&message.outcome, silence_length);
        if let Some((base, outcome_counts)) = base_outcomes {
            endpoint_flows
                .loss_by_base
                .add(base, outcome_counts, &self.settings);
        }
        flow.take_unexplained()
            .for_each(|row| endpoint_flows.unexplained.push(row));
        if endpoint_flows.unexplained.is_due(message.sent) {
            endpoint_flows.settle(Some(message.sent), &self.fleet, &self.settings);
        }
    }

    /// Processes the detector's events for the flows to an endpoint.
    fn process_detections(&mut self, endpoint: usize) {
        while let Some(event) = self.flows_by_endpoint[endpoint].bases.next_event() {
            self.apply(endpoint, event);
        }
    }

    fn apply(&mut self, endpoint: usize, event: DetectorEvent) {
        let endpoints = u32::try_from(self.fleet.endpoints.len()).unwrap_or(u32::MAX);
        let slot = Slot(event.flow * endpoints + u32::try_from(endpoint).unwrap_or(u32::MAX));
        let flow = self.flows.find(slot, event.nth);
        let changes = &mut self.changes;
        match (event.kind, flow) {
            (EventKind::Shift(_), None) => {}
            (EventKind::Shift(shift), Some(flow)) => {
                let context = ChangeContext {
                    slot,
                    interval: self.fleet.interval,
                    settings: &self.settings,
                    drift: self.flows_by_endpoint[endpoint].drift,
                };
                let change = flow.shift(shift, context, changes);
                let unexplained = &mut self.flows_by_endpoint[endpoint].unexplained;
                flow.take_unexplained()
                    .for_each(|row| unexplained.push(row));
                self.record_event(change.map(PathEvent::Changed));
            }
            (EventKind::Correction { base, .. }, Some(flow)) => {
                let withdrawn = flow.correct(base, &self.settings, changes);
                self.record_event(withdrawn.map(PathEvent::Withdrawn));
            }
            (EventKind::Correction { at, base }, None) => {
                let snapshot = self.flows.find_finished(slot, at);
                let withdrawn =
                    snapshot.and_then(|snapshot| snapshot.correct(base, &self.settings, changes));
                self.record_event(withdrawn.map(PathEvent::Withdrawn));
            }
        }
    }

    fn record_event(&mut self, event: Option<PathEvent>) {
        if let Some(events) = &mut self.events {
            events.extend(event);
        }
    }

    /// Frees what only new messages need before the histories are made.
    fn end(mut self) -> DigestState {
        let snapshots: Vec<FlowSnapshot> = std::mem::take(&mut self.flows).into_snapshots(|slot| {
            let bases = &self.flows_by_endpoint[self.fleet.endpoint_of(slot)].bases;
            let flow_index = self.flow_index(slot);
            (bases.nth(flow_index), bases.base(flow_index))
        });
        for endpoint_flows in &mut self.flows_by_endpoint {
            endpoint_flows.settle(None, &self.fleet, &self.settings);
        }
        let to_known = |endpoint_flows: EndpointFlows| KnownEndpointFlows {
            congested: endpoint_flows.bases.queue_periods().collect(),
            congestion_periods_merged: endpoint_flows.bases.are_queues_merged(),
            bins: endpoint_flows.bins.map(Bins::into_bins).unwrap_or_default(),
            tally: endpoint_flows.tally,
            lost: endpoint_flows.lost,
            loss_by_base: endpoint_flows.loss_by_base,
            unexplained: endpoint_flows.unexplained.time(),
            drift: endpoint_flows.bases.drift(),
        };
        let flows_by_endpoint = self.flows_by_endpoint.into_iter().map(to_known).collect();
        let zero = Instant::from_nanos(0);
        DigestState {
            fleet: self.fleet,
            settings: self.settings,
            extent: self.extent.unwrap_or((zero, zero)),
            flows: snapshots
                .iter()
                .map(|snapshot| snapshot.history(&self.changes))
                .collect(),
            complete_since: self.changes.complete_since(),
            changes: self.changes.by_time(),
            flows_by_endpoint,
        }
    }
}

#[cfg(test)]
mod tests;
