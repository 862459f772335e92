//! Experiments that run at the same time, mostly one: from their slots to their place in the store.

mod end;
mod intake;
mod sets;

use std::sync::{Arc, Mutex};

use neph_model::{
    EchoTo, Event, EventKind, Experiment, ExperimentOrder, ExperimentResult, ExperimentStatus,
    FlowIndex, FlowTrace, Measure, Order, OrderFailed, OrderResult, Prepared, Progress, Provenance,
    Recorder, Ticket, Update, Warning,
};

pub(crate) use end::{RunEnd, apply_executor_result};

use super::recording::{ExperimentOutcome, Recording};
use super::{Build, Run, RunError, address_of, map_store_error, reflector_of};
use crate::agenda::{AgendaSlot, EndedExperiment};
use crate::alarm_evaluator::AlarmEvaluator;
use crate::meter::{Meter, lock};
use crate::observer::{CampaignEvent, Observer};
use crate::pairs::site_of;
use crate::plan::Limits;
use crate::warnings::{is_expected, warnings};

/// An experiment that is in the store as running.
struct ActiveRun {
    slot: AgendaSlot,
    order: ExperimentOrder,
    recording: Recording,
    meter: Arc<Mutex<Meter>>,
    /// The routes of its flows.
    flow_trace: Option<FlowTrace>,
    /// The endpoint was at another address in an earlier experiment.
    address_warning: Option<Warning>,
    /// How it ended, if it did before it could run.
    end: Option<RunEnd>,
}

impl Run<'_, '_> {
    /// Carries out experiments at the same time, stores and notes each with its outcome.
    pub(super) fn experiments(&mut self, slots: &[AgendaSlot]) -> Result<(), RunError> {
        let orders: Vec<_> = slots.iter().map(|slot| self.order(*slot)).collect();
        let ticket = self.submit(Order::Experiments(orders.clone()));
        self.follow_experiments(ticket, slots, &orders)
    }

    /// Follows an order for experiments to its end, and stores and notes each.
    pub(super) fn follow_experiments(
        &mut self,
        ticket: Ticket,
        slots: &[AgendaSlot],
        orders: &[ExperimentOrder],
    ) -> Result<(), RunError> {
        let mut active_runs: Vec<ActiveRun> = Vec::with_capacity(slots.len());
        let outcome = self.follow_ticket(ticket, |run, update| match update {
            Update::Prepared(results) => {
                active_runs = run.begin_all(slots, orders, results)?;
                Ok(())
            }
            Update::Recorded(experiment, records) => {
                run.record(&mut active_runs, experiment, &records)
            }
            Update::Journalled(experiment, folder) => {
                run.receive(&mut active_runs, experiment, folder)
            }
            Update::Progress(progress) => {
                run.report_progress(&active_runs, progress);
                Ok(())
            }
            Update::Pinged(_) | Update::Sampled(_) | Update::Captured(_) | Update::Done(_) => {
                Ok(())
            }
        })?;
        let mut results = match outcome {
            Ok(OrderResult::Experiments(results)) => results,
            Ok(_) => vec![Err(OrderFailed::another_result("carry experiments out")); slots.len()],
            Err(failure) => vec![Err(failure); slots.len()],
        };
        if active_runs.is_empty() && self.participants.stop.is_set() {
            // Ctrl-C came before their start: they are no attempts.
            return Ok(());
        }
        if active_runs.is_empty() {
            // Nothing was prepared: each is stored as failed.
            let failed = results.iter().map(|result| match result {
                Ok(_) => Err(OrderFailed::another_result("prepare an experiment")),
                Err(failure) => Err(failure.clone()),
            });
            active_runs = self.begin_all(slots, orders, failed.collect())?;
        }
        sets::fail_incomplete_sets(self.plan, &self.matrix, slots, &mut results);
        for (active, result) in active_runs.iter_mut().zip(results) {
            if active.end.is_none() {
                active.end = Some(Self::apply_result(active, result));
            }
        }
        active_runs
            .into_iter()
            .try_for_each(|active| self.finish(active))
    }

    fn begin_all(
        &mut self,
        slots: &[AgendaSlot],
        orders: &[ExperimentOrder],
        prepared: Vec<Result<Prepared, OrderFailed>>,
    ) -> Result<Vec<ActiveRun>, RunError> {
        let experiments = slots.iter().zip(orders).zip(prepared);
        experiments
            .map(|((slot, order), prepared)| self.begin(*slot, order.clone(), prepared))
            .collect()
    }

