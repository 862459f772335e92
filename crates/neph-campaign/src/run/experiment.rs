//! Experiments that run at the same time, mostly one: from their slots to their place in the store.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use neph_model::{
    Event, EventKind, Experiment, ExperimentStatus, FlowIndex, HostFacts, Load, Provenance, Warning,
};

use neph_store::Recorder;

use super::{Build, Run, RunError, address_of, reflector_of, storing};
use crate::agenda::{Past, Slot};
use crate::carrier::{Carried, CarryError, Ending, ExperimentOrder, Part, Prepared};
use crate::judge::Judge;
use crate::meter::{Meter, MeteredRecorder, lock};
use crate::observer::{News, Observer};
use crate::pairs::site_of;
use crate::plan::Limits;
use crate::warnings::warnings;

/// How it ended, as far as the store cares.
pub(crate) struct End {
    pub(crate) status: ExperimentStatus,
    reason: Option<String>,
    host: HostFacts,
    load: Load,
}

impl End {
    fn failed(reason: String) -> Self {
        Self {
            status: ExperimentStatus::Failed,
            reason: Some(reason),
            host: HostFacts::default(),
            load: Load::default(),
        }
    }
}

/// An experiment that is in the store as running.
struct Begun {
    slot: Slot,
    order: ExperimentOrder,
    recorder: MeteredRecorder,
    meter: Arc<Mutex<Meter>>,
    /// The endpoint was at another address in an earlier experiment.
    moved: Option<Warning>,
    /// How it ended, if it did before it could run.
    end: Option<End>,
}

impl Run<'_, '_> {
    /// Carries out experiments at the same time, stores and notes each, whatever became of it.
    pub(super) fn experiments(&mut self, slots: &[Slot]) -> Result<(), RunError> {
        let orders = slots.iter().map(|slot| self.order(*slot));
        let orders: Vec<ExperimentOrder> = orders.collect();
        let prepared = self
            .crew
            .carrier
            .prepare(&orders.iter().collect::<Vec<_>>());
        let mut begun = Vec::with_capacity(slots.len());
        for ((slot, order), prepared) in slots.iter().zip(orders).zip(prepared) {
            begun.push(self.begin(*slot, order, prepared)?);
        }
        self.carry(&mut begun)?;
        begun.into_iter().try_for_each(|one| self.finish(one))
    }

    fn begin(
        &mut self,
        slot: Slot,
        mut order: ExperimentOrder,
        prepared: Result<Prepared, CarryError>,
    ) -> Result<Begun, RunError> {
        let mut moved = None;
        let end = match prepared {
            Ok(prepared) => {
                begun_as(prepared, &mut order.experiment);
                self.reflectors.extend(reflector_of(&order.experiment));
                moved = self.address(&order);
                None
            }
            Err(CarryError::Store(source)) => {
                let operation = "prepare an experiment";
                return Err(RunError::Store { operation, source });
            }
            Err(failed) => Some(End::failed(failed.to_string())),
        };
        let (standing, left) = (self.agenda.standing(), self.time_left());
        let begun = self.crew.store.begin(&order.experiment);
        let recorder = storing("begin an experiment", begun)?;
        self.crew.observer.tell(&News::ExperimentBegun {
            experiment: &order.experiment,
            scenario: &order.scenario,
            standing,
            left,
        });
        let main = order.experiment.flows.first();
        let reflector = main.is_some_and(|flow| flow.reflector);
        let judge = Judge::by(self.plan.alarms_of(&order.scenario));
        let meter = Arc::new(Mutex::new(Meter::new(reflector).judging(judge)));
        let mut recorder = MeteredRecorder::new(recorder, Arc::clone(&meter));
        if let Some(moved) = &moved {
            let event = Event {
                flow: FlowIndex(0),
                at: 0,
                kind: EventKind::AddressChanged,
                text: moved.to_string(),
            };
            storing("record a changed address", recorder.event(&event))?;
        }
        Ok(Begun {
            slot,
            order,
            recorder,
            meter,
            moved,
            end,
        })
    }

    /// Takes note of the endpoint's address; a warning if it was another one before.
    fn address(&mut self, order: &ExperimentOrder) -> Option<Warning> {
        let (endpoint, now) = address_of(&order.experiment, &order.scenario)?;
        let before = self.addresses.insert(endpoint, now)?;
        (before != now).then_some(Warning::AddressChanged { before, now })
    }

    fn finish(&mut self, begun: Begun) -> Result<(), RunError> {
        let Begun {
            slot,
            mut order,
            mut recorder,
            meter,
            moved,
            end,
        } = begun;
        storing("record its alarms", recorder.finish())?;
        tell_alarms(self.crew.observer, &order, &meter);
        let end = end.unwrap_or_else(|| End::failed("it was not carried out".to_owned()));
        let meter = lock(&meter);
        settle(&mut order.experiment, &end, &meter, &self.plan.limits);
        order.experiment.warnings.extend(moved);
        let ended = &mut order.experiment.ended;
        ended.get_or_insert_with(|| self.crew.clock.now());
        let provenance = self.provenance(&order, end, &meter);
        let inner = recorder.into_inner();
        let finished = self
            .crew
            .store
            .finish(inner, &order.experiment, &provenance);
        storing("finish an experiment", finished)?;
        if order.experiment.status == ExperimentStatus::Failed {
            let pair = (slot.block, slot.scenario);
            self.failed.insert(pair, self.crew.clock.now());
        }
        self.agenda.note(Past::from(&order.experiment));
        self.crew.observer.tell(&News::ExperimentEnded {
            experiment: &order.experiment,
            scenario: &order.scenario,
            figures: meter.figures(),
            standing: self.agenda.standing(),
        });
        Ok(())
    }

