//! Metrics of a campaign by site, endpoint and kind, counted when results are stored.
//!
//! Owns the counts. The campaign's thread adds to them between measurements; a reader holds the
//! lock only for a copy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_campaign::{CampaignEvent, CampaignProgress};
use neph_export::{Definition, Metric, MetricSource, Value};
use neph_model::alarm::Change;
use neph_model::{
    Experiment, ExperimentId, FleetMessage, FlowIndex, Message, OrderFailed, Quantity, Scenario,
    Warning,
};

use super::circuit::{Circuit, LastResponseTime, LastResponseTimes, MessageDefinitions, Messages};
use super::definitions::run::{
    ALARM, ALARMS, ENDED_EXPERIMENTS, FLAGS, JITTER, MESSAGES, MISSED_STARTS, PLANNED_EXPERIMENTS,
    RESPONSE_TIME, TRANSFER,
};

const MESSAGE_DEFINITIONS: MessageDefinitions = MessageDefinitions {
    messages: &MESSAGES,
    response_times: &RESPONSE_TIME,
    ipdv: &JITTER,
};

impl Circuit {
    fn of(scenario: &Scenario) -> Self {
        Self {
            site: scenario.site().unwrap_or_default().to_owned(),
            endpoint: scenario.endpoint.clone(),
            probe: scenario.probe().name(),
        }
    }
}

/// The circuits of an experiment: its main flow or fleet, and accompanying flows.
#[derive(Clone, Debug)]
struct Circuits {
    main: Circuit,
    flows: BTreeMap<FlowIndex, Circuit>,
    /// The last replies of its flows.
    last_by_flow: BTreeMap<FlowIndex, LastResponseTime>,
    /// The last replies of its fleet.
    last_by_slot: LastResponseTimes,
}

impl Circuits {
    fn of(experiment: &Experiment, scenario: &Scenario) -> Self {
        let main = Circuit::of(scenario);
        let flows = experiment.flows.iter().map(|flow| {
            let circuit = Circuit {
                site: main.site.clone(),
                endpoint: flow.name.clone(),
                probe: flow.probe.name(),
            };
            (flow.index, circuit)
        });
        let flows = flows.collect();
        Self {
            main,
            flows,
            last_by_flow: BTreeMap::new(),
            last_by_slot: LastResponseTimes::default(),
        }
    }
}

/// The state of an alarm.
#[derive(Clone, Copy, Debug, Default)]
struct AlarmState {
    raise_count: u64,
    /// Experiments in which it is raised.
    raised_count: u64,
}

#[derive(Debug, Default)]
struct Counts {
    progress: Option<CampaignProgress>,
    running: BTreeMap<ExperimentId, Circuits>,
    ended: BTreeMap<(Circuit, &'static str), u64>,
    missed: BTreeMap<Circuit, u64>,
    messages: Messages,
    /// The latest value, by measure and quantity.
    transfers: BTreeMap<(Circuit, String, Quantity), f64>,
    flags: BTreeMap<(Circuit, String), u64>,
    alarms: BTreeMap<(Circuit, String), AlarmState>,
    /// Active alarms by experiment: they end with the experiment.
    active_alarms: BTreeMap<(ExperimentId, String), Circuit>,
}

/// The metrics of a campaign; clones share the same values.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunMetrics(Arc<Mutex<Counts>>);

impl RunMetrics {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub(crate) fn add_event(&self, event: &CampaignEvent<'_>) {
        let mut counts = self.lock();
        match event {
            CampaignEvent::Begun { progress, .. } | CampaignEvent::Ended { progress, .. } => {
                counts.progress = Some(*progress);
            }
            CampaignEvent::ExperimentBegun {
                experiment,
                scenario,
                progress,
                ..
            } => {
                counts.progress = Some(*progress);
                let circuits = Circuits::of(experiment, scenario);
                counts.messages.register(&circuits.main);
                counts.running.insert(experiment.id, circuits);
            }
            CampaignEvent::RecordsStored {
                experiment,
                records,
            } => counts.add(*experiment, &records.messages, &records.fleet),
            CampaignEvent::Received {
                experiment,
                messages,
                fleet,
            } => counts.add(*experiment, messages, fleet),
            CampaignEvent::Alarm {
                experiment,
                scenario,
                change,
            } => counts.add_alarm(experiment.id, Circuit::of(scenario), change),
            CampaignEvent::ExperimentEnded {
                experiment,
                scenario,
                progress,
                ..
            } => {
                counts.progress = Some(*progress);
                counts.end(experiment, scenario);
            }
            _ => {}
        }
    }
}

impl Counts {
    fn add(&mut self, experiment: ExperimentId, messages: &[Message], fleet: &[FleetMessage]) {
        let Some(circuits) = self.running.get_mut(&experiment) else {
            return;
        };
        for message in messages {
            let circuit = circuits.flows.get(&message.flow).unwrap_or(&circuits.main);
            let last_response = circuits.last_by_flow.entry(message.flow).or_default();
            self.messages.add(circuit, message.into(), last_response);
        }
        for message in fleet {
            let last_response = circuits.last_by_slot.of(message);
            self.messages
                .add(&circuits.main, message.into(), last_response);
        }
    }