    /// Shows how far they are.
    fn report_progress(&mut self, active_runs: &[ActiveRun], progress: Progress) {
        let running: Vec<&ActiveRun> = active_runs
            .iter()
            .filter(|active| active.end.is_none())
            .collect();
        let Some(first) = running.first() else { return };
        let observer = &mut *self.participants.observer;
        for active in &running {
            report_alarms(observer, &active.order, &active.meter);
        }
        let figures = running.iter().map(|active| lock(&active.meter).figures());
        observer.report(&CampaignEvent::Running {
            scenario: &first.order.scenario,
            progress,
            figures: &figures.collect::<Vec<_>>(),
        });
    }

    fn begin(
        &mut self,
        slot: AgendaSlot,
        mut order: ExperimentOrder,
        prepared: Result<Prepared, OrderFailed>,
    ) -> Result<ActiveRun, RunError> {
        let mut address_warning = None;
        let end = match prepared {
            Ok(prepared) => {
                apply_prepared(prepared, &mut order.experiment);
                self.reflectors.extend(reflector_of(&order.experiment));
                address_warning = self.note_address(&order);
                None
            }
            Err(failure) => Some(RunEnd::from_failure(&failure)),
        };
        let (progress, remaining) = (self.agenda.progress(), self.time_left());
        let main = order.experiment.flows.first();
        let reflector = main.is_some_and(|flow| flow.reflector);
        let evaluator = AlarmEvaluator::from_rules(self.plan.alarm_rules(&order.scenario));
        let meter = Arc::new(Mutex::new(Meter::new(reflector).with_evaluator(evaluator)));
        let mut recording = if self.participants.executor.gives_journals() {
            Recording::from_journal(order.experiment.id, &meter)
        } else {
            let recorder = self.participants.store.begin(&order.experiment);
            Recording::direct(map_store_error("begin an experiment", recorder)?, &meter)
        };
        self.participants
            .observer
            .report(&CampaignEvent::ExperimentBegun {
                experiment: &order.experiment,
                scenario: &order.scenario,
                progress,
                remaining,
            });
        if let Some(address_warning) = &address_warning {
            let event = Event {
                flow: FlowIndex(0),
                at: 0,
                kind: EventKind::AddressChanged,
                text: address_warning.to_string(),
            };
            let recorded = recording.recorder().event(&event);
            map_store_error("record a changed address", recorded)?;
        }
        Ok(ActiveRun {
            slot,
            order,
            recording,
            meter,
            flow_trace: None,
            address_warning,
            end,
        })
    }

    /// Takes note of the endpoint's address; a warning if it was another one before.
    fn note_address(&mut self, order: &ExperimentOrder) -> Option<Warning> {
        let (endpoint, now) = address_of(&order.experiment, &order.scenario)?;
        let before = self.addresses.insert(endpoint, now)?;
        (before != now).then_some(Warning::AddressChanged { before, now })
    }

    fn finish(&mut self, active_run: ActiveRun) -> Result<(), RunError> {
        let ActiveRun {
            slot,
            mut order,
            mut recording,
            meter,
            flow_trace,
            address_warning,
            end,
        } = active_run;
        map_store_error("record its alarms", recording.recorder().finish())?;
        report_alarms(self.participants.observer, &order, &meter);
        let end = end.unwrap_or_else(|| RunEnd::failed("it was not carried out".to_owned()));
        let meter = lock(&meter);
        let judgement = Judgement {
            measure: &order.scenario.measure(),
            limits: &self.plan.limits,
        };
        apply_meter_results(&mut order.experiment, &end, &meter, judgement);
        let is_permanent = end.is_permanent;
        order.experiment.warnings.extend(address_warning);
        let ended = &mut order.experiment.ended;
        ended.get_or_insert_with(|| self.participants.clock.now());
        let provenance = self.provenance(&order, end, &meter);
        let outcome = ExperimentOutcome {
            experiment: &order.experiment,
            provenance: &provenance,
            flow_trace: flow_trace.as_ref(),
        };
        if self.stored_ids.contains(&order.experiment.id) {
            // The process before this one was ended between storing it and passing that on.
            self.participants.executor.stored(order.experiment.id)?;
            return Ok(());
        }
        recording.finish(self.participants.store, &outcome)?;
        self.participants.executor.stored(order.experiment.id)?;
        if order.experiment.status == ExperimentStatus::Failed {
            let pair = (slot.block, slot.scenario);
            self.last_failures
                .insert(pair, self.participants.clock.now());
        }
        self.agenda.record_end(EndedExperiment {
            is_permanent,
            ..EndedExperiment::from(&order.experiment)
        });
        self.participants
            .observer
            .report(&CampaignEvent::ExperimentEnded {
                experiment: &order.experiment,
                scenario: &order.scenario,
                figures: meter.final_figures(),
                progress: self.agenda.progress(),
            });
        Ok(())
    }

