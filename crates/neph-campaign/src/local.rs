//! The carrier that measures from this process: on this host, or in a lab site's namespace.
//!
//! Turns orders into flows of `neph-probe`, and what they tell into what the recorder keeps. Own
//! marks are stored relative to the experiment's start.

mod between;
pub(crate) mod caps;
mod course;
pub(crate) mod fleet;
mod flows;
mod follow;
pub(crate) mod intake;
mod links;
mod peer;
mod tcp_samples;
mod trace;

use std::fmt::Display;
use std::net::SocketAddr;

use neph_model::{
    BitRate, ExperimentId, HostFacts, SiteLoad, Stress, Target, Throughput, Traceroute, Warning,
};
use neph_probe::{
    Iperf3Spec, Place, ProbeError, Resolve, Resolving, Transfer, UploadSpec, allot_files,
};
use neph_store::StoreError;

use crate::carrier::{
    Carried, Carrier, CarryError, ExperimentOrder, KeepPings, Part, PingOrder, Prepared, Progress,
    ThroughputOrder, TracerouteOrder,
};
use crate::plan::ThroughputTool;
use crate::{cores, provenance};
use course::{Around, Course};
use flows::Ready;
pub use links::LinkCount;

/// The lab that a carrier measures in, as far as the carrier needs to know it.
pub trait Ground: std::fmt::Debug {
    /// The lab becomes what it is in a season; nothing to do where it is the same in all.
    ///
    /// # Errors
    /// It could not be brought up, in a sentence.
    fn enter(&mut self, season: Option<&str>) -> Result<(), String>;
    /// Where what measures at a site runs: in its network namespace, within its limits.
    fn place(&self, site: &str) -> Option<Place>;
    /// Whether one of the lab's own reflectors listens there.
    fn reflects(&self, address: SocketAddr) -> bool;
    /// An experiment begins: what the lab does at given times counts from now.
    fn cue(&self);
    /// What each direction of each link did so far, in the same order each time.
    fn links(&self) -> Vec<LinkCount>;
    /// What is to be said of everything that is measured in it, however it went.
    fn warnings(&self) -> Vec<Warning>;
    /// Loads these sites from now on, and no others; without any, none. What is to be said of the loads
    /// that end with this, over all of their time.
    ///
    /// # Errors
    /// A load could not be started or ended, in a sentence.
    fn stress(&mut self, wanted: &[SiteLoad]) -> Result<Vec<Warning>, String>;
}

/// Measures from this process.
#[derive(Debug, Default)]
pub struct LocalCarrier {
    lab: Option<Box<dyn Ground>>,
    /// What was prepared last and has not been carried out.
    ready: Vec<(ExperimentId, Ready)>,
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
            ready: Vec::new(),
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

    /// What runs at the same time is of one season and under one load. Else: what failed, and why.
    fn enter(&mut self, orders: &[&ExperimentOrder]) -> Result<(), (&'static str, String)> {
        let (Some(lab), Some(first)) = (&mut self.lab, orders.first()) else {
            return Ok(());
        };
        lab.enter(first.scenario.season())
            .map_err(|why| ("bring the season's lab up", why))?;
        let asked = first.scenario.parameters.stress();
        lab.stress(asked.map_or(&[], Stress::loads))
            // What ended here had nothing measured beside it.
            .map(|_| ())
            .map_err(|why| ("load the lab's sites", why))
    }

    /// What was measured under a load is over: nothing else is to be. What is to be said of the load.
    fn rest(&mut self) -> Vec<Warning> {
        let ended = self.lab.as_mut().map(|lab| lab.stress(&[]));
        ended.unwrap_or(Ok(Vec::new())).unwrap_or_else(|why| {
            tracing::warn!("{why}");
            Vec::new()
        })
    }

    /// Who is there, and what is to run.
    fn ask(&self, order: &ExperimentOrder) -> Result<Ready, CarryError> {
        let site = self.place(order.site.as_deref())?;
        let ready = flows::ready(order, site)?;
        let address = ready.specs[0].address;
        let own = self.lab.as_ref().is_some_and(|lab| lab.reflects(address));
        let expected = order.reflector || own;
        peer::judge(&ready.found, &ready.specs[0], expected)?;
        Ok(ready)
    }

    fn links(&self) -> Vec<LinkCount> {
        self.lab.as_ref().map_or_else(Vec::new, |lab| lab.links())
    }

