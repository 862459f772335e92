//! The route of each flow towards a destination, and the diamond that the routes of many make.
//!
//! A [`Traceroute`](crate::Traceroute) shows which routers exist on the way; here each flow keeps
//! its 5-tuple, so that its routers follow each other on one path.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Instant, Own, ProbeKind, ReadBy, Span, Transport, Wall};

/// The packets that ask: routers balance each kind by what its headers hold.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TraceKind {
    /// UDP datagrams, fixed ports.
    Udp,
    /// TCP SYN segments, fixed ports.
    Syn,
    /// ICMP echo requests with fixed identifier and checksum; the identifier stands for the source
    /// port.
    Icmp,
}

impl TraceKind {
    /// What stands before `://` in targets.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Syn => "syn",
            Self::Icmp => "icmp",
        }
    }
    /// The packets that take the way of such flows.
    pub const fn of_flows(probe: ProbeKind) -> Self {
        match probe.facts().transport {
            Transport::Udp => Self::Udp,
            Transport::Icmp => Self::Icmp,
            Transport::Connection | Transport::Segment => Self::Syn,
        }
    }
    /// The kind of that scheme.
    pub fn named(scheme: &str) -> Option<Self> {
        let all = [Self::Udp, Self::Syn, Self::Icmp];
        all.into_iter().find(|kind| kind.scheme() == scheme)
    }
}

/// A label of the MPLS stack with which a packet reached a router (RFC 4950).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct MplsLabel {
    /// The label, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits.
    pub traffic_class: u8,
    /// Its own TTL.
    pub ttl: u8,
}

/// What is known of one distance on one flow's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowHop {
    /// Its distance, from 1.
    pub ttl: u8,
    /// Who answered (most often, where several did); `None`: nobody, a hole.
    pub address: Option<IpAddr>,
    /// Who else answered the same flow at this distance: the flow changed its path while it was
    /// traced, or a router balances packet by packet.
    pub others: Vec<IpAddr>,
    /// How many probes asked.
    pub asked: u32,
    /// Round trips of its answers, of nobody else's. Routers answer when they have time: these are
    /// upper bounds.
    pub round_trips: Vec<Span>,
    /// Those of the others, in their order. Empty where there are none, and in what was kept before
    /// this was: there theirs stand among [`Self::round_trips`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_round_trips: Vec<Vec<Span>>,
    /// Who read the clock for them; the program if it did so for any.
    pub read_by: ReadBy,
    /// MPLS labels that the answer told, outermost first.
    pub labels: Vec<MplsLabel>,
}

/// Where and why the trace of a flow ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum TraceEnd {
    /// The destination answered.
    Reached,
    /// A router said that there is no way on.
    Unreachable {
        /// Which one.
        from: IpAddr,
        /// The ICMP code of its message.
        code: u8,
    },
    /// A router was met again and again.
    Loop {
        /// Which one.
        at: IpAddr,
    },
    /// Too many hops one after the other did not answer.
    Silent,
    /// The farthest hop that was allowed is not the destination.
    TooFar,
    /// The trace was stopped before.
    Stopped,
}

/// A path's fingerprint: equal for the same addresses at the same distances, on every machine and
/// in every release. Shown and stored as 16 hexadecimal digits (a JSON number could not hold it).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
pub struct PathHash(pub u64);

impl PathHash {
    /// Of the addresses at the distances 1, 2, 3 ...; holes count by their place, except at the
    /// end. FNV-1a (64 bits) over one byte 0 for a hole, else 4 or 6 and the address's bytes.
    pub fn of(addresses: &[Option<IpAddr>]) -> Self {
        let end = addresses.iter().rposition(Option::is_some);
        let reported = &addresses[..end.map_or(0, |last| last + 1)];
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut take = |bytes: &[u8]| {
            for byte in bytes {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        for address in reported {
            match address {
                None => take(&[0]),
                Some(IpAddr::V4(v4)) => {
                    take(&[4]);
                    take(&v4.octets());
                }
                Some(IpAddr::V6(v6)) => {
                    take(&[6]);
                    take(&v6.octets());
                }
            }
        }
        Self(hash)
    }
}

impl fmt::Display for PathHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:016x}", self.0))
    }
}

impl From<PathHash> for String {
    fn from(hash: PathHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for PathHash {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        u64::from_str_radix(&text, 16).map(Self)
    }
}

/// The route of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowRoute {
    /// Our port, or the identifier of ICMP echo: with the trace's destination and kind it is the
    /// flow.
    pub source_port: u16,
    /// Its hops from distance 1 on, without gaps; holes have no address. The last is the
    /// destination where it answered, else the last that answered.
    pub hops: Vec<FlowHop>,
    /// The fingerprint of its addresses.
    pub hash: PathHash,
    /// Where and why it ended.
    pub end: TraceEnd,
}

impl FlowHop {
    /// Asked once; `address` alone answered, and when is not known.
    pub const fn new(ttl: u8, address: Option<IpAddr>) -> Self {
        Self {
            ttl,
            address,
            others: Vec::new(),
            asked: 1,
            round_trips: Vec::new(),
            others_round_trips: Vec::new(),
            read_by: ReadBy::Kernel,
            labels: Vec::new(),
        }
    }

