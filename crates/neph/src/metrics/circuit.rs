//! Messages by circuit: outcomes, times of replies, and differences between consecutive replies.

use std::collections::BTreeMap;

use neph_export::{Definition, Histogram, Metric, Value};
use neph_model::{FleetMessage, FleetOutcome, Message, Outcome, Slot, Span};

/// A circuit: site, endpoint and kind of the probe.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Circuit {
    pub(super) site: String,
    pub(super) endpoint: String,
    pub(super) kind: &'static str,
}

impl Circuit {
    pub(super) fn labels(&self) -> [&str; 3] {
        [&self.site, &self.endpoint, self.kind]
    }

    /// The labels, and an additional one.
    pub(super) fn labels_and<'a>(&'a self, more: &'a str) -> [&'a str; 4] {
        [&self.site, &self.endpoint, self.kind, more]
    }
}

/// Outcomes of the messages of a circuit.
#[derive(Clone, Debug, Default)]
struct Ends {
    /// By outcome, in the order of [`Outcome::ALL`]. Outcomes that did not occur are 0, so that
    /// their rate is 0 too.
    outcomes: [u64; Outcome::ALL.len()],
    times: Histogram,
    jitter: Histogram,
}

/// A completed message.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedMessage {
    outcome: Outcome,
    /// The time of its reply, nanoseconds.
    time: Option<u64>,
}

impl From<&Message> for EndedMessage {
    fn from(message: &Message) -> Self {
        let time = message.ledger().map(|ledger| nanos(ledger.response_time()));
        let outcome = message.outcome;
        Self { outcome, time }
    }
}

impl From<&FleetMessage> for EndedMessage {
    fn from(message: &FleetMessage) -> Self {
        let outcome = match message.outcome {
            FleetOutcome::Reply(_) => Outcome::Reply,
            FleetOutcome::Lost => Outcome::Lost,
            FleetOutcome::Failed => Outcome::Failed,
        };
        let time = message.reply().map(|reply| nanos(reply.network()));
        Self { outcome, time }
    }
}

/// The time of a flow's last reply.
pub(super) type LastReply = Option<u64>;

/// The last replies of a fleet, by slot.
#[derive(Clone, Debug, Default)]
pub(super) struct LastReplies(BTreeMap<Slot, (u16, LastReply)>);

impl LastReplies {
    /// The last reply of this message's flow. A new source port in a slot is a new flow, which may
    /// have another path.
    pub(super) fn of(&mut self, message: &FleetMessage) -> &mut LastReply {
        let (port, last) = self.0.entry(message.slot).or_default();
        if *port != message.source_port {
            (*port, *last) = (message.source_port, None);
        }
        last
    }
}

/// The messages of all circuits.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages(BTreeMap<Circuit, Ends>);

/// The exported metrics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) messages: &'static Definition,
    pub(super) times: &'static Definition,
    pub(super) jitter: &'static Definition,
}

impl Messages {
    fn of(&mut self, circuit: &Circuit) -> &mut Ends {
        if !self.0.contains_key(circuit) {
            self.0.insert(circuit.clone(), Ends::default());
        }
        self.0.entry(circuit.clone()).or_default()
    }

    /// Exports the circuit, without a message so far.
    pub(super) fn begin(&mut self, circuit: &Circuit) {
        self.of(circuit);
    }

    /// Adds a message of a flow whose last reply took `last`.
    pub(super) fn add(&mut self, circuit: &Circuit, message: EndedMessage, last: &mut LastReply) {
        let ends = self.of(circuit);
        let outcome_index = Outcome::ALL
            .iter()
            .position(|outcome| *outcome == message.outcome);
        if let Some(count) = outcome_index.and_then(|index| ends.outcomes.get_mut(index)) {
            *count += 1;
        }
        let Some(time) = message.time else { return };
        ends.times.add(time, 1);
        if let Some(before) = last.replace(time) {
            ends.jitter.add(time.abs_diff(before), 1);
        }
    }

    /// The current values.
    pub(super) fn metrics(&self, names: Names) -> [Metric; 3] {
        let [mut messages, mut times, mut jitter] =
            [names.messages, names.times, names.jitter].map(Metric::new);
        for (circuit, ends) in &self.0 {
            for (outcome, count) in Outcome::ALL.iter().zip(ends.outcomes) {
                messages.add(&circuit.labels_and(outcome.name()), Value::Count(count));
            }
            for (metric, histogram) in [(&mut times, &ends.times), (&mut jitter, &ends.jitter)] {
                let value = Value::Histogram(Box::new(histogram.clone()));
                metric.add(&circuit.labels(), value);
            }
        }
        [messages, times, jitter]
    }
}

fn nanos(time: Span) -> u64 {
    u64::try_from(time.nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use neph_export::Page;

    use super::*;
    use crate::metrics::definitions::live::{PING_JITTER, PING_MESSAGES, PING_RESPONSE};

    #[test]
    fn jitter_is_between_replies_and_loss_is_no_reply() {
        let circuit = Circuit {
            site: String::new(),
            endpoint: "b".to_owned(),
            kind: "udp",
        };
        let mut messages = Messages::default();
        let mut last = None;
        for time in [Some(1_000_000), None, Some(1_250_000)] {
            let outcome = time.map_or(Outcome::Lost, |_| Outcome::Reply);
            messages.add(&circuit, EndedMessage { outcome, time }, &mut last);
        }
        let names = Names {
            messages: &PING_MESSAGES,
            times: &PING_RESPONSE,
            jitter: &PING_JITTER,
        };
        let page = Page::of(&messages.metrics(names)).text();
        let labels = "endpoint=\"b\",kind=\"udp\"";
        for line in [
            format!("neph_ping_messages_total{{{labels},outcome=\"reply\"}} 2"),
            format!("neph_ping_messages_total{{{labels},outcome=\"lost\"}} 1"),
            format!("neph_ping_response_time_seconds_count{{{labels}}} 2"),
            format!("neph_ping_jitter_seconds_count{{{labels}}} 1"),
            format!("neph_ping_jitter_seconds_sum{{{labels}}} 0.00025"),
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
    }
}