    fn add_alarm(&mut self, experiment: ExperimentId, circuit: Circuit, change: &Change) {
        let key = (experiment, change.rule.clone());
        let was_raised = self.active_alarms.contains_key(&key);
        let state = self.alarms.entry((circuit.clone(), change.rule.clone()));
        let state = state.or_default();
        if change.is_raised && !was_raised {
            state.raise_count += 1;
            state.raised_count += 1;
            self.active_alarms.insert(key, circuit);
        } else if !change.is_raised && was_raised {
            state.raised_count = state.raised_count.saturating_sub(1);
            self.active_alarms.remove(&key);
        }
    }

    /// Ends its alarms.
    fn end_alarms(&mut self, experiment: ExperimentId) {
        let mut ended_keys = Vec::new();
        for key in self
            .active_alarms
            .keys()
            .filter(|(id, _)| *id == experiment)
        {
            ended_keys.push(key.clone());
        }
        for key in ended_keys {
            if let Some(circuit) = self.active_alarms.remove(&key)
                && let Some(state) = self.alarms.get_mut(&(circuit, key.1))
            {
                state.raised_count = state.raised_count.saturating_sub(1);
            }
        }
    }

    fn end(&mut self, experiment: &Experiment, scenario: &Scenario) {
        let circuit = Circuit::of(scenario);
        self.running.remove(&experiment.id);
        self.end_alarms(experiment.id);
        for warning in &experiment.warnings {
            let key = (circuit.clone(), warning_name(warning));
            *self.flags.entry(key).or_default() += 1;
        }
        let quantities = experiment
            .quantities
            .iter()
            .flat_map(|quantities| &quantities.values);
        for (quantity, value) in quantities {
            let measure = scenario.measure().to_string();
            let key = (circuit.clone(), measure, *quantity);
            self.transfers.insert(key, *value);
        }
        let reason = experiment.reason.as_deref().unwrap_or_default();
        let is_missed = reason.starts_with(OrderFailed::MISSED_START);
        *self.missed.entry(circuit.clone()).or_default() += u64::from(is_missed);
        let key = (circuit, experiment.status.name());
        *self.ended.entry(key).or_default() += 1;
    }
}

/// The JSON name of a flag.
fn warning_name(warning: &Warning) -> String {
    let json = serde_json::to_value(warning).unwrap_or_default();
    let word = json.get("warning").and_then(serde_json::Value::as_str);
    word.unwrap_or("other").to_owned()
}

fn count_metric<L: AsRef<str>>(
    definition: &'static Definition,
    counts: &BTreeMap<(Circuit, L), u64>,
) -> Metric {
    let mut metric = Metric::new(definition);
    for ((circuit, label), count) in counts {
        metric.add(&circuit.labels_with(label.as_ref()), Value::Count(*count));
    }
    metric
}

impl MetricSource for RunMetrics {
    fn snapshot(&self) -> Vec<Metric> {
        let counts = self.lock();
        let mut planned = Metric::new(&PLANNED_EXPERIMENTS);
        if let Some(campaign_progress) = counts.progress {
            for (state, count) in [
                ("complete", campaign_progress.complete),
                ("open", campaign_progress.open),
                ("given_up", campaign_progress.given_up),
            ] {
                planned.add(&[state], Value::Count(count));
            }
        }
        let [messages, response, jitter] = counts.messages.metrics(MESSAGE_DEFINITIONS);
        let mut missed = Metric::new(&MISSED_STARTS);
        for (circuit, count) in &counts.missed {
            missed.add(&circuit.labels(), Value::Count(*count));
        }
        let mut transfer = Metric::new(&TRANSFER);
        for ((circuit, measure, quantity), value) in &counts.transfers {
            let [site, endpoint, _] = circuit.labels();
            let labels = [site, endpoint, measure, quantity.properties().name];
            transfer.add(&labels, Value::Number(*value));
        }
        let [mut alarm, mut alarms] = [&ALARM, &ALARMS].map(Metric::new);
        for ((circuit, rule), state) in &counts.alarms {
            let is_raised = state.raised_count > 0;
            alarm.add(&circuit.labels_with(rule), Value::Count(is_raised.into()));
            alarms.add(&circuit.labels_with(rule), Value::Count(state.raise_count));
        }
        vec![
            planned,
            count_metric(&ENDED_EXPERIMENTS, &counts.ended),
            missed,
            messages,
            response,
            jitter,
            transfer,
            count_metric(&FLAGS, &counts.flags),
            alarm,
            alarms,
        ]
    }
}

#[cfg(test)]
mod tests {
    use neph_export::Page;
    use neph_model::{Marks, Records, Span};

