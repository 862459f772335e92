//! The route of each flow: TTL-limited probes whose headers stay the same wherever routers look
//! that balance by flow (Paris traceroute), for many flows at once, and as many flows as it takes
//! to know all paths (multipath detection, Augustin et al. 2007). A [`traceroute`] is the other
//! preset of the same engine: each probe is a flow of its own.
//!
//! The state machine ([`tracer`]) does no input or output. With `CAP_NET_RAW` the probes are built
//! here and tell themselves apart; without, each flow asks one hop at a time on a socket of its own.

mod carrier;
mod doubt;
mod driver;
pub(crate) mod flow;
mod hop;
mod manner;
mod plain;
mod raw;
mod route;
mod rule;
pub(crate) mod spec;
mod spread;
pub(crate) mod tracer;
mod traceroute;

pub use driver::{Traced, Tracing, trace, trace_flow};
pub use spec::{FlowSet, PortUse, Sockets, TraceSpec};
pub use traceroute::{Route, traceroute};

#[cfg(test)]
mod tests;
