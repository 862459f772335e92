//! Orders: what one executor is to do, as values that cross processes as JSON.
//!
//! Owns which orders there are. Does not know which executor carries one out, nor where.

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

/// What one executor is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// Experiments that begin at one moment and run at the same time; at least one.
    Experiments(Vec<ExperimentOrder>),
    /// To see how much goes through.
    Throughput(ThroughputOrder),
    /// To find the routers on the way to a host.
    Traceroute(TracerouteOrder),
    /// To ping while no experiment runs.
    Pings(PingOrder),
    /// To make a load.
    Load(LoadOrder),
    /// To write down what passes an interface.
    Capture(CaptureOrder),
    /// To answer probes.
    Reflector(ReflectorOrder),
}

impl Order {
    /// The site that it names, if it is one order for one site; experiments name theirs themselves.
    pub fn site(&self) -> Option<&str> {
        match self {
            Self::Throughput(order) => order.site.as_deref(),
            Self::Traceroute(order) => order.site.as_deref(),
            Self::Pings(order) => order.site.as_deref(),
            Self::Capture(order) => order.site.as_deref(),
            Self::Experiments(_) | Self::Load(_) | Self::Reflector(_) => None,
        }
    }

    /// The same for an executor that is at the site: it names none.
    #[must_use]
    pub fn at_its_site(mut self) -> Self {
        match &mut self {
            Self::Experiments(orders) => orders.iter_mut().for_each(|one| one.site = None),
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
    /// The same order by another clock that is `ahead`: its times are those of the sender's clock.
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
