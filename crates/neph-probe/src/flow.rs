//! A running flow: what it is asked to do, on which sockets.

use neph_model::{ProbeKind, Stop};

use crate::ProbeError;
use crate::datagram;
use crate::outlet::Outlet;
use crate::pace;
use crate::raw_tcp;
use crate::report::{Report, Reports};
use crate::running::Running;
use crate::spec::FlowSpec;
use crate::stream;

/// A flow that runs on a thread of its own; what it tells ends with [`Report::Ended`].
pub type Flow = Running<Report>;

impl Flow {
    /// Starts measuring.
    ///
    /// # Errors
    /// When no thread can be had. What the thread itself cannot do is told by [`Self::join`].
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
    match spec.target.kind() {
        ProbeKind::Ws | ProbeKind::Http | ProbeKind::Tcp => stream::drive(spec, outlet, stop),
        // Without the right to build segments ourselves, our kernel builds them: it connects.
        ProbeKind::Syn if !raw_tcp::is_permitted() => stream::drive(spec, outlet, stop),
        ProbeKind::Udp | ProbeKind::Icmp | ProbeKind::Syn => datagram::drive(spec, outlet, stop),
    }
}
