//! Experiments that run at the same time: which servers answer, what runs, and the result of each.

use neph_model::{ExperimentOrder, ExperimentResult, OrderFailed, Prepared, Update};
use neph_probe::allot_files;

use crate::cores;
use crate::failure::failed;
use crate::flows::{self, Ready};
use crate::lab_handle::{LabHandle, Stay};
use crate::order_context::OrderContext;
use crate::running_experiment::{self, RunningExperiment, SharedContext};
use crate::{reflector_check, reflector_refusals};

pub(crate) mod start;

pub(crate) type PerOrder<T> = Vec<Result<T, OrderFailed>>;

/// Carries them out. Of each, in their order, what came of it.
pub(crate) fn carry_out(
    orders: &[ExperimentOrder],
    context: &OrderContext,
    lab_handle: &LabHandle,
) -> PerOrder<ExperimentResult> {
    let ready = lab_handle.enter(orders).and_then(|stay| {
        let requested = ask_all(orders, context, lab_handle);
        let requested = start::wait_for_start(orders, requested, context.stop());
        Ok((stay, allot_open_files(requested)?))
    });
    let (stay, ready) = match ready {
        Ok(ready) => ready,
        Err(reason) => {
            context.report(Update::Prepared(vec![Err(reason.clone()); orders.len()]));
            return vec![Err(reason); orders.len()];
        }
    };
    let prepared = ready.iter().map(|result| match result {
        Ok(ready) => Ok(prepared_facts(ready)),
        Err(reason) => Err(reason.clone()),
    });
    context.report(Update::Prepared(prepared.collect()));
    run(orders, ready, context, stay)
}

/// Asks all at the same time: one that does not answer makes no other late.
fn ask_all(
    orders: &[ExperimentOrder],
    context: &OrderContext,
    lab_handle: &LabHandle,
) -> PerOrder<Ready> {
    if let [only] = orders {
        return vec![ask(only, context, lab_handle)];
    }
    std::thread::scope(|scope| {
        let preparing: Vec<_> = orders
            .iter()
            .map(|order| scope.spawn(move || ask(order, context, lab_handle)))
            .collect();
        let results = preparing.into_iter().map(|scoped_join_handle| {
            let results = scoped_join_handle.join();
            results.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        results.collect()
    })
}

/// Which server answers, and what is to run.
fn ask(
    order: &ExperimentOrder,
    context: &OrderContext,
    lab_handle: &LabHandle,
) -> Result<Ready, OrderFailed> {
    let site = lab_handle.placement(order.site.as_deref())?;
    let ready = flows::ready(order, site, context.permit())?;
    if ready.transfer.is_some() {
        return Ok(ready);
    }
    let requires_reflector = order.reflector || lab_handle.reflects(ready.specs[0].address);
    reflector_check::check_reflector(&ready.discovery_result, &ready.specs[0], requires_reflector)?;
    Ok(ready)
}

/// Shares the process's open files between the fleets. All begin at the same time, for any duration of
/// the identification of each server.
fn allot_open_files(mut requested: PerOrder<Ready>) -> Result<PerOrder<Ready>, OrderFailed> {
    let ready = requested.iter_mut().flatten();
    let fleets: Vec<_> = ready.filter_map(|ready| ready.fleet.as_mut()).collect();
    allot_files(&mut { fleets }).map_err(|error| failed("begin the fleets", error))?;
    let origin = neph_probe::anchor();
    for ready in requested.iter_mut().flatten() {
        ready.origin = origin;
    }
    Ok(requested)
}

fn prepared_facts(ready: &Ready) -> Prepared {
    Prepared {
        started: ready.origin.wall,
        flows: ready.flows(),
        fleet: ready.fleet.as_ref().map(|spec| spec.fleet.clone()),
    }
}

fn run(
    orders: &[ExperimentOrder],
    ready: PerOrder<Ready>,
    context: &OrderContext,
    stay: Stay<'_>,
) -> PerOrder<ExperimentResult> {
    let (stat_before, links) = (cores::read_stat(), stay.begin());
    let pairs = orders.iter().zip(ready);
    let mut experiments: PerOrder<RunningExperiment<'_>> = pairs
        .map(|(order, ready)| RunningExperiment::begin(order, ready?, context))
        .collect();
    running_experiment::run(&mut experiments, context);
    let link_warnings = stay.warnings(&links);
    let loads = stay.end();
    let shared = SharedContext {
        stat: (stat_before, cores::read_stat()),
        warnings: [link_warnings, loads.warnings].concat(),
        loads: loads.seconds,
    };
    let unanswered = experiments
        .iter_mut()
        .map(|experiment| experiment.as_mut().ok()?.take_earlier_refusals());
    let refusals = reflector_refusals::collect_refusals(&unanswered.collect::<Vec<_>>());
    let ends = experiments.into_iter().zip(refusals);
    ends.map(|(experiment, refusals)| Ok(experiment?.end(&shared, refusals)))
        .collect()
}
