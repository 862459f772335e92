//! Messages by circuit: outcomes, times of replies, and differences between consecutive replies.

use std::collections::BTreeMap;

use neph_export::{Definition, Histogram, Metric, Value};
use neph_model::{FleetMessage, FleetOutcome, Message, Outcome, Slot, Span};

/// A circuit: site, endpoint and probe.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Circuit {
    pub(super) site: String,
    pub(super) endpoint: String,
    pub(super) probe: &'static str,
}

impl Circuit {
    pub(super) fn labels(&self) -> [&str; 3] {
        [&self.site, &self.endpoint, self.probe]
    }

    /// The labels, and an additional one.
    pub(super) fn labels_with<'a>(&'a self, label: &'a str) -> [&'a str; 4] {
        [&self.site, &self.endpoint, self.probe, label]
    }
}

/// Outcomes of the messages of a circuit.
#[derive(Clone, Debug, Default)]
struct CircuitStatistics {
    /// By outcome, in the order of [`Outcome::ALL`]. Outcomes that did not occur are 0, so that
    /// their rate is 0 too.
    outcomes: [u64; Outcome::ALL.len()],
    response_times: Histogram,
    ipdv: Histogram,
}

/// A completed message.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompletedMessage {
    outcome: Outcome,
    /// The response time of a message, or the network RTT of a fleet's message; nanoseconds.
    response_ns: Option<u64>,
}

impl From<&Message> for CompletedMessage {
    fn from(message: &Message) -> Self {
        let response_ns = message.ledger().map(|ledger| nanos(ledger.response_time()));
        let outcome = message.outcome;
        Self {
            outcome,
            response_ns,
        }
    }
}

impl From<&FleetMessage> for CompletedMessage {
    fn from(message: &FleetMessage) -> Self {
        let outcome = match message.outcome {
            FleetOutcome::Reply(_) => Outcome::Reply,
            FleetOutcome::Lost => Outcome::Lost,
            FleetOutcome::Failed => Outcome::Failed,
        };
        let response_ns = message.reply().map(|reply| nanos(reply.network()));
        Self {
            outcome,
            response_ns,
        }
    }
}

/// The response time of the last reply of a flow, nanoseconds.
pub(super) type LastResponseTime = Option<u64>;

/// The response times of the last replies of a fleet, by slot.
#[derive(Clone, Debug, Default)]
pub(super) struct LastResponseTimes(BTreeMap<Slot, (u16, LastResponseTime)>);

impl LastResponseTimes {
    /// The last reply of this message's flow. A new source port in a slot is a new flow, which may
    /// have another path.
    pub(super) fn of(&mut self, message: &FleetMessage) -> &mut LastResponseTime {
        let (port, response_time) = self.0.entry(message.slot).or_default();
        if *port != message.source_port {
            (*port, *response_time) = (message.source_port, None);
        }
        response_time
    }
}

/// The messages of all circuits.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages(BTreeMap<Circuit, CircuitStatistics>);

/// The exported metrics.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageDefinitions {
    pub(super) messages: &'static Definition,
    pub(super) response_times: &'static Definition,
    pub(super) ipdv: &'static Definition,
}

impl Messages {
    fn entry(&mut self, circuit: &Circuit) -> &mut CircuitStatistics {
        if !self.0.contains_key(circuit) {
            self.0.insert(circuit.clone(), CircuitStatistics::default());
        }
        self.0.entry(circuit.clone()).or_default()
    }

    /// Exports the circuit, without a message so far.
    pub(super) fn register(&mut self, circuit: &Circuit) {
        self.entry(circuit);
    }

    /// Adds a message of a flow whose last reply took `last_response`.
    pub(super) fn add(
        &mut self,
        circuit: &Circuit,
        message: CompletedMessage,
        last_response: &mut LastResponseTime,
    ) {
        let statistics = self.entry(circuit);
        let outcome_index = Outcome::ALL
            .iter()
            .position(|outcome| *outcome == message.outcome);
        if let Some(count) = outcome_index.and_then(|index| statistics.outcomes.get_mut(index)) {
            *count += 1;
        }
        let Some(response_ns) = message.response_ns else {
            return;
        };
        statistics.response_times.add(response_ns, 1);
        if let Some(previous) = last_response.replace(response_ns) {
            statistics.ipdv.add(response_ns.abs_diff(previous), 1);
        }
    }

    /// The current values.
    pub(super) fn metrics(&self, definitions: MessageDefinitions) -> [Metric; 3] {
        let [mut messages, mut response_times, mut ipdv] = [
            definitions.messages,
            definitions.response_times,
            definitions.ipdv,
        ]
        .map(Metric::new);
        for (circuit, statistics) in &self.0 {
            for (outcome, count) in Outcome::ALL.iter().zip(statistics.outcomes) {
                messages.add(&circuit.labels_with(outcome.name()), Value::Count(count));
            }
            for (metric, histogram) in [
                (&mut response_times, &statistics.response_times),
                (&mut ipdv, &statistics.ipdv),
            ] {
                let value = Value::Histogram(Box::new(histogram.clone()));
                metric.add(&circuit.labels(), value);
            }
        }
        [messages, response_times, ipdv]
    }
}

fn nanos(time: Span) -> u64 {
    u64::try_from(time.nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use neph_export::Page;

    use super::*;
    use crate::metrics::definitions::live::{PING_IPDV, PING_MESSAGES, PING_RESPONSE_TIME};

    #[test]
    fn jitter_is_between_consecutive_replies_and_skips_losses() {
        let circuit = Circuit {
            site: String::new(),
            endpoint: "b".to_owned(),
            probe: "udp",
        };
        let mut messages = Messages::default();
        let mut last_response = None;
        for response_ns in [Some(1_000_000), None, Some(1_250_000)] {
            let outcome = response_ns.map_or(Outcome::Lost, |_| Outcome::Reply);
            messages.add(
                &circuit,
                CompletedMessage {
                    outcome,
                    response_ns,
                },
                &mut last_response,
            );
        }
        let definitions = MessageDefinitions {
            messages: &PING_MESSAGES,
            response_times: &PING_RESPONSE_TIME,
            ipdv: &PING_IPDV,
        };
        let page = Page::of(&messages.metrics(definitions)).text();
        let labels = "endpoint=\"b\",kind=\"udp\"";
        for line in [
            format!("neph_ping_messages_total{{{labels},outcome=\"reply\"}} 2"),
            format!("neph_ping_messages_total{{{labels},outcome=\"lost\"}} 1"),
            format!("neph_ping_response_time_seconds_count{{{labels}}} 2"),
            format!("neph_ping_jitter_seconds_count{{{labels}}} 1"),
            format!("neph_ping_jitter_seconds_sum{{{labels}}} 0.00025"),
        ] {
            assert!(
                page.lines().any(|printed_line| printed_line == line),
                "{line}\n{page}"
            );
        }
    }
}
