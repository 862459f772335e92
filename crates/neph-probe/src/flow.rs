//! A running flow: its thread, and what it tells.

use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};

use neph_model::ProbeKind;

use crate::ProbeError;
use crate::datagram;
use crate::outlet::Outlet;
use crate::pace;
use crate::raw_tcp;
use crate::report::{Report, Reports};
use crate::spec::FlowSpec;
use crate::stop::Stop;
use crate::stream;

/// A flow that runs on a thread of its own until its schedule is over or it is stopped.
#[derive(Debug)]
pub struct Flow {
    reports: Receiver<Report>,
    thread: JoinHandle<Result<(), ProbeError>>,
}

impl Flow {
    /// Starts measuring.
    ///
    /// # Errors
    /// When no thread can be had. What the thread itself cannot do is told by [`Self::join`].
    pub fn start(spec: FlowSpec, stop: Stop) -> Result<Self, ProbeError> {
        let (sender, reports) = Reports::new();
        let thread = thread::Builder::new()
            .name(format!("neph-{}", spec.target.kind()))
            .spawn(move || run(&spec, Outlet::new(sender), &stop))
            .map_err(ProbeError::Thread)?;
        Ok(Self { reports, thread })
    }

    /// What the flow tells; ends with [`Report::Ended`], or when the thread could not begin.
    pub const fn reports(&self) -> &Receiver<Report> {
        &self.reports
    }

    /// Waits for the thread.
    ///
    /// # Errors
    /// Why the flow could not begin.
    pub fn join(self) -> Result<(), ProbeError> {
        drop(self.reports);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn run(spec: &FlowSpec, outlet: Outlet, stop: &Stop) -> Result<(), ProbeError> {
    pace::settle_at(spec.site.as_ref(), spec.priority)?;
    match spec.target.kind() {
        ProbeKind::Ws | ProbeKind::Http | ProbeKind::Tcp => stream::drive(spec, outlet, stop),
        // Without the right to build segments ourselves, our kernel builds them: it connects.
        ProbeKind::Syn if !raw_tcp::is_permitted() => stream::drive(spec, outlet, stop),
        ProbeKind::Udp | ProbeKind::Icmp | ProbeKind::Syn => datagram::drive(spec, outlet, stop),
    }
}
