//! Metrics of `neph ping`. The thread that reads the reports of the flows writes them; the sending
//! threads are not involved.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_export::{Metric, MetricSource, Value};
use neph_model::{EventKind, Message};

use super::circuit::{Circuit, LastResponseTime, MessageDefinitions, Messages};
use super::definitions::live::{PING_EVENTS, PING_IPDV, PING_MESSAGES, PING_RESPONSE_TIME};

const MESSAGE_DEFINITIONS: MessageDefinitions = MessageDefinitions {
    messages: &PING_MESSAGES,
    response_times: &PING_RESPONSE_TIME,
    ipdv: &PING_IPDV,
};

#[derive(Debug)]
struct Counts {
    /// Metrics of each flow.
    circuits: Vec<(Circuit, LastResponseTime)>,
    messages: Messages,
    events: BTreeMap<(Circuit, &'static str), u64>,
}

/// The metrics of a ping; clones share the same values.
#[derive(Clone, Debug)]
pub(crate) struct PingMetrics(Arc<Mutex<Counts>>);

impl PingMetrics {
    /// The metrics of flows with these endpoints and kinds.
    pub(crate) fn of(
        site: Option<&str>,
        flows: impl Iterator<Item = (String, &'static str)>,
    ) -> Self {
        let circuits = flows.map(|(endpoint, probe)| {
            let site = site.unwrap_or_default().to_owned();
            let circuit = Circuit {
                site,
                endpoint,
                probe,
            };
            (circuit, None)
        });
        let circuits: Vec<_> = circuits.collect();
        let mut messages = Messages::default();
        for (circuit, _) in &circuits {
            messages.register(circuit);
        }
        Self(Arc::new(Mutex::new(Counts {
            circuits,
            messages,
            events: BTreeMap::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a completed message of the flow with this index.
    pub(crate) fn add_message(&self, flow: usize, message: &Message) {
        let counts = &mut *self.lock();
        if let Some((circuit, last_response)) = counts.circuits.get_mut(flow) {
            counts.messages.add(circuit, message.into(), last_response);
        }
    }

    /// Adds another event of the flow.
    pub(crate) fn add_event(&self, flow: usize, kind: EventKind) {
        let counts = &mut *self.lock();
        if let Some((circuit, _)) = counts.circuits.get(flow) {
            let key = (circuit.clone(), kind.name());
            *counts.events.entry(key).or_default() += 1;
        }
    }
}

impl MetricSource for PingMetrics {
    fn snapshot(&self) -> Vec<Metric> {
        let (messages, events) = {
            let counts = self.lock();
            (counts.messages.clone(), counts.events.clone())
        };
        let mut event_metric = Metric::new(&PING_EVENTS);
        for ((circuit, event), count) in &events {
            event_metric.add(&circuit.labels_with(event), Value::Count(*count));
        }
        let mut metrics = messages.metrics(MESSAGE_DEFINITIONS).to_vec();
        metrics.push(event_metric);
        metrics
    }
}
