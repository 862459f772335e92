//! The route of each flow, for many flows at once. TTL-limited probes keep all headers constant that routers
//! use to balance by flow (Paris traceroute). Multipath detection adds flows until all paths are known
//! (Augustin et al. 2007). A [`traceroute`] is the other preset of the same engine: each probe is a separate
//! flow.
//!
//! The state machine ([`tracer`]) does no input or output. With `CAP_NET_RAW` the probes are built here and
//! can be distinguished. Without it, each flow asks one hop at a time on its own socket.

mod carrier;
mod doubt;
mod driver;
pub(crate) mod flow;
mod hop;
mod plain;
mod raw;
mod route;
mod rule;
pub(crate) mod spec;
mod spread;
mod trace_settings;
pub(crate) mod tracer;
pub(crate) mod tracer_io;
mod traceroute;

pub use driver::{Traced, Tracing, trace, trace_flow};
pub use spec::{FlowSet, PortUse, Sockets, TraceSpec};
pub use traceroute::{Route, traceroute};

#[cfg(test)]
mod tests;
