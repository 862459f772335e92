//! The route of each flow to a destination, and the union of the routes of many flows.
//!
//! A [`Traceroute`](crate::Traceroute) shows which routers exist on the path. Here each flow has a
//! fixed 5-tuple, so that its routers are consecutive routers of one path.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Instant, Local, ProbeKind, ReadBy, Span, Transport, Wall};

/// The kind of probe packets. Routers balance each kind by the content of its headers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TraceKind {
    /// UDP datagrams with fixed ports.
    Udp,
    /// TCP SYN segments with fixed ports.
    Syn,
    /// ICMP echo requests with a fixed identifier and checksum; the identifier replaces the source
    /// port.
    Icmp,
}

impl TraceKind {
    /// The scheme in targets, before `://`.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Syn => "syn",
            Self::Icmp => "icmp",
        }
    }
    /// The packets that take the same path as flows of this kind of probe.
    pub const fn of_flows(probe: ProbeKind) -> Self {
        match probe.properties().transport {
            Transport::Udp => Self::Udp,
            Transport::Icmp => Self::Icmp,
            Transport::Connection | Transport::Segment => Self::Syn,
        }
    }
    /// The kind of that scheme.
    pub fn from_name(scheme: &str) -> Option<Self> {
        let kinds = [Self::Udp, Self::Syn, Self::Icmp];
        kinds.into_iter().find(|kind| kind.scheme() == scheme)
    }
}

/// A label of the MPLS stack that a packet had on arrival at a router (RFC 4950).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct MplsLabel {
    /// Label value, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits.
    pub traffic_class: u8,
    /// TTL of the label.
    pub ttl: u8,
}

/// One hop of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowHop {
    /// Distance in hops, from 1.
    pub ttl: u8,
    /// Address that answered most often; null if none answered.
    pub address: Option<IpAddr>,
    /// Other addresses that answered the same flow at this distance: the path changed during the
    /// trace, or a router balances per packet.
    #[serde(alias = "others")]
    pub other_addresses: Vec<IpAddr>,
    /// Number of probes sent.
    #[serde(alias = "asked")]
    pub probes: u32,
    /// Round trips of the answers from `address`, nanoseconds. Routers answer with low priority:
    /// these are upper bounds.
    pub round_trips: Vec<Span>,
    /// Round trips of the answers from each of `other_addresses`, in the same sequence, nanoseconds.
    /// Empty without `other_addresses`, and in old data, which has them in `round_trips`.
    #[serde(
        default,
        alias = "others_round_trips",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub other_addresses_round_trips: Vec<Vec<Span>>,
    /// Who read the clock for the round trips: `program` if neph read it for at least one.
    pub read_by: ReadBy,
    /// MPLS labels in the answer, outermost first.
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
    /// A router reported that the destination is unreachable.
    Unreachable {
        /// Address of the router.
        from: IpAddr,
        /// ICMP code of its message.
        code: u8,
    },
    /// A router answered at several distances: a routing loop.
    Loop {
        /// Address of the router.
        at: IpAddr,
    },
    /// Too many consecutive hops did not answer.
    Silent,
    /// The maximum number of hops was reached before the destination.
    TooFar,
    /// The trace was stopped before its end.
    Stopped,
}

/// The hash of a path: equal for the same addresses at the same distances, on every machine and in
/// every release. 16 hexadecimal digits, because a JSON number cannot represent 64 bits.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
pub struct PathHash(pub u64);

