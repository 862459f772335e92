//! The alarms of one experiment: which of its messages a plan's rule counts, and as of when.
//!
//! Owns the names of the subjects of a plan's rules. Each experiment begins with empty counters: values
//! under another load or in another block do not apply to it.

use neph_model::alarm::{Alarm, Change, DataTimeAlarm, Rule};
use neph_model::{FleetMessage, FleetOutcome, FlowIndex, Instant, Local, Message, Outcome, Span};

/// What a plan's alarm is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmQuantity {
    /// From the scheduled send time to the reply, as in the running figures; for a fleet, the network's
    /// round trip.
    RoundTrip,
    /// The network's round trip by kernel timestamps; with the peer's time where the peer gives none. A
    /// reply without them, or with some of the peer's only, does not count.
    Network,
}

/// As plans call it.
pub(crate) const SUBJECTS: [(&str, AlarmQuantity); 2] = [
    ("round_trip", AlarmQuantity::RoundTrip),
    ("network", AlarmQuantity::Network),
];

/// An experiment's alarms, and what they found.
#[derive(Debug, Default)]
pub(crate) struct AlarmEvaluator {
    alarms: Vec<DataTimeAlarm<AlarmQuantity>>,
    changes: Vec<Change>,
    /// So many of `changes` are in the store.
    recorded_count: usize,
    /// How many of `changes` were reported.
    reported_count: usize,
}

impl AlarmEvaluator {
    pub(crate) fn from_rules(rules: &[Rule<AlarmQuantity>]) -> Self {
        let alarms = rules
            .iter()
            .cloned()
            .map(Alarm::new)
            .map(DataTimeAlarm::new);
        Self {
            alarms: alarms.collect(),
            ..Self::default()
        }
    }

    /// Counts a message of the main flow. One that was not sent, or not answered as expected, has no
    /// response time and contains nothing about the network.
    pub(crate) fn record_message(&mut self, message: &Message) {
        if message.flow != FlowIndex(0) {
            return;
        }
        let marks = &message.marks;
        let sent = marks.first_action().unwrap_or(marks.intended);
        match message.outcome {
            Outcome::Reply => {
                self.count(marks.app_recv.unwrap_or(sent), |quantity| match quantity {
                    AlarmQuantity::RoundTrip => {
                        message.ledger().map(|ledger| ledger.response_time())
                    }
                    AlarmQuantity::Network => marks
                        .network_round_trip()
                        .or_else(|| marks.network_and_peer_round_trip()),
                });
            }
            Outcome::Lost => self.count_lost(sent, |_| true),
            Outcome::Error | Outcome::Failed => {
                self.count_lost(sent, |quantity| quantity == AlarmQuantity::RoundTrip);
            }
        }
    }

    pub(crate) fn record_fleet(&mut self, messages: &[FleetMessage]) {
        if self.alarms.is_empty() {
            return;
        }
        for message in messages {
            match &message.outcome {
                FleetOutcome::Reply(reply) => {
                    let network = reply.network();
                    self.count(message.sent, |_| Some(network));
                }
                FleetOutcome::Lost => self.count_lost(message.sent, |_| true),
                FleetOutcome::Failed => {}
            }
        }
    }

    fn count(&mut self, at: Instant<Local>, latency: impl Fn(AlarmQuantity) -> Option<Span>) {
        for alarm in &mut self.alarms {
            if let Some(latency) = latency(alarm.alarm().rule().subject) {
                self.changes
                    .extend(alarm.record(since_start(at), Some(latency)));
            }
        }
    }

    /// That it is lost is known later; as of when it was sent it cannot be ahead of what comes then.
    fn count_lost(&mut self, sent: Instant<Local>, applies_to: impl Fn(AlarmQuantity) -> bool) {
        let alarms = self.alarms.iter_mut();
        for alarm in alarms.filter(|alarm| applies_to(alarm.alarm().rule().subject)) {
            self.changes.extend(alarm.record(since_start(sent), None));
        }
    }

    /// No message comes any more.
    pub(crate) fn finish(&mut self) {
        let last_changes = self.alarms.iter_mut().filter_map(DataTimeAlarm::finish);
        self.changes.extend(last_changes);
    }

    /// What was found since the last call, to be recorded.
    pub(crate) fn take_unrecorded(&mut self) -> Vec<Change> {
        let from = std::mem::replace(&mut self.recorded_count, self.changes.len());
        self.changes[from..].to_vec()
    }

    /// What was recorded since the last call, to be reported.
    pub(crate) fn take_unreported(&mut self) -> Vec<Change> {
        let from = std::mem::replace(&mut self.reported_count, self.recorded_count);
        self.changes[from..self.recorded_count].to_vec()
    }
}

/// Timestamps of an experiment count from its start.
fn since_start(at: Instant<Local>) -> Span {
    at - Instant::from_nanos(0)
}