    use super::*;

    fn circuit() -> Circuit {
        Circuit {
            site: "at ams".to_owned(),
            endpoint: "fra".to_owned(),
            probe: "ws",
        }
    }

    fn assert_line(metrics: &RunMetrics, line: &str) {
        let page = Page::of(&metrics.snapshot()).text();
        assert!(
            page.lines().any(|page_line| page_line == line),
            "{line}\n{page}"
        );
    }

    #[test]
    fn each_outcome_has_a_series_as_soon_as_one_message_is_stored() {
        let metrics = RunMetrics::default();
        let id = ExperimentId::new();
        let circuits = Circuits {
            main: circuit(),
            flows: BTreeMap::new(),
            last_by_flow: BTreeMap::new(),
            last_by_slot: LastResponseTimes::default(),
        };
        metrics.lock().running.insert(id, circuits);
        let marks = Marks::intended_at(neph_model::Instant::from_nanos(0));
        let message = Message::new(FlowIndex(0), neph_model::Seq(0), marks);
        let records = Records {
            messages: vec![message],
            ..Records::default()
        };
        let experiment = id;
        metrics.add_event(&CampaignEvent::RecordsStored {
            experiment,
            records: &records,
        });
        let labels = "{site=\"at ams\",endpoint=\"fra\",kind=\"ws\",outcome=";
        for (outcome, count) in [("reply", 0), ("error", 0), ("lost", 0), ("failed", 1)] {
            let name = "neph_run_messages_total";
            assert_line(&metrics, &format!("{name}{labels}\"{outcome}\"}} {count}"));
        }
    }

    #[test]
    fn the_last_transfer_is_exported_by_measure_and_quantity() {
        let metrics = RunMetrics::default();
        let key = (circuit(), "tcp rr".to_owned(), Quantity::TransactionLoss);
        metrics.lock().transfers.insert(key, 0.25);
        let labels = "{site=\"at ams\",endpoint=\"fra\",measure=\"tcp rr\",quantity=\"transaction_loss_percent\"}";
        assert_line(&metrics, &format!("neph_run_transfer{labels} 0.25"));
    }

    #[test]
    fn an_alarm_ends_with_its_experiment_and_stays_counted() {
        let metrics = RunMetrics::default();
        let id = ExperimentId::new();
        let change = |is_raised| Change {
            rule: "round_trip > 2ms p99".to_owned(),
            at: Span::ZERO,
            is_raised,
            above_limit: 1,
            total: 1,
            limit: Span::ZERO,
        };
        let assert_raised = |count: u32| {
            let labels =
                "{site=\"at ams\",endpoint=\"fra\",kind=\"ws\",rule=\"round_trip > 2ms p99\"}";
            assert_line(&metrics, &format!("neph_run_alarm{labels} {count}"));
            assert_line(&metrics, &format!("neph_run_alarms_total{labels} 1"));
        };
        for _ in 0..2 {
            metrics.lock().add_alarm(id, circuit(), &change(true));
            assert_raised(1);
        }
        metrics.lock().end_alarms(id);
        assert_raised(0);
        metrics.lock().add_alarm(id, circuit(), &change(false));
        assert_raised(0);
    }
}
