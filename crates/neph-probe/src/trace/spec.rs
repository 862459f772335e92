//! What to trace, and how gently. Plain data, decided before anything is sent.

use std::net::{IpAddr, SocketAddr};

use neph_model::{Permit, Span, TraceKind, TraceLimits};

use super::manner::Manner;

/// Which flows to trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowSet {
    /// Those with these source ports (identifiers of ICMP echo), each once.
    These(Vec<u16>),
    /// This many, with ports from `first` on that are free.
    Count {
        /// How many, at least 1.
        flows: u32,
        /// Where to look for ports.
        first: u16,
    },
    /// As many as it takes to rule out a further next hop behind every router.
    Enough {
        /// How many flows must have gone through a router with 1, 2, 3 ... next hops. The last
        /// number stands for all larger ones.
        needed: Vec<u32>,
        /// Never more than this.
        most: u32,
        /// Where to look for ports.
        first: u16,
    },
    /// Each probe is a flow of its own: routers that balance by flow spread them over all paths, so
    /// that the hops of different paths show up at the same distance.
    EachProbe,
}

/// Whether the flows are ours alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortUse {
    /// Their ports are taken for the time of the trace.
    #[default]
    Ours,
    /// Somebody else of this host is using them: nothing is bound, which needs `CAP_NET_RAW`, and
    /// nothing is asked that the far end answers: no STAMP packet, which a reflector would count,
    /// and no SYN that a target takes, behind which it would not answer the flow's own.
    Shared,
}

/// What carries the probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sockets {
    /// Raw sockets where `CAP_NET_RAW` permits them, else one ordinary socket a flow.
    #[default]
    BestPermitted,
    /// One ordinary socket a flow, which needs no privilege: slower, and not for TCP SYN.
    Plain,
}

/// A trace's whole task.
#[derive(Clone, Debug)]
pub struct TraceSpec {
    /// Whom to look for; the port means nothing to ICMP.
    pub destination: SocketAddr,
    /// The packets that ask.
    pub kind: TraceKind,
    /// The flows.
    pub flows: FlowSet,
    /// Whether their ports are free.
    pub ports: PortUse,
    /// What carries the probes.
    pub sockets: Sockets,
    /// The farthest hop, 1 to 64.
    pub max_hops: u8,
    /// Probes of each flow to each hop, 1 to 100; one that nobody answers is asked a few times more.
    pub queries: u8,
    /// How long to wait for an answer.
    pub patience: Span,
    /// Probes a second to each distance at most, at least 1: routers answer few.
    pub hop_rate: u32,
    /// Probes a second at most in all, at least 1.
    pub rate: u32,
    /// What may be sent by all that shares it; beyond it a probe waits.
    pub permit: Permit,
}

impl TraceSpec {
    /// The default towards a destination.
    pub const fn new(destination: SocketAddr, kind: TraceKind, flows: FlowSet) -> Self {
        Self {
            destination,
            kind,
            flows,
            ports: PortUse::Ours,
            sockets: Sockets::BestPermitted,
            max_hops: 30,
            queries: 3,
            patience: Span::from_secs(1),
            hop_rate: 50,
            rate: 500,
            permit: Permit::ANYTHING,
        }
    }

    /// A traceroute: UDP, each probe a flow of its own, several distances asked at once. It needs no
    /// privilege. With 30 hops it ends within 4 s, and 9 s later where the hops before the end are
    /// silent.
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
    pub(super) const fn manner(&self) -> Manner {
        match self.flows {
            FlowSet::EachProbe => Manner::TRACEROUTE,
            FlowSet::These(_) | FlowSet::Count { .. } | FlowSet::Enough { .. } => Manner::FLOWS,
        }
    }

    /// How many flows to begin with.
    pub(super) fn first_flows(&self) -> usize {
        let count = match &self.flows {
            FlowSet::These(ports) => return ports.len(),
            FlowSet::EachProbe => 1,
            FlowSet::Count { flows, .. } => *flows,
            FlowSet::Enough { needed, most, .. } => needed.first().copied().unwrap_or(1).min(*most),
        };
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}
