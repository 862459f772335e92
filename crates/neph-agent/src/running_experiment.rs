//! An experiment while it runs, alone or with others: starts its flows, takes in their reports, and
//! returns the result.

use std::time::Duration;

use neph_load::Transferred;
use neph_model::{
    Anchor, Ending, ExperimentOrder, ExperimentResult, FlowIndex, FlowRole, HostFacts,
    Identification, Local, OrderFailed, Span, Stop, Transport, Update, Warning,
};
use neph_probe::{FleetRun, Flow as RunningFlow};

use crate::cores::AllowedCores;
use crate::failure::failed;
use crate::flows::{Missing, Ready};
use crate::host_sampler::HostSampler;
use crate::order_context::OrderContext;
use crate::record_collector::RecordCollector;
use crate::reflector_refusals::EarlierRefusals;
use crate::transfer::TransferRun;
use crate::{LoadSample, load_rates, reflector_check, trace};

/// How often reports of the flows are taken in and passed on.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Least duration of a fleet, or a single UDP flow, without any answer. The kernel looks for a
/// neighbour for 3 s, and routes that have just changed settle within it.
const FIRST_ANSWER_TIMEOUT: Span = Span::from_secs(5);

/// One of the experiments that run at the same time.
pub(crate) struct RunningExperiment<'a> {
    order: &'a ExperimentOrder,
    context: &'a OrderContext,
    ready: Ready,
    collector: RecordCollector,
    host: HostFacts,
    /// Which its threads may use.
    cores: AllowedCores,
    stop_on_drop: StopOnDrop,
    /// The flows that run, in the order of their specifications.
    running_flows: Vec<Option<RunningFlow>>,
    fleet: Option<FleetRun>,
    transfer: Option<TransferRun>,
    /// What the transfer came to.
    transfer_result: Option<Transferred>,
    /// Why the main flow broke off.
    fault: Option<String>,
    /// When the last of its flows was over.
    ended: Option<Anchor<Local>>,
}

/// Stops the started flows when it is dropped. If one flow cannot start, the others would otherwise
/// run to the end of their schedules and disturb the next measurement.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// What is the same for all that ran at the same time.
#[derive(Debug, Default)]
pub(crate) struct SharedContext {
    /// The texts of `/proc/stat` before and after.
    pub(crate) stat: (String, String),
    pub(crate) warnings: Vec<Warning>,
    /// What the loads of the lab did.
    pub(crate) loads: Vec<LoadSample>,
}

impl<'a> RunningExperiment<'a> {
    /// Starts what was made ready.
    pub(crate) fn begin(
        order: &'a ExperimentOrder,
        mut ready: Ready,
        context: &'a OrderContext,
    ) -> Result<Self, OrderFailed> {
        let host_sampler = neph_probe::at_site(ready.site.as_ref(), HostSampler::open)
            .map_err(|error| failed("inspect the host", error))?;
        let cores = neph_probe::at_site(ready.site.as_ref(), AllowedCores::of_thread)
            .map_err(|error| failed("inspect the host", error))?;
        let traced_flows = order.trace.map_or(0, |trace| trace.flows);
        let mut collector = RecordCollector::new(ready.origin)
            .with_same_clock(ready.discovery_result.same_clock)
            .with_traced_slots(traced_flows)
            .with_host_sampler(host_sampler);
        for missing in ready.missing.drain(..) {
            collector.add_missing_echo(missing, FlowIndex(0));
        }
        for redirect in ready.redirects.drain(..) {
            collector.add_redirect(redirect);
        }
        let mut experiment = Self {
            order,
            context,
            host: std::mem::take(&mut ready.host),
            ready,
            collector,
            cores,
            stop_on_drop: StopOnDrop(Stop::new()),
            running_flows: Vec::new(),
            fleet: None,
            transfer: None,
            transfer_result: None,
            fault: None,
            ended: None,
        };
        experiment.start()?;
        Ok(experiment)
    }

    fn start(&mut self) -> Result<(), OrderFailed> {
        for spec in &self.ready.specs {
            let stop = self.stop_on_drop.0.clone();
            if let (FlowRole::Main, Some(spec)) = (spec.role, &self.ready.fleet) {
                let run = FleetRun::start(spec.clone(), stop);
                self.fleet = Some(run.map_err(|error| failed("start the fleet", error))?);
                self.running_flows.push(None);
                continue;
            }
            if let (FlowRole::Main, Some(spec)) = (spec.role, &self.ready.transfer) {
                let run = TransferRun::start(spec.clone(), stop);
                self.transfer = Some(run.map_err(|error| failed("start the transfer", error))?);
                self.running_flows.push(None);
                continue;
            }
            let flow = RunningFlow::start(spec.clone(), stop);
            let flow = flow.map_err(|error| failed("start a flow", error))?;
            self.running_flows.push(Some(flow));
        }
        Ok(())
    }

    /// Takes in and reports what arrived since the last time.
    fn step(&mut self) {
        if self.context.stop().is_set() {
            self.stop_on_drop.0.set();
        }
        self.take_fleet();
        self.take_transfer();
        if self.has_no_first_answer() {
            self.stop_on_drop.0.set();
        }
        self.take_flows();
        self.record();
        // What runs alongside the main flow ends with it.
        let runs_other_main_flow = self.fleet.is_some() || self.transfer.is_some();
        if !runs_other_main_flow && self.running_flows[0].is_none() {
            self.stop_on_drop.0.set();
        }
        if !runs_other_main_flow && self.running_flows.iter().all(Option::is_none) {
            self.ended = Some(neph_probe::anchor());
        }
    }

