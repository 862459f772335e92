//! What to trace, and how fast. Plain data, decided before anything is sent.

use std::net::{IpAddr, SocketAddr};

use neph_model::{Permit, Span, TraceKind, TraceLimits};

use super::trace_settings::TraceSettings;

/// Which flows to trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowSet {
    /// Those with these source ports (identifiers of ICMP echo), each once.
    These(Vec<u16>),
    /// This many, with free ports from `first` on.
    Count {
        /// How many, at least 1.
        flows: u32,
        /// Where to look for ports.
        first: u16,
    },
    /// As many as needed to rule out a further next hop after every router.
    Enough {
        /// How many flows must have passed a router with 1, 2, 3 ... next hops. The last number is for all
        /// larger ones.
        needed: Vec<u32>,
        /// Never more than this.
        max_flows: u32,
        /// Where to look for ports.
        first: u16,
    },
    /// Each probe is a separate flow: routers that balance by flow spread them over all paths, so hops of
    /// different paths appear at the same distance.
    EachProbe,
}

/// Whether other programs use the flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortUse {
    /// Their ports are taken for the duration of the trace.
    #[default]
    Ours,
    /// A program on this host is using them. Nothing is bound, which needs `CAP_NET_RAW`. No probe is sent
    /// that the far end answers. A reflector would count a STAMP packet; a target that accepts a SYN would
    /// ignore the flow's own.
    Shared,
}

/// The sockets of the probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sockets {
    /// Raw sockets where `CAP_NET_RAW` permits them, else one ordinary socket per flow.
    #[default]
    BestPermitted,
    /// One ordinary socket per flow, which needs no privilege: slower, and not for TCP SYN.
    Plain,
}

/// The complete specification of a trace.
#[derive(Clone, Debug)]
pub struct TraceSpec {
    /// The destination; ICMP ignores the port.
    pub destination: SocketAddr,
    /// The kind of probes.
    pub kind: TraceKind,
    /// The flows.
    pub flows: FlowSet,
    /// Whether their ports are free.
    pub ports: PortUse,
    /// The sockets of the probes.
    pub sockets: Sockets,
    /// The farthest hop, 1 to 64.
    pub max_hops: u8,
    /// Probes of each flow to each hop, 1 to 100; without answers a few more are sent.
    pub queries: u8,
    /// How long to wait for an answer.
    pub timeout: Span,
    /// Most probes per second to each distance, at least 1: routers answer few.
    pub hop_rate: u32,
    /// Most probes per second in all, at least 1.
    pub rate: u32,
    /// What all users of the permit may send together. A probe beyond it waits.
    pub permit: Permit,
}

impl TraceSpec {
    /// The default for a destination.
    pub const fn new(destination: SocketAddr, kind: TraceKind, flows: FlowSet) -> Self {
        Self {
            destination,
            kind,
            flows,
            ports: PortUse::Ours,
            sockets: Sockets::BestPermitted,
            max_hops: 30,
            queries: 3,
            timeout: Span::from_secs(1),
            hop_rate: 50,
            rate: 500,
            permit: Permit::ANYTHING,
        }
    }

    /// A traceroute: UDP, each probe a separate flow, several distances at once. It needs no privilege. With
    /// 30 hops it ends within 4 s, and 9 s later if the hops before the end are silent.
    pub(super) fn traceroute(destination: IpAddr, limits: TraceLimits, permit: Permit) -> Self {
        Self {
            sockets: Sockets::Plain,
            max_hops: limits.max_hops,
            queries: limits.queries,
            hop_rate: u32::MAX,
            rate: u32::MAX,
            permit,
            ..Self::new(
                SocketAddr::new(destination, 0),
                TraceKind::Udp,
                FlowSet::EachProbe,
            )
        }
    }

    /// How its hops are asked.
    pub(super) const fn settings(&self) -> TraceSettings {
        match self.flows {
            FlowSet::EachProbe => TraceSettings::TRACEROUTE,
            FlowSet::These(_) | FlowSet::Count { .. } | FlowSet::Enough { .. } => {
                TraceSettings::FLOWS
            }
        }
    }

    /// How many flows to begin with.
    pub(super) fn first_flows(&self) -> usize {
        let count = match &self.flows {
            FlowSet::These(ports) => return ports.len(),
            FlowSet::EachProbe => 1,
            FlowSet::Count { flows, .. } => *flows,
            FlowSet::Enough {
                needed, max_flows, ..
            } => needed.first().copied().unwrap_or(1).min(*max_flows),
        };
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}
