//! Probes: one kind of exchange each, with its client side and its server side.
//!
//! A flow runs on its own thread ([`Flow::start`]) and reports through a channel. The state machines
//! (sessions, codecs, the reflector's connections) do no input or output and read no clock, so they also run
//! against a simulated network.

mod backends;
mod channel;
mod codec;
mod datagram;
mod discover;
mod error;
mod exchange;
mod fault;
mod finish;
mod fleet;
mod flow;
mod follow;
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod kinds;
mod machine;
mod numbered;
mod outbox;
mod outlet;
mod pace;
mod port_probe;
mod private_file;
mod raw_tcp;
mod reflect;
mod refusals;
mod refused;
mod reply_wait;
mod report;
mod resolver;
mod running;
mod secret;
mod silence;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod sizes_tests;
mod small_transfer;
mod spec;
mod ssid;
mod stamp_clock;
mod stream;
mod syn_rate;
mod synchrony;
mod target_error;
mod tls;
mod trace;
mod unguessable;

pub use backends::Backends;
pub use discover::{Discovery, DiscoveryOptions, discover};
pub use error::ProbeError;
pub use fleet::{FleetReport, FleetRun, FleetSpec, FleetTally, Sharing, allot_files, check_files};
pub use flow::Flow;
pub use follow::{FollowError, Followed, MAX_REDIRECTS, follow};
pub use machine::{anchor, at_site, clock_sync, core_wake, offloads};
pub use neph_sys::place::Placement;
pub use port_probe::{PortProbeResult, probe_port};
pub use private_file::{PrivateFileError, check_private, read_private};
pub use reflect::{ANSWERING_PORTS, Bound, Counted, Reflector, ShownCertificate, fitting_caps};
pub use refusals::RefusalWatch;
pub use refused::Refusals;
pub use report::Report;
pub use resolver::{Resolve, Resolved, Resolving, Silent};
pub use running::Running;
pub use secret::{Secret, SecretError};
pub use silence::{Silence, stamp_suspicion};
pub use small_transfer::SmallTransfer;
pub use spec::{ConnectionUse, FlowSpec, Overdue, Priority, Schedule, Trust};
pub use syn_rate::{SYNS_A_SECOND, SynSchedule, TooManySyns};
pub use target_error::TargetError;
pub use tls::{TlsError, client_config as tls_client_config};
pub use trace::{
    FlowSet, PortUse, Route, Sockets, TraceSpec, Traced, Tracing, trace, trace_flow, traceroute,
};

/// Whether SYNs can be built and timed without connecting (`CAP_NET_RAW`). Otherwise `syn://` measures plain
/// connects, which are aborted at once.
pub fn can_build_syns() -> bool {
    raw_tcp::is_permitted()
}

/// The current time on the local monotonic clock.
pub fn now() -> neph_model::Instant<neph_model::Local> {
    stamp_clock::now()
}

/// Sleeps once for about `length`. The caller reads the clock afterwards.
pub fn nap(length: std::time::Duration) {
    neph_sys::clock::nap(length);
}
