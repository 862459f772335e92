//! Orders to an executor, as values that processes exchange as JSON.
//!
//! Owns the list of orders. Does not know which executor carries an order out, nor where.

mod block;
mod capture;
mod experiment;
mod length;
mod load;
mod reflector;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Span;

pub use block::{
    EchoTo, PingOrder, ThroughputOrder, ThroughputServer, ThroughputTool, TraceLimits,
    TracerouteOrder,
};
pub use capture::{CaptureOrder, CaptureProtocol, Captured, ClockReading, PacketSample};
pub use experiment::{ExperimentOrder, FlowTraceOrder};
pub use length::Traffic;
pub use load::{CpuThreads, LoadOrder, LoadWork, TurnSizes};
pub use reflector::ReflectorOrder;

/// An order to an executor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// Run experiments that begin at the same moment; at least one.
    Experiments(Vec<ExperimentOrder>),
    /// Run a throughput check.
    Throughput(ThroughputOrder),
    /// Find the routers on the path to a host.
    Traceroute(TracerouteOrder),
    /// Send pings while no experiment runs.
    Pings(PingOrder),
    /// Generate load.
    Load(LoadOrder),
    /// Capture the packets of an interface.
    Capture(CaptureOrder),
    /// Run a reflector.
    Reflector(ReflectorOrder),
}

impl Order {
    /// The site that an order for one site names; `None` for experiments, which name their own
    /// sites.
    pub fn site(&self) -> Option<&str> {
        match self {
            Self::Throughput(order) => order.site.as_deref(),
            Self::Traceroute(order) => order.site.as_deref(),
            Self::Pings(order) => order.site.as_deref(),
            Self::Capture(order) => order.site.as_deref(),
            Self::Experiments(_) | Self::Load(_) | Self::Reflector(_) => None,
        }
    }

    /// The same order for an executor at the site: it names no site.
    #[must_use]
    pub fn at_its_site(mut self) -> Self {
        match &mut self {
            Self::Experiments(orders) => orders.iter_mut().for_each(|order| order.site = None),
            Self::Throughput(order) => order.site = None,
            Self::Traceroute(order) => order.site = None,
            Self::Pings(order) => order.site = None,
            Self::Capture(order) => order.site = None,
            Self::Load(_) | Self::Reflector(_) => {}
        }
        self
    }
}

impl Order {
    /// The same order for a clock that is `ahead` of the sender's: its times are converted.
    #[must_use]
    pub fn by_clock_ahead(mut self, ahead: Span) -> Self {
        match &mut self {
            Self::Experiments(orders) => {
                for order in orders {
                    order.start = order.start.map(|start| start + ahead);
                }
            }
            Self::Pings(order) => order.until = order.until + ahead,
            Self::Throughput(_)
            | Self::Traceroute(_)
            | Self::Load(_)
            | Self::Capture(_)
            | Self::Reflector(_) => {}
        }
        self
    }
}

#[cfg(test)]
mod tests;
