//! A flow: one 5-tuple of a pair, and the part it plays in its experiment.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A flow's place within its experiment: 0 is the main one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct FlowIndex(pub u32);

/// A kind of exchange. The table of all kinds is in `neph-probe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// WebSocket messages over one lasting connection.
    Ws,
    /// HTTP requests, kept alive or a connection each.
    Http,
    /// Length-framed messages straight on TCP, or the connection attempt alone.
    Tcp,
    /// STAMP packets (RFC 8762).
    Udp,
    /// ICMP echo.
    Icmp,
    /// TCP's first segment and what answers it; no connection comes of it.
    Syn,
}

impl ProbeKind {
    /// The protocol on IP that carries it, as people write it.
    pub const fn protocol(self) -> &'static str {
        match self {
            Self::Ws | Self::Http | Self::Tcp | Self::Syn => "TCP",
            Self::Udp => "UDP",
            Self::Icmp => "ICMP",
        }
    }

    /// Every kind, in the order of the enum. The catalog reads kinds by their names here: one that is
    /// not listed is written and never read again.
    pub const ALL: [Self; 6] = [
        Self::Ws,
        Self::Http,
        Self::Tcp,
        Self::Udp,
        Self::Icmp,
        Self::Syn,
    ];

    /// The word for it in plans and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ws => "ws",
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Syn => "syn",
        }
    }
    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a flow is in its experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowRole {
    /// What the scenario asks for.
    Main,
    /// An ICMP echo to the endpoint's host, beside the main flow.
    Companion,
    /// An ICMP echo to a ping destination that the plan names.
    PingDestination,
}

impl FlowRole {
    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Companion => "companion",
            Self::PingDestination => "ping_destination",
        }
    }
}

/// One flow of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Its place within the experiment.
    pub index: FlowIndex,
    /// Why it is there.
    pub role: FlowRole,
    /// The kind of exchange.
    pub probe: ProbeKind,
    /// Its name on screen: the endpoint's or the ping destination's.
    pub name: String,
    /// Our address; the port is 0 for ICMP, or when each message has a connection of its own.
    pub source: Option<SocketAddr>,
    /// The peer's address; the port is 0 for ICMP.
    pub target: SocketAddr,
    /// The peer is a Nephoscope reflector, which returns its marks.
    pub reflector: bool,
    /// Whether the peer reads the same clock (same kernel): one-way delays then need no offset.
    pub same_clock: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_listed_and_read_by_its_name() {
        // A match, so that the compiler asks here for a new kind's number.
        let number = |kind: ProbeKind| match kind {
            ProbeKind::Ws => 0,
            ProbeKind::Http => 1,
            ProbeKind::Tcp => 2,
            ProbeKind::Udp => 3,
            ProbeKind::Icmp => 4,
            ProbeKind::Syn => 5,
        };
        let listed: Vec<usize> = ProbeKind::ALL.into_iter().map(number).collect();
        assert_eq!(listed, [0, 1, 2, 3, 4, 5]);
        for kind in ProbeKind::ALL {
            assert_eq!(ProbeKind::named(kind.name()), Some(kind));
        }
        assert_eq!(ProbeKind::named("line"), None);
    }
}
