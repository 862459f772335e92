//! A running fleet: its thread, and what it tells.

use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};

use neph_model::ProbeKind;

use super::driver;
use super::reports::FleetReports;
use super::sockets::Sockets;
use super::spec::{FleetReport, FleetSpec};
use super::transport::Transport;
use crate::ProbeError;
use crate::pace;
use crate::spec::Priority;
use crate::stop::Stop;

/// A fleet that runs on a thread of its own until its schedule is over or it is stopped.
#[derive(Debug)]
pub struct FleetRun {
    reports: Receiver<FleetReport>,
    thread: JoinHandle<Result<(), ProbeError>>,
}

impl FleetRun {
    /// Starts measuring.
    ///
    /// # Errors
    /// When the fleet asks for what cannot be (no lanes, no endpoint, more messages a second than
    /// its cap), or no thread can be had. What the thread itself cannot do is told by
    /// [`Self::join`].
    pub fn start(spec: FleetSpec, stop: Stop) -> Result<Self, ProbeError> {
        spec.check()?;
        let (sender, reports) = FleetReports::new();
        let thread = thread::Builder::new()
            .name("neph-fleet".to_owned())
            .spawn(move || run(&spec, sender, &stop))
            .map_err(ProbeError::Thread)?;
        Ok(Self { reports, thread })
    }

    /// What the fleet tells; ends with [`FleetReport::Ended`], or when the thread could not begin.
    pub const fn reports(&self) -> &Receiver<FleetReport> {
        &self.reports
    }

    /// Waits for the thread.
    ///
    /// # Errors
    /// Why the fleet could not begin.
    pub fn join(self) -> Result<(), ProbeError> {
        drop(self.reports);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn run(spec: &FleetSpec, reports: FleetReports, stop: &Stop) -> Result<(), ProbeError> {
    let mut priority = spec.priority;
    if let Some(site) = &spec.site {
        site.enter()?;
        if site.is_rationed() {
            priority = Priority::Normal;
        }
    }
    pace::settle_thread(priority);
    let transport = transport(spec)?;
    driver::drive(spec, transport, reports, stop)
}

/// What carries this kind.
fn transport(spec: &FleetSpec) -> Result<Box<dyn Transport>, ProbeError> {
    match spec.fleet.probe {
        ProbeKind::Udp => Ok(Box::new(Sockets::new(spec)?)),
        kind => Err(ProbeError::Fleet(format!(
            "there is no fleet of {kind} flows"
        ))),
    }
}
