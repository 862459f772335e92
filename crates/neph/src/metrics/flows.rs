//! Metrics of `neph flows`: by endpoint, never by flow. The thread that reads the reports of the
//! fleet writes them; the sending thread is not involved.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_export::{Metric, MetricSource, Value};
use neph_flows::PathEvent;
use neph_model::{Fleet, FleetMessage, Slot};

use super::circuit::{Circuit, LastResponseTimes, MessageDefinitions, Messages};
use super::definitions::live::{
    FLOWS_ACTIVE, FLOWS_IPDV, FLOWS_MESSAGES, FLOWS_PATH_CHANGES, FLOWS_PATH_CHANGES_WITHDRAWN,
    FLOWS_ROUND_TRIP,
};

const MESSAGE_DEFINITIONS: MessageDefinitions = MessageDefinitions {
    messages: &FLOWS_MESSAGES,
    response_times: &FLOWS_ROUND_TRIP,
    ipdv: &FLOWS_IPDV,
};

/// Metrics of an endpoint.
#[derive(Clone, Debug)]
struct Endpoint {
    circuit: Circuit,
    flows: u64,
    changes: u64,
    withdrawn: u64,
}

#[derive(Debug)]
struct Counts {
    fleet: Fleet,
    endpoints: Vec<Endpoint>,
    messages: Messages,
    last_by_slot: LastResponseTimes,
}

/// The metrics of a fleet; clones share the same values.
#[derive(Clone, Debug)]
pub(crate) struct FlowsMetrics(Arc<Mutex<Counts>>);

impl FlowsMetrics {
    /// The metrics of a fleet at this site.
    pub(crate) fn of(site: Option<&str>, fleet: &Fleet) -> Self {
        let endpoints = fleet.endpoints.iter().enumerate();
        let endpoints = endpoints.map(|(index, endpoint)| Endpoint {
            circuit: Circuit {
                site: site.unwrap_or_default().to_owned(),
                endpoint: endpoint.name.clone(),
                probe: fleet.probe.name(),
            },
            flows: (0..fleet.slots)
                .filter(|slot| fleet.endpoint_of(Slot(*slot)) == index)
                .count() as u64,
            changes: 0,
            withdrawn: 0,
        });
        let endpoints: Vec<_> = endpoints.collect();
        let mut messages = Messages::default();
        for endpoint in &endpoints {
            messages.register(&endpoint.circuit);
        }
        Self(Arc::new(Mutex::new(Counts {
            fleet: fleet.clone(),
            endpoints,
            messages,
            last_by_slot: LastResponseTimes::default(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds completed messages.
    pub(crate) fn add_messages(&self, messages: &[FleetMessage]) {
        let counts = &mut *self.lock();
        for message in messages {
            let index = counts.fleet.endpoint_of(message.slot);
            let last_response = counts.last_by_slot.of(message);
            if let Some(endpoint) = counts.endpoints.get(index) {
                counts
                    .messages
                    .add(&endpoint.circuit, message.into(), last_response);
            }
        }
    }

    /// Adds an event about paths.
    pub(crate) fn add_event(&self, event: &PathEvent) {
        let counts = &mut *self.lock();
        let (PathEvent::Changed(change) | PathEvent::Withdrawn(change)) = event;
        let index = counts.fleet.endpoint_of(change.slot);
        if let Some(endpoint) = counts.endpoints.get_mut(index) {
            match event {
                PathEvent::Changed(_) => endpoint.changes += 1,
                PathEvent::Withdrawn(_) => endpoint.withdrawn += 1,
            }
        }
    }
}

impl MetricSource for FlowsMetrics {
    fn snapshot(&self) -> Vec<Metric> {
        let (messages, endpoints) = {
            let counts = self.lock();
            (counts.messages.clone(), counts.endpoints.clone())
        };
        let [mut flows, mut changes, mut withdrawn] = [
            &FLOWS_ACTIVE,
            &FLOWS_PATH_CHANGES,
            &FLOWS_PATH_CHANGES_WITHDRAWN,
        ]
        .map(Metric::new);
        for endpoint in &endpoints {
            let labels = endpoint.circuit.labels();
            flows.add(&labels, Value::Count(endpoint.flows));
            changes.add(&labels, Value::Count(endpoint.changes));
            withdrawn.add(&labels, Value::Count(endpoint.withdrawn));
        }
        let mut metrics = vec![flows];
        metrics.extend(messages.metrics(MESSAGE_DEFINITIONS));
        metrics.extend([changes, withdrawn]);
        metrics
    }
}