    fn order(&self, slot: Slot) -> ExperimentOrder {
        let scenario = &self.matrix[slot.scenario as usize];
        ExperimentOrder {
            experiment: Experiment {
                block: slot.block,
                position: slot.position,
                attempt: slot.attempt,
                ..Experiment::begun(self.campaign.id, scenario.id, self.crew.clock.now())
            },
            scenario: scenario.clone(),
            site: site_of(self.plan, scenario),
            reflector: self.reflectors.contains(&scenario.endpoint),
            last_address: self.addresses.get(&scenario.endpoint).copied(),
            timeout: self.plan.timeout,
            companion: self.plan.companion.filter(|_| !scenario.probe.is_echo()),
            pings: self.plan.pings.clone(),
            trace: self.plan.flow_trace,
            stop: self.crew.stop.clone(),
        }
    }

    /// Has those carried out that could begin. Only a recorder's refusal is an error.
    fn carry(&mut self, begun: &mut [Begun]) -> Result<(), RunError> {
        let mut ready: Vec<&mut Begun> = begun.iter_mut().filter(|one| one.end.is_none()).collect();
        let Some(first) = ready.first().map(|one| one.order.scenario.clone()) else {
            return Ok(());
        };
        let observer = RefCell::new(&mut *self.crew.observer);
        let (metered, mut parts): (Vec<_>, Vec<Part<'_>>) = ready
            .iter_mut()
            .map(|one| {
                let (order, recorder) = (&one.order, &mut one.recorder);
                ((order, &one.meter), Part { order, recorder })
            })
            .unzip();
        let carried = self.crew.carrier.carry_out(&mut parts, &|progress| {
            let mut observer = observer.borrow_mut();
            for (order, meter) in &metered {
                tell_alarms(&mut **observer, order, meter);
            }
            let figures: Vec<_> = metered
                .iter()
                .map(|(_, meter)| lock(meter).figures())
                .collect();
            observer.tell(&News::Running {
                scenario: &first,
                progress,
                figures: &figures,
            });
        });
        for (one, carried) in ready.into_iter().zip(carried) {
            one.end = Some(self.came_of(one, carried)?);
        }
        Ok(())
    }

    /// Keeps what came of an experiment beside its messages.
    fn came_of(
        &mut self,
        begun: &mut Begun,
        carried: Result<Carried, CarryError>,
    ) -> Result<End, RunError> {
        match carried {
            Ok(carried) => {
                if let Some(late) = carried.late {
                    lock(&begun.meter).late_replies(late);
                }
                let experiment = &mut begun.order.experiment;
                if let Some(trace) = &carried.trace {
                    let added = self.crew.store.add_flow_trace(experiment.id, trace);
                    storing("add the routes of flows", added)?;
                }
                Ok(take(carried, experiment))
            }
            Err(CarryError::Store(source)) => {
                let operation = "record what is measured";
                Err(RunError::Store { operation, source })
            }
            Err(failed) => Ok(End::failed(failed.to_string())),
        }
    }

    fn provenance(&self, order: &ExperimentOrder, end: End, meter: &Meter) -> Provenance {
        let plan_hash = &self.campaign.plan_hash;
        Provenance {
            site: order.site.clone(),
            ..provenance(&order.experiment, plan_hash, self.build, end, meter)
        }
    }
}

/// Tells what an experiment's alarms found since the last time.
fn tell_alarms(observer: &mut dyn Observer, order: &ExperimentOrder, meter: &Mutex<Meter>) {
    let untold = lock(meter).judge().untold();
    for change in &untold {
        observer.tell(&News::Alarm {
            experiment: &order.experiment,
            scenario: &order.scenario,
            change,
        });
    }
}

/// Fills in what the meter saw, and decides whether it counts as complete.
pub(crate) fn settle(experiment: &mut Experiment, end: &End, meter: &Meter, limits: &Limits) {
    experiment.tally = meter.tally();
    if experiment.fleet.is_some() {
        experiment.response_p50 = meter.figures().median;
    }
    experiment.status = end.status;
    experiment.reason.clone_from(&end.reason);
    let tally = experiment.tally;
    if end.status == ExperimentStatus::Complete && tally.messages == tally.failed {
        experiment.status = ExperimentStatus::Failed;
        experiment.reason = Some("no message could be sent".to_owned());
    }
    let measured = warnings(meter, &end.load, limits);
    experiment.warnings.extend(measured);
}

/// Where an experiment came from, of this host as it is.
pub(crate) fn provenance(
    experiment: &Experiment,
    plan_hash: &str,
    build: &Build,
    end: End,
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

fn begun_as(prepared: Prepared, experiment: &mut Experiment) {
    experiment.started = prepared.started;
    experiment.flows = prepared.flows;
    experiment.fleet = prepared.fleet;
}

/// What the carrier tells becomes part of the experiment.
pub(crate) fn take(carried: Carried, experiment: &mut Experiment) -> End {
    experiment.ended = Some(carried.ended);
    experiment.flows = carried.flows;
    experiment.anchors = carried.anchors;
    experiment.warnings = carried.warnings;
    let (status, reason) = match carried.ending {
        Ending::Complete => (ExperimentStatus::Complete, None),
        Ending::Interrupted => (
            ExperimentStatus::Interrupted,
            Some("stopped by the user".to_owned()),
        ),
        Ending::Failed(reason) => (ExperimentStatus::Failed, Some(reason)),
    };
    End {
        status,
        reason,
        host: carried.host,
        load: carried.load,
    }
}