impl PathHash {
    /// The hash of the addresses at the distances 1, 2, 3 ... A hop without an address counts by
    /// its distance, except at the end. FNV-1a (64 bits) over one byte 0 for such a hop, else 4 or
    /// 6 and the address's bytes.
    pub fn of(addresses: &[Option<IpAddr>]) -> Self {
        let end = addresses.iter().rposition(Option::is_some);
        let path_addresses = &addresses[..end.map_or(0, |last| last + 1)];
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut take = |bytes: &[u8]| {
            for byte in bytes {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        for address in path_addresses {
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
    /// Local source port, or the identifier of ICMP echo. With the trace's destination and kind it
    /// identifies the flow.
    pub source_port: u16,
    /// Hops from distance 1, without gaps; a hop without an answer has no address. The last hop is
    /// the destination if it answered, else the last hop that answered.
    pub hops: Vec<FlowHop>,
    /// Hash of its addresses.
    pub hash: PathHash,
    /// Where and why it ended.
    pub end: TraceEnd,
}

impl FlowHop {
    /// A hop with one probe that only `address` answered, at an unknown time.
    pub const fn new(ttl: u8, address: Option<IpAddr>) -> Self {
        Self {
            ttl,
            address,
            other_addresses: Vec::new(),
            probes: 1,
            round_trips: Vec::new(),
            other_addresses_round_trips: Vec::new(),
            read_by: ReadBy::Kernel,
            labels: Vec::new(),
        }
    }

    /// Other addresses that answered, besides [`Self::address`], each with its round trips if
    /// known.
    pub fn alongside(&self) -> impl Iterator<Item = (IpAddr, &[Span])> {
        let round_trips = self.other_addresses_round_trips.iter().map(Vec::as_slice);
        let round_trips = round_trips.chain(std::iter::repeat(&[][..]));
        self.other_addresses.iter().copied().zip(round_trips)
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

/// One trace: the routes of its flows, by port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowTrace {
    /// Address and port of the destination; the port is 0 for ICMP.
    pub destination: SocketAddr,
    /// Kind of probe packets.
    pub kind: TraceKind,
    /// Start time, Unix nanoseconds.
    pub started: Wall,
    /// Route of each flow.
    pub routes: Vec<FlowRoute>,
    /// Whether enough flows were traced to rule out a further next hop behind each router; null if
    /// the user chose the flows.
    pub enough: Option<bool>,
}

/// The union of the routes of many flows: where paths split and where they join.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diamond {
    /// Number of flows.
    pub flows: u32,
    /// Hops by distance, from 1, without gaps.
    pub hops: Vec<DiamondHop>,
    /// Links between consecutive routers, by distance, then by address.
    pub links: Vec<DiamondLink>,
    /// Paths, by descending number of flows.
    pub paths: Vec<DiamondPath>,
}

/// All routers at one distance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiamondHop {
    /// Distance in hops, from 1.
    pub ttl: u8,
    /// Routers at this distance, by descending number of flows, then by address; the one without an
    /// answer is last.
    pub nodes: Vec<DiamondNode>,
}

/// A router or the destination, at one distance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiamondNode {
    /// Address; null for all flows without an answer at this distance.
    pub address: Option<IpAddr>,
    /// Number of flows through it.
    pub flows: u32,
    /// Number of probes of these flows at this distance.
    #[serde(alias = "asked")]
    pub probes: u32,
    /// Round trips, ascending, nanoseconds. Routers answer with low priority: these are upper
    /// bounds.
    pub round_trips: Vec<Span>,
}

/// A link from one router to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiamondLink {
    /// Distance of the first router in hops.
    pub ttl: u8,
    /// Address of the first router; null without an answer, and at distance 0, which is the client
    /// host.
    pub from: Option<IpAddr>,
    /// Address of the next router; null without an answer.
    pub to: Option<IpAddr>,
    /// Number of flows over the link.
    pub flows: u32,
}

/// A path and its flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiamondPath {
    /// Hash of its addresses.
    pub hash: PathHash,
    /// Address at each distance from 1; null without an answer.
    pub addresses: Vec<Option<IpAddr>>,
    /// Source ports of its flows, ascending.
    pub source_ports: Vec<u16>,
    /// Whether the destination answered.
    pub reached: bool,
    /// Round trips to the destination over this path, ascending, nanoseconds.
    pub round_trips: Vec<Span>,
}

/// The route of one flow in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedFlow {
    /// The route.
    pub route: FlowRoute,
    /// Departure of the first and of the last probe that was answered, on the client's clock: the
    /// route is valid for this time. `None` if no probe was answered.
    pub answered: Option<(Instant<Local>, Instant<Local>)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn trace_packets_take_the_path_of_their_flow() {
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
    fn the_fingerprint_includes_unanswered_hops_except_at_the_end() {
        let with = PathHash::of(&[Some(at(1)), None, Some(at(2))]);
        assert_ne!(with, PathHash::of(&[Some(at(1)), Some(at(2))]));
        assert_ne!(with, PathHash::of(&[None, Some(at(1)), Some(at(2))]));
        assert_eq!(
            with,
            PathHash::of(&[Some(at(1)), None, Some(at(2)), None, None])
        );
    }

    #[test]
    fn route_fingerprints_roundtrip() {
        let hash = PathHash::of(&[Some(at(9)), None, Some(at(3))]);
        assert_eq!(PathHash::try_from(hash.to_string()), Ok(hash));
        assert!(PathHash::try_from("no".to_owned()).is_err());
    }
}