    fn order(&self, slot: AgendaSlot) -> ExperimentOrder {
        let scenario = &self.matrix[slot.scenario as usize];
        let echo_interval = self.plan.icmp_echo_interval;
        ExperimentOrder {
            experiment: Experiment {
                block: slot.block,
                position: slot.position,
                attempt: slot.attempt,
                ..Experiment::new(self.campaign.id, scenario.id, self.participants.clock.now())
            },
            scenario: scenario.clone(),
            site: site_of(self.plan, scenario),
            reflector: self.reflectors.contains(&scenario.endpoint),
            last_address: self.addresses.get(&scenario.endpoint).copied(),
            timeout: self.plan.timeout,
            companion: echo_interval.filter(|_| !scenario.probe().is_echo()),
            pings: self.pings(),
            trace: self.plan.flow_trace,
            start: None,
        }
    }

    /// The plan's destinations of ICMP echo, as orders have them.
    pub(super) fn pings(&self) -> Vec<EchoTo> {
        let pings = self.plan.pings.iter();
        pings.map(|ping| ping.value.clone()).collect()
    }

    /// Keeps what came of an experiment besides its messages.
    fn apply_result(
        active_run: &mut ActiveRun,
        result: Result<ExperimentResult, OrderFailed>,
    ) -> RunEnd {
        match result {
            Ok(result) => {
                if let Some(late_replies) = result.late {
                    lock(&active_run.meter).set_late_replies(late_replies);
                }
                active_run.flow_trace.clone_from(&result.trace);
                apply_executor_result(result, &mut active_run.order.experiment)
            }
            Err(failure) => RunEnd::from_failure(&failure),
        }
    }

    fn provenance(&self, order: &ExperimentOrder, end: RunEnd, meter: &Meter) -> Provenance {
        let plan_hash = &self.campaign.plan_hash;
        Provenance {
            site: order.site.clone(),
            ..provenance(&order.experiment, plan_hash, self.build, end, meter)
        }
    }
}

/// Reports what an experiment's alarms found since the last call.
fn report_alarms(observer: &mut dyn Observer, order: &ExperimentOrder, meter: &Mutex<Meter>) {
    let unreported = lock(meter).evaluator().take_unreported();
    for change in &unreported {
        observer.report(&CampaignEvent::Alarm {
            experiment: &order.experiment,
            scenario: &order.scenario,
            change,
        });
    }
}

/// By what an experiment is judged.
#[derive(Clone, Copy)]
pub(crate) struct Judgement<'a> {
    /// What it measures.
    pub(crate) measure: &'a Measure,
    pub(crate) limits: &'a Limits,
}

/// Fills in what the meter saw, and decides whether it counts as complete.
pub(crate) fn apply_meter_results(
    experiment: &mut Experiment,
    end: &RunEnd,
    meter: &Meter,
    judgement: Judgement<'_>,
) {
    experiment.tally = meter.tally();
    if experiment.fleet.is_some() {
        experiment.response_p50 = meter.figures().median;
    }
    experiment.status = end.status;
    experiment.reason.clone_from(&end.reason);
    let tally = experiment.tally;
    let Judgement { measure, limits } = judgement;
    let is_transfer = measure.is_transfer();
    if end.status == ExperimentStatus::Complete && tally.messages == tally.failed && !is_transfer {
        experiment.status = ExperimentStatus::Failed;
        experiment.reason = Some("no message could be sent".to_owned());
    }
    let meter_warnings = warnings(meter, end.load, limits);
    let unexpected = meter_warnings
        .into_iter()
        .filter(|warning| !is_expected(warning, measure));
    experiment.warnings.extend(unexpected);
}

/// Where an experiment came from, of this host as it is.
pub(crate) fn provenance(
    experiment: &Experiment,
    plan_hash: &str,
    build: &Build,
    end: RunEnd,
    meter: &Meter,
) -> Provenance {
    let lateness = meter.lateness();
    Provenance {
        experiment: experiment.id,
        version: build.version.clone(),
        commit: build.commit.clone(),
        plan_hash: plan_hash.to_owned(),
        site: None,
        host: end.host,
        load: end.load,
        lateness_p50: lateness.map(|(p50, _)| p50),
        lateness_p99: lateness.map(|(_, p99)| p99),
    }
}

fn apply_prepared(prepared: Prepared, experiment: &mut Experiment) {
    experiment.started = prepared.started;
    experiment.flows = prepared.flows;
    experiment.fleet = prepared.fleet;
}