    /// Other addresses that answered, besides [`Self::address`], each with its round trips if known.
    pub fn alongside(&self) -> impl Iterator<Item = (IpAddr, &[Span])> {
        let trips = self.others_round_trips.iter().map(Vec::as_slice);
        let trips = trips.chain(std::iter::repeat(&[][..]));
        self.others.iter().copied().zip(trips)
    }
}

impl FlowRoute {
    /// Whether the destination answered.
    pub fn reached(&self) -> bool {
        self.end == TraceEnd::Reached
    }

    /// Whether neither a router nor the destination answered: its path is not known.
    pub fn is_unanswered(&self) -> bool {
        self.hops.iter().all(|hop| hop.address.is_none())
    }

    /// The address at each distance from 1 on.
    pub fn addresses(&self) -> Vec<Option<IpAddr>> {
        self.hops.iter().map(|hop| hop.address).collect()
    }

    /// The destination's hop, where it answered.
    pub fn destination(&self) -> Option<&FlowHop> {
        self.hops.last().filter(|_| self.reached())
    }
}

/// One trace: the routes of its flows, in the order of their ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowTrace {
    /// Whom it looked for. Port 0 for ICMP.
    pub destination: SocketAddr,
    /// The packets that asked.
    pub kind: TraceKind,
    /// When it started.
    pub started: Wall,
    /// The routes.
    pub routes: Vec<FlowRoute>,
    /// Whether as many flows were traced as rule out another next hop behind each router; `None`
    /// where the flows were given.
    pub enough: Option<bool>,
}

/// The routes of many flows as one drawing: where they part and where they meet again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diamond {
    /// How many flows there are.
    pub flows: u32,
    /// The hops by distance, from 1, without gaps.
    pub hops: Vec<DiamondHop>,
    /// Which router follows which, by distance, then by addresses.
    pub links: Vec<DiamondLink>,
    /// The paths, most flows first.
    pub paths: Vec<DiamondPath>,
}

/// Everybody at one distance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiamondHop {
    /// The distance, from 1.
    pub ttl: u8,
    /// Who was met there, most flows first, then by address; those who did not answer last.
    pub nodes: Vec<DiamondNode>,
}

/// A router or the destination, at one distance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiamondNode {
    /// Its address; `None`: whoever did not answer.
    pub address: Option<IpAddr>,
    /// How many flows met it.
    pub flows: u32,
    /// Probes that were sent on these flows at this distance.
    pub asked: u32,
    /// All round trips, ascending: upper bounds, as routers answer when they have time.
    pub round_trips: Vec<Span>,
}

/// Flows go from one router to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiamondLink {
    /// The distance of the first.
    pub ttl: u8,
    /// The first; `None`: whoever did not answer there, or at distance 0 ourselves.
    pub from: Option<IpAddr>,
    /// The next, one farther.
    pub to: Option<IpAddr>,
    /// How many flows.
    pub flows: u32,
}

/// A path, and the flows that take it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiamondPath {
    /// Its fingerprint.
    pub hash: PathHash,
    /// The address at each distance from 1 on.
    pub addresses: Vec<Option<IpAddr>>,
    /// The ports of its flows, ascending.
    pub source_ports: Vec<u16>,
    /// Whether the destination answered at its end.
    pub reached: bool,
    /// Round trips to the destination over it, ascending.
    pub round_trips: Vec<Span>,
}

/// The route of one flow, as a trace found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedFlow {
    /// What was found.
    pub route: FlowRoute,
    /// When the first and the last of the answered probes left, by the clock of this host: the route is
    /// that of this time. `None` if no probe was answered.
    pub answered: Option<(Instant<Own>, Instant<Own>)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn the_packets_of_a_trace_take_the_way_of_its_flows() {
        for probe in ProbeKind::ALL {
            let sent = match TraceKind::of_flows(*probe) {
                TraceKind::Udp => "UDP",
                TraceKind::Syn => "TCP",
                TraceKind::Icmp => "ICMP",
            };
            assert_eq!(sent, probe.protocol(), "{probe}");
        }
    }

    #[test]
    fn a_fingerprint_is_fnv_1a_of_the_addresses() {
        // The offset basis of FNV-1a: of nothing.
        assert_eq!(PathHash::of(&[]), PathHash(0xcbf2_9ce4_8422_2325));
        // By Python: for b in (4, 192, 0, 2, 1): h = (h ^ b) * 0x100000001b3 % 2**64
        assert_eq!(PathHash::of(&[Some(at(1))]).to_string(), "adfafc6fd835e47e");
    }

    #[test]
    fn holes_count_by_their_place_except_at_the_end() {
        let with = PathHash::of(&[Some(at(1)), None, Some(at(2))]);
        assert_ne!(with, PathHash::of(&[Some(at(1)), Some(at(2))]));
        assert_ne!(with, PathHash::of(&[None, Some(at(1)), Some(at(2))]));
        assert_eq!(
            with,
            PathHash::of(&[Some(at(1)), None, Some(at(2)), None, None])
        );
    }

    #[test]
    fn a_fingerprint_reads_back_as_it_was_shown() {
        let hash = PathHash::of(&[Some(at(9)), None, Some(at(3))]);
        assert_eq!(PathHash::try_from(hash.to_string()), Ok(hash));
        assert!(PathHash::try_from("no".to_owned()).is_err());
    }
}
