//! The carrier that measures from this process: on this host, or in a lab site's namespace.
//!
//! Turns orders into flows of `neph-probe`, and what they tell into what the recorder keeps. Own
//! marks are stored relative to the experiment's start.

mod fleet;
mod flows;
pub(crate) mod intake;
mod links;
mod peer;
mod trace;

use std::fmt::Display;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use neph_model::{BitRate, FlowIndex, FlowRole, HostFacts, Throughput, Traceroute};
use neph_probe::{
    FleetRun, Flow as Running, IpVersion, Iperf3Spec, Place, ProbeError, Stop, Target, Transfer,
    UploadSpec,
};
use neph_store::Recorder;

use crate::carrier::{
    Carried, Carrier, CarryError, Ending, ExperimentOrder, Prepared, Progress, ThroughputOrder,
    TracerouteOrder,
};
use crate::plan::ThroughputTool;
use crate::provenance::{self, CpuTimes};
use flows::{Missing, Ready};
use intake::Intake;
pub use links::LinkCount;

/// How often what the flows told is taken in, recorded and shown.
const TICK: Duration = Duration::from_millis(50);

/// The lab that a carrier measures in, as far as the carrier needs to know it.
pub trait Ground: std::fmt::Debug + Send {
    /// Where what measures at a site runs: in its network namespace, within its limits.
    fn place(&self, site: &str) -> Option<Place>;
    /// Whether one of the lab's own reflectors listens there.
    fn reflects(&self, address: SocketAddr) -> bool;
    /// An experiment begins: what the lab does at given times counts from now.
    fn cue(&self);
    /// What each direction of each link did so far, in the same order each time.
    fn links(&self) -> Vec<LinkCount>;
}

/// Measures from this process.
#[derive(Debug, Default)]
pub struct LocalCarrier {
    lab: Option<Box<dyn Ground>>,
    ready: Option<Ready>,
}

impl LocalCarrier {
    /// A carrier for this host alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// A carrier for the sites of a lab.
    pub fn in_lab(lab: Box<dyn Ground>) -> Self {
        Self {
            lab: Some(lab),
            ready: None,
        }
    }

    /// The place of a site that an order names.
    fn place(&self, site: Option<&str>) -> Result<Option<Place>, CarryError> {
        let Some(site) = site else {
            return Ok(None);
        };
        let known = self.lab.as_ref().and_then(|lab| lab.place(site));
        known.map(Some).ok_or_else(|| {
            failed(
                format!("find site '{site}'"),
                "there is no lab with such a site",
            )
        })
    }

    fn links(&self) -> Vec<LinkCount> {
        self.lab.as_ref().map_or_else(Vec::new, |lab| lab.links())
    }
}

fn failed(operation: impl Into<String>, reason: impl Display) -> CarryError {
    CarryError::Failed {
        operation: operation.into(),
        reason: format!("{reason}"),
    }
}

impl Carrier for LocalCarrier {
    fn prepare(&mut self, order: &ExperimentOrder) -> Result<Prepared, CarryError> {
        let site = self.place(order.site.as_deref())?;
        let mut ready = flows::ready(order, site)?;
        let address = ready.specs[0].address;
        let own = self.lab.as_ref().is_some_and(|lab| lab.reflects(address));
        let expected = order.reflector || own;
        peer::judge(&ready.found, &ready.specs[0], expected)?;
        ready.origin = neph_probe::anchor();
        let prepared = Prepared {
            started: ready.origin.wall,
            flows: ready.flows(),
            fleet: ready.fleet.as_ref().map(|spec| spec.fleet.clone()),
        };
        self.ready = Some(ready);
        Ok(prepared)
    }

    fn carry_out(
        &mut self,
        order: &ExperimentOrder,
        recorder: &mut dyn Recorder,
        progress: &dyn Fn(Progress),
    ) -> Result<Carried, CarryError> {
        let mut ready = self
            .ready
            .take()
            .ok_or_else(|| failed("carry the experiment out", "it was not prepared"))?;
        let before = CpuTimes::now();
        let links_before = self.links();
        let mut host =
            host_of(ready.site.as_ref()).map_err(|error| failed("look at the host", error))?;
        if let Some(lab) = &self.lab {
            lab.cue();
        }
        let traced = order.trace.map_or(0, |trace| trace.flows);
        let mut intake = Intake::new(ready.origin).tracing(traced);
        for missing in ready.missing.drain(..) {
            intake.miss(missing, FlowIndex(0));
        }
        let ending = run(order, &ready, (&mut intake, recorder), progress)?;
        let load = match (before, CpuTimes::now()) {
            (Some(before), Some(after)) => before.load_until(after, provenance::load_average()),
            _ => neph_model::Load::default(),
        };
        let mut warnings = intake.warnings();
        warnings.extend(peer::sizes_not_applied(&ready.specs[0]));
        warnings.extend(links::warnings(&links_before, &self.links()));
        host.congestion_control = intake.congestion();
        let mut flows = ready.flows();
        intake.place_sources(&mut flows);
        let ended = neph_probe::anchor().wall;
        let trace = match ending {
            Ending::Complete => trace::routes(order, &ready, (&mut intake, recorder))?,
            Ending::Interrupted | Ending::Failed(_) => None,
        };
        Ok(Carried {
            ending,
            ended,
            flows,
            trace,
            late: intake.fleet().map(|tally| tally.late),
            anchors: intake.into_anchors(),
            host,
            load,
            warnings,
        })
    }