#[cfg(test)]
mod tests {
    use neph_model::{FleetReply, Marks, ReadBy, Seq, Slot};

    use super::*;

    fn rules(texts: &[&str]) -> Vec<Rule<AlarmQuantity>> {
        let parse = |text: &&str| crate::alarm::parse(text, &SUBJECTS).expect("a rule");
        texts.iter().map(parse).collect()
    }

    /// One each 100 ms, with a reply after 1 ms; from 10 s to 20 s after `slow_latency_ms`, or none.
    fn messages(slow_latency_ms: Option<i64>) -> Vec<Message> {
        let message = |seq: u64| {
            let at = i64::try_from(seq).expect("few") * 100;
            let mut marks = Marks::intended_at(Instant::from_nanos(at * 1_000_000));
            let after = |millis: i64| Some(marks.intended + Span::from_millis(millis));
            marks.app_send = Some(marks.intended);
            let is_slow = (10_000..20_000).contains(&at);
            let latency = if is_slow { slow_latency_ms } else { Some(1) };
            marks.app_recv = latency.and_then(after);
            let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
            message.outcome = latency.map_or(Outcome::Lost, |_| Outcome::Reply);
            message
        };
        (0..400).map(message).collect()
    }

    fn reported_changes(evaluator: &mut AlarmEvaluator) -> Vec<(bool, i64)> {
        let changes = evaluator.take_unreported().into_iter();
        changes
            .map(|change| (change.is_raised, change.at.nanos() / 1_000_000_000))
            .collect()
    }

    #[test]
    fn a_delay_or_loss_of_some_seconds_raises_and_clears_an_alarm() {
        for slow_latency_ms in [Some(30), None] {
            let rules = rules(&["round_trip > 20ms p90 for 3s"]);
            let mut evaluator = AlarmEvaluator::from_rules(&rules);
            for message in messages(slow_latency_ms) {
                evaluator.record_message(&message);
            }
            evaluator.finish();
            assert!(
                reported_changes(&mut evaluator).is_empty(),
                "nothing is reported unrecorded"
            );
            assert_eq!(evaluator.take_unrecorded().len(), 2);
            assert!(evaluator.take_unrecorded().is_empty());
            // p90 needs 29: stretches of 3 s, and that from 9 s on is over the limit already.
            assert_eq!(reported_changes(&mut evaluator), [(true, 12), (false, 24)]);
            assert!(reported_changes(&mut evaluator).is_empty());
        }
    }

    #[test]
    fn unsent_or_unexpected_messages_count_in_no_alarm_quantity() {
        for outcome in [Outcome::Failed, Outcome::Error] {
            let mut evaluator =
                AlarmEvaluator::from_rules(&rules(&["network > 1us p50", "round_trip > 1s p50"]));
            for mut message in messages(Some(30)) {
                message.outcome = outcome;
                evaluator.record_message(&message);
            }
            evaluator.finish();
            let rules = evaluator
                .take_unrecorded()
                .into_iter()
                .map(|change| change.rule);
            assert_eq!(rules.collect::<Vec<_>>(), ["round_trip > 1s p50"]);
        }
    }

    #[test]
    fn alarms_ignore_other_flows_and_messages_without_timestamps() {
        let mut evaluator =
            AlarmEvaluator::from_rules(&rules(&["network > 1us p50", "round_trip > 1us p50"]));
        for mut message in messages(Some(30)) {
            message.flow = FlowIndex(1);
            evaluator.record_message(&message);
        }
        evaluator.finish();
        assert!(evaluator.take_unrecorded().is_empty());
        // Without timestamps at the interface there is no round trip of the network.
        for message in messages(Some(30)) {
            evaluator.record_message(&message);
        }
        let rules: Vec<String> = evaluator
            .take_unrecorded()
            .into_iter()
            .map(|change| change.rule)
            .collect();
        assert_eq!(rules, ["round_trip > 1us p50"]);
    }

    #[test]
    fn fleet_alarms_count_slow_round_trips_and_losses() {
        let mut evaluator = AlarmEvaluator::from_rules(&rules(&["round_trip > 20ms p50"]));
        let message = |seq: u32, outcome| FleetMessage {
            slot: Slot(seq % 8),
            source_port: 9,
            seq,
            sent: Instant::from_nanos(i64::from(seq) * 100_000_000),
            late: Span::ZERO,
            outcome,
        };
        let slow = FleetReply {
            round_trip: Span::from_millis(30),
            read_by: ReadBy::Kernel,
            peer_report: None,
            ttl: None,
            copies: 0,
            answer: None,
        };
        let kinds = [FleetOutcome::Reply(slow), FleetOutcome::Lost];
        let messages: Vec<FleetMessage> = (0..20_u32)
            .map(|seq| message(seq, kinds[(seq % 2) as usize]))
            .collect();
        evaluator.record_fleet(&messages);
        evaluator.finish();
        assert_eq!(evaluator.take_unrecorded().len(), 1);
    }
}
