//! A running flow: its kind decides which driver runs it.

use neph_model::Stop;

use crate::ProbeError;
use crate::datagram;
use crate::kinds::{self, Opener};
use crate::outlet::Outlet;
use crate::pace;
use crate::report::{Report, Reports};
use crate::running::Running;
use crate::spec::FlowSpec;
use crate::stream;

/// A flow that runs on its own thread. Its reports end with [`Report::Ended`].
pub type Flow = Running<Report>;

impl Flow {
    /// Starts measuring.
    ///
    /// # Errors
    /// When no thread can be started. [`Self::join`] returns errors of the thread itself.
    pub fn start(spec: FlowSpec, stop: Stop) -> Result<Self, ProbeError> {
        let (sender, reports) = Reports::new();
        let name = format!("neph-{}", spec.target.kind());
        Self::begin(name, reports, move || {
            run(&spec, Outlet::new(sender), &stop)
        })
    }
}

fn run(spec: &FlowSpec, outlet: Outlet, stop: &Stop) -> Result<(), ProbeError> {
    pace::settle_at(spec.site.as_ref(), spec.priority)?;
    match kinds::opener(spec) {
        Some(Opener::Datagram(open)) => datagram::drive(spec, open(spec)?, outlet, stop),
        Some(Opener::Stream(_)) | None => stream::drive(spec, outlet, stop),
    }
}