    fn record(&mut self) {
        let records = self.collector.records();
        self.context.record(self.order.experiment.id, records);
    }

    fn take_fleet(&mut self) {
        if let Some(fleet_run) = &self.fleet
            && !self.collector.take_fleet(fleet_run.reports())
            && let Some(fleet_run) = self.fleet.take()
        {
            self.fault = fleet_run.join().err().map(|error| error.to_string());
        }
    }

    fn take_transfer(&mut self) {
        let Some(run) = &self.transfer else { return };
        let at_ns = (neph_probe::now() - self.ready.origin.at).nanos();
        let has_more = run.take_samples(at_ns, self.collector.samples());
        if let Some(run) = self.transfer.take_if(|_| !has_more) {
            match run.join() {
                Ok(result) => {
                    self.fault.clone_from(&result.fault);
                    self.transfer_result = Some(result);
                }
                Err(error) => self.fault = Some(error.to_string()),
            }
        }
    }

    /// Whether the main flow began although its peer had not identified itself.
    fn has_unidentified_peer(&self) -> bool {
        let properties = self.ready.specs[0].target.kind().properties();
        match properties.identification {
            Identification::None => !properties.is_answered_by_kernel,
            Identification::Optional => properties.transport == Transport::Udp,
            Identification::Required => false,
        }
    }

    /// A run without any answer at its beginning would be worth nothing at its end. For a single flow it
    /// applies only if the server did not have to identify itself before.
    fn has_no_first_answer(&self) -> bool {
        if self.ready.transfer.is_some() {
            return false;
        }
        let flows = match &self.ready.fleet {
            Some(spec) => Some(spec.fleet.slots),
            None => self.has_unidentified_peer().then_some(1),
        };
        flows.is_some_and(|flows| self.collector.is_unseen(flows))
            && neph_probe::now() - self.ready.origin.at >= FIRST_ANSWER_TIMEOUT
    }

    fn take_flows(&mut self) {
        for (running_flow, spec) in self.running_flows.iter_mut().zip(&self.ready.specs) {
            if let Some(flow) = running_flow
                && !self.collector.take(flow.reports(), spec.index)
                && let Some(flow) = running_flow.take()
                && let Err(error) = flow.join()
            {
                if spec.role == FlowRole::Main {
                    self.fault = Some(error.to_string());
                } else {
                    let (name, reason) = (spec.name.clone(), error.to_string());
                    self.collector
                        .add_missing_echo(Missing { name, reason }, spec.index);
                }
            }
        }
    }

    const fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// The reflector to ask for refusals by its caps. `None` if all messages were answered, or the run was
    /// interrupted.
    pub(crate) fn take_earlier_refusals(&mut self) -> Option<EarlierRefusals> {
        let is_whole = self.collector.fleet().is_some_and(|tally| tally.is_whole());
        if self.context.stop().is_set() || is_whole {
            return None;
        }
        self.ready.refusals.take()
    }

    /// What came of it, once it is over; `refusal_warnings` are of the caps of its reflector.
    pub(crate) fn end(
        mut self,
        shared: &SharedContext,
        refusal_warnings: Vec<Warning>,
    ) -> ExperimentResult {
        let is_stopped = self.context.stop().is_set();
        let ended = self.ended.unwrap_or_else(neph_probe::anchor);
        let load_samples = load_rates::samples(&shared.loads, self.ready.origin.at, ended.at);
        self.collector.samples().extend(load_samples);
        let ending = match (self.fault.take(), is_stopped) {
            (_, true) if self.ready.transfer.is_some() => Ending::Interrupted,
            (Some(fault), _) => Ending::Failed(fault),
            (None, true) => Ending::Interrupted,
            (None, false) if self.transfer_result.is_some() => Ending::Complete,
            (None, false) => self.collector.verdict(),
        };
        let mut warnings = self.collector.warnings();
        warnings.extend(refusal_warnings);
        if self.ready.transfer.is_none() {
            warnings.extend(reflector_check::sizes_warning(&self.ready.specs[0]));
        }
        warnings.extend(shared.warnings.iter().cloned());
        self.host.congestion_control = self.collector.congestion();
        let mut flows = self.ready.flows();
        self.collector.place_sources(&mut flows);
        let trace = match ending {
            Ending::Complete => {
                let stop = self.context.stop();
                trace::trace_routes(self.order, &self.ready, &mut self.collector, stop)
            }
            Ending::Interrupted | Ending::Failed(_) => None,
        };
        self.record();
        ExperimentResult {
            ending,
            ended: ended.wall,
            flows,
            trace,
            quantities: self.transfer_result.take().map(|result| result.quantities),
            late: self.collector.fleet().map(|tally| tally.late),
            anchors: self.collector.into_anchors(),
            host: self.host,
            load: self.cores.load((&shared.stat.0, &shared.stat.1)),
            warnings,
        }
    }
}

/// Runs all to their ends: until the main flows' schedules are over, or they are stopped. One that
/// could not begin is left alone.
pub(crate) fn run(
    experiments: &mut [Result<RunningExperiment<'_>, OrderFailed>],
    context: &OrderContext,
) {
    loop {
        for experiment in experiments.iter_mut().flatten() {
            if !experiment.is_over() {
                experiment.step();
            }
        }
        let Some(first) = experiments.iter().flatten().next() else {
            return;
        };
        context.report(Update::Progress(first.ready.progress(neph_probe::now())));
        if experiments.iter().flatten().all(RunningExperiment::is_over) {
            return;
        }
        neph_probe::nap(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests;