    fn check_throughput(&mut self, order: &ThroughputOrder) -> Throughput {
        let started = neph_probe::anchor().wall;
        match self.transfer(order) {
            Ok(transfer) => transfer.into_throughput(order.block, &order.server.name),
            Err(error) => Throughput {
                block: order.block,
                endpoint: order.server.name.clone(),
                site: None,
                tool: order.tool.name().to_owned(),
                started,
                seconds: Vec::new(),
                goodput: BitRate(0),
                failure: Some(error.to_string()),
            },
        }
    }

    fn trace_route(&mut self, order: &TracerouteOrder) -> Traceroute {
        flows::trace(order, self.place(order.site.as_deref()))
    }
}

/// The host as it is where a site's flows are sent from.
pub(crate) fn host_of(site: Option<&Place>) -> Result<HostFacts, ProbeError> {
    let mut host = neph_probe::at_site(site, || {
        provenance::host_facts(neph_probe::clock_sync(), neph_probe::offloads())
    })?;
    host.sysctls.extend(neph_probe::core_wake());
    Ok(host)
}

impl LocalCarrier {
    fn transfer(&self, order: &ThroughputOrder) -> Result<Transfer, CarryError> {
        let site = self.place(order.site.as_deref())?;
        let stop = Stop::from(order.stop.shared());
        let (host, port) = (order.server.host.as_str(), order.server.port);
        let operation = || format!("transfer to {host} port {port}");
        match order.tool {
            ThroughputTool::Neph => {
                let target = Target::tcp(host, port)
                    .map_err(|error| failed(format!("find {host}"), error))?;
                let address = target
                    .resolve(IpVersion::Any)
                    .map_err(|error| failed(operation(), error))?;
                let duration = order.duration;
                let spec = UploadSpec {
                    target,
                    address,
                    duration,
                    congestion: None,
                    site,
                };
                neph_probe::upload(&spec, &stop).map_err(|error| failed(operation(), error))
            }
            ThroughputTool::Iperf3 => {
                let spec = Iperf3Spec {
                    host: host.to_owned(),
                    port,
                    duration: order.duration,
                    congestion: None,
                    site,
                };
                neph_probe::iperf3(&spec, &stop).map_err(|error| failed(operation(), error))
            }
        }
    }
}

/// Runs what was made ready until the main flow's schedule is over, or it is stopped.
fn run(
    order: &ExperimentOrder,
    ready: &Ready,
    (intake, recorder): (&mut Intake, &mut dyn Recorder),
    progress: &dyn Fn(Progress),
) -> Result<Ending, CarryError> {
    let stop = Stop::new();
    let mut running: Vec<Option<Running>> = Vec::new();
    let mut fleet = None;
    for spec in &ready.specs {
        if let (FlowRole::Main, Some(spec)) = (spec.role, &ready.fleet) {
            let run = FleetRun::start(spec.clone(), stop.clone());
            fleet = Some(run.map_err(|error| failed("start the fleet", error))?);
            running.push(None);
            continue;
        }
        let flow = Running::start(spec.clone(), stop.clone());
        running.push(Some(flow.map_err(|error| failed("start a flow", error))?));
    }
    let mut fault: Option<ProbeError> = None;
    loop {
        if order.stop.is_set() {
            stop.set();
        }
        if let Some(one) = &fleet
            && !intake.take_fleet(one.reports())
            && let Some(one) = fleet.take()
        {
            fault = one.join().err();
        }
        for (slot, spec) in running.iter_mut().zip(&ready.specs) {
            if let Some(flow) = slot
                && !intake.take(flow.reports(), spec.index)
                && let Some(flow) = slot.take()
                && let Err(error) = flow.join()
            {
                if spec.role == FlowRole::Main {
                    fault = Some(error);
                } else {
                    let (name, why) = (spec.name.clone(), error.to_string());
                    intake.miss(Missing { name, why }, spec.index);
                }
            }
        }
        intake.record(recorder)?;
        progress(ready.progress(neph_probe::now()));
        // What runs beside the main flow ends with it.
        let over = fleet.is_none() && running[0].is_none();
        if over {
            stop.set();
        }
        if over && running.iter().all(Option::is_none) {
            break;
        }
        thread::sleep(TICK);
    }
    Ok(match (fault, order.stop.is_set()) {
        (Some(error), _) => Ending::Failed(error.to_string()),
        (None, true) => Ending::Interrupted,
        (None, false) => intake.verdict(),
    })
}

#[cfg(test)]
mod tests;