    /// What the lab earns, where its links had done `before` when the experiment began.
    fn warnings(&self, before: &[LinkCount]) -> Vec<Warning> {
        let own = self.lab.as_ref().map(|lab| lab.warnings());
        let of_links = links::warnings(before, &self.links());
        own.into_iter().flatten().chain(of_links).collect()
    }
}

fn failed(operation: impl Into<String>, reason: impl Display) -> CarryError {
    CarryError::Failed {
        operation: operation.into(),
        reason: format!("{reason}"),
    }
}

impl Carrier for LocalCarrier {
    fn prepare(&mut self, orders: &[&ExperimentOrder]) -> Vec<Result<Prepared, CarryError>> {
        self.ready.clear();
        if let Err((what, why)) = self.enter(orders) {
            let fail = |_| Err(failed(what, &why));
            return orders.iter().map(fail).collect();
        }
        let mut asked: Vec<_> = orders.iter().map(|order| self.ask(order)).collect();
        let fleets = asked
            .iter_mut()
            .flatten()
            .filter_map(|one| one.fleet.as_mut());
        if let Err(error) = allot_files(&mut fleets.collect::<Vec<_>>()) {
            let fail = |_| Err(failed("begin the fleets", &error));
            return orders.iter().map(fail).collect();
        }
        // All begin at one moment, however long it took to ask each who is there.
        let origin = neph_probe::anchor();
        for ready in asked.iter_mut().flatten() {
            ready.origin = origin;
        }
        let each = orders.iter().zip(asked).map(|(order, asked)| {
            let ready = asked?;
            let prepared = Prepared {
                started: origin.wall,
                flows: ready.flows(),
                fleet: ready.fleet.as_ref().map(|spec| spec.fleet.clone()),
            };
            self.ready.push((order.experiment.id, ready));
            Ok(prepared)
        });
        each.collect()
    }

    fn carry_out(
        &mut self,
        parts: &mut [Part<'_>],
        progress: &dyn Fn(Progress),
    ) -> Vec<Result<Carried, CarryError>> {
        let before = (cores::stat(), self.links());
        if let Some(lab) = &self.lab {
            lab.cue();
        }
        let mut courses: Vec<Result<Course<'_>, CarryError>> = parts
            .iter_mut()
            .map(|part| {
                let id = part.order.experiment.id;
                let place = self.ready.iter().position(|(ready, _)| *ready == id);
                let place = place
                    .ok_or_else(|| failed("carry the experiment out", "it was not prepared"))?;
                Course::begin(part, self.ready.swap_remove(place).1)
            })
            .collect();
        course::run(&mut courses, progress);
        let of_load = self.rest();
        let around = Around {
            stat: (before.0, cores::stat()),
            warnings: [self.warnings(&before.1), of_load].concat(),
        };
        let unanswered = courses
            .iter_mut()
            .map(|course| course.as_mut().ok()?.unanswered());
        let refused = caps::refused(&unanswered.collect::<Vec<_>>());
        let ends = courses.into_iter().zip(refused);
        ends.map(|(course, refused)| course?.end(&around, refused))
            .collect()
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

    fn ping_between(
        &mut self,
        order: &PingOrder,
        keep: &mut KeepPings<'_>,
    ) -> Result<(), StoreError> {
        match self.place(order.site.as_deref()) {
            Ok(site) => between::ping(order, site.as_ref(), keep),
            Err(_) => Ok(()),
        }
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
        let stop = &order.stop;
        let (host, port) = (order.server.host.as_str(), order.server.port);
        let operation = || format!("transfer to {host} port {port}");
        match order.tool {
            ThroughputTool::Neph => {
                let target = Target::tcp(host, port)
                    .map_err(|error| failed(format!("find {host}"), error))?;
                let how = Resolving {
                    site: site.clone(),
                    ..Resolving::here(None)
                };
                let found = target.find(&how);
                let address = found.map_err(|error| failed(operation(), error))?.address;
                let duration = order.duration;
                let spec = UploadSpec {
                    target,
                    address,
                    duration,
                    congestion: None,
                    site,
                };
                neph_probe::upload(&spec, stop).map_err(|error| failed(operation(), error))
            }
            ThroughputTool::Iperf3 => {
                let spec = Iperf3Spec {
                    host: host.to_owned(),
                    port,
                    duration: order.duration,
                    congestion: None,
                    site,
                };
                neph_probe::iperf3(&spec, stop).map_err(|error| failed(operation(), error))
            }
        }
    }
}

#[cfg(test)]
mod tests;
