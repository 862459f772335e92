//! One experiment, from its slot to its place in the store.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use neph_model::{
    Experiment, ExperimentId, ExperimentStatus, HostFacts, Load, ProbeKind, Provenance, Scenario,
    Tally,
};

use super::{Build, Run, RunError, reflector_of, storing};
use crate::agenda::{Past, Slot};
use crate::carrier::{Carried, CarryError, Ending, ExperimentOrder, Prepared};
use crate::meter::{Meter, MeteredRecorder, lock};
use crate::observer::News;
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

impl Run<'_, '_> {
    /// Carries out one experiment, stores it and notes it, whatever became of it.
    pub(super) fn experiment(&mut self, slot: Slot) -> Result<(), RunError> {
        let scenario = self.matrix[slot.scenario as usize].clone();
        let mut order = self.order(slot, &scenario);
        let prepared = self.crew.carrier.prepare(&order);
        let ready = match prepared {
            Ok(prepared) => {
                begun_as(prepared, &mut order.experiment);
                self.reflectors.extend(reflector_of(&order.experiment));
                Ok(())
            }
            Err(CarryError::Store(source)) => {
                let operation = "prepare an experiment";
                return Err(RunError::Store { operation, source });
            }
            Err(failed) => Err(End::failed(failed.to_string())),
        };
        let (standing, left) = (self.agenda.standing(), self.time_left());
        let begun = self.crew.store.begin(&order.experiment);
        let recorder = storing("begin an experiment", begun)?;
        self.crew.observer.tell(&News::ExperimentBegun {
            experiment: &order.experiment,
            scenario: &scenario,
            standing,
            left,
        });
        let reflector = order
            .experiment
            .flows
            .first()
            .is_some_and(|flow| flow.reflector);
        let meter = Arc::new(Mutex::new(Meter::new(reflector)));
        let mut recorder = MeteredRecorder::new(recorder, Arc::clone(&meter));
        let end = match ready {
            Ok(()) => self.carry(&mut order, &mut recorder, &meter)?,
            Err(end) => end,
        };
        let meter = lock(&meter);
        settle(&mut order.experiment, &end, &meter, &self.plan.limits);
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
            scenario: &scenario,
            figures: meter.figures(),
            standing: self.agenda.standing(),
        });
        Ok(())
    }

    fn order(&self, slot: Slot, scenario: &Scenario) -> ExperimentOrder {
        ExperimentOrder {
            experiment: Experiment {
                id: ExperimentId::new(),
                campaign: self.campaign.id,
                scenario: scenario.id,
                block: slot.block,
                position: slot.position,
                attempt: slot.attempt,
                status: ExperimentStatus::Running,
                reason: None,
                started: self.crew.clock.now(),
                ended: None,
                flows: Vec::new(),
                fleet: None,
                tally: Tally::default(),
                warnings: Vec::new(),
                anchors: Vec::new(),
            },
            scenario: scenario.clone(),
            site: site_of(self.plan, scenario),
            reflector: self.reflectors.contains(&scenario.endpoint),
            timeout: self.plan.timeout,
            companion: self
                .plan
                .companion
                .filter(|_| scenario.probe != ProbeKind::Icmp),
            pings: self.plan.pings.clone(),
            trace: self.plan.flow_trace,
            stop: self.crew.stop.clone(),
        }
    }

    /// Has it carried out. Only a recorder's refusal is an error.
    fn carry(
        &mut self,
        order: &mut ExperimentOrder,
        recorder: &mut MeteredRecorder,
        meter: &Mutex<Meter>,
    ) -> Result<End, RunError> {
        let observer = RefCell::new(&mut *self.crew.observer);
        let carried = self.crew.carrier.carry_out(order, recorder, &|progress| {
            let figures = lock(meter).figures();
            observer.borrow_mut().tell(&News::Running {
                scenario: &order.scenario,
                progress,
                figures,
            });
        });
        match carried {
            Ok(carried) => {
                if let Some(late) = carried.late {
                    lock(meter).late_replies(late);
                }
                if let Some(trace) = &carried.trace {
                    let id = order.experiment.id;
                    let added = self.crew.store.add_flow_trace(id, trace);
                    storing("add the routes of flows", added)?;
                }
                Ok(take(carried, &mut order.experiment))
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

/// Fills in what the meter saw, and decides whether it counts as complete.
pub(crate) fn settle(experiment: &mut Experiment, end: &End, meter: &Meter, limits: &Limits) {
    experiment.tally = meter.tally();
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
