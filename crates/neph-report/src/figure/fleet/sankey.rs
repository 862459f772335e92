//! Paths laid out: hops from left to right, at each hop the routers with as much height as flows
//! take them, and between them ribbons.

use std::collections::BTreeMap;
use std::net::IpAddr;

use neph_flows::build_diamond;
use neph_model::{DiamondPath, FlowRoute, FlowTrace, Span, TraceEnd};
use neph_stats::{Level, Sorted, median};

/// A path with the flows that take it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    /// The router at each distance, from 1.
    pub(super) hops: Vec<Option<IpAddr>>,
    pub(super) hash: String,
    pub(super) ports: Vec<u16>,
    pub(super) reached: bool,
    /// Median latency of its flows in milliseconds, if known.
    pub(super) latency: Option<f64>,
}

/// Latency of a source port in milliseconds. The second argument is the smallest RTT of its trace.
pub(super) type Latency<'a> = dyn Fn(u16, Option<Span>) -> Option<f64> + 'a;

/// The paths of a trace: the `coloured_count` ones of most flows, the slowest first, as in a spectrum, whose
/// slowest class is on top; then the others, most flows first. A path takes the median of what its flows
/// take.
pub(super) fn paths(trace: &FlowTrace, coloured_count: usize, latency: &Latency<'_>) -> Vec<Path> {
    let trace_round_trips: BTreeMap<u16, Span> =
        trace.routes.iter().filter_map(port_and_min_rtt).collect();
    let path_of = |diamond: DiamondPath| {
        let ports = diamond.source_ports.iter();
        let mut latencies: Vec<f64> = ports
            .filter_map(|port| latency(*port, trace_round_trips.get(port).copied()))
            .collect();
        let median_latency = Sorted::sort(&mut latencies).and_then(|sorted| median(sorted, 0));
        Path {
            latency: median_latency.ok().and_then(Level::number),
            hops: diamond.addresses,
            hash: diamond.hash.to_string(),
            ports: diamond.source_ports,
            reached: diamond.reached,
        }
    };
    let mut paths: Vec<Path> = build_diamond(&trace.routes)
        .paths
        .into_iter()
        .map(path_of)
        .collect();
    paths.sort_by(|a, b| (b.ports.len(), &a.hash).cmp(&(a.ports.len(), &b.hash)));
    let coloured_count = coloured_count.min(paths.len());
    let latency_or_infinity = |path: &Path| path.latency.unwrap_or(f64::INFINITY);
    paths[..coloured_count]
        .sort_by(|a, b| latency_or_infinity(b).total_cmp(&latency_or_infinity(a)));
    paths
}

/// A source port with its smallest RTT to the destination, if the trace reached it.
fn port_and_min_rtt(route: &FlowRoute) -> Option<(u16, Span)> {
    let last = route
        .hops
        .last()
        .filter(|_| route.end == TraceEnd::Reached)?;
    Some((route.source_port, *last.round_trips.iter().min()?))
}

/// A router at a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeIdentity {
    Source,
    Router(IpAddr),
    /// Routers that did not answer.
    Silent,
    /// Routers that too few flows take to be drawn one by one.
    Others,
}

/// A column of the drawing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    /// Its distance; 0 is where the flows start.
    pub(super) ttl: usize,
    /// How many hops that all flows share were left out before it.
    pub(super) skipped: usize,
    pub(super) nodes: Vec<Node>,
}

/// A router of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) identity: NodeIdentity,
    pub(super) flows: usize,
    /// Of all flows that come this far, in flows: where it begins.
    pub(super) top: usize,
}

/// Flows of one path, or of several that are drawn together, from one column to the next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ribbon {
    /// Index of the column where it begins.
    pub(super) column: usize,
    /// Index of its nodes.
    pub(super) nodes: (usize, usize),
    /// Rank of its path.
    pub(super) path: usize,
    pub(super) flows: usize,
    /// Where it begins within each of its nodes, in flows.
    pub(super) within: (usize, usize),
}

/// Everything to draw.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) columns: Vec<Column>,
    pub(super) ribbons: Vec<Ribbon>,
    pub(super) flows: usize,
}

/// Routers of a hop that are drawn one by one.
const MAX_NODES: usize = 20;

impl Layout {
    /// Lays paths out; from the rank `coloured_count` on they share ribbons.
    pub(super) fn of(paths: &[Path], coloured_count: usize) -> Self {
        let drawn_distances = select_distances(paths);
        let nodes_by_column: Vec<Vec<NodeIdentity>> = drawn_distances
            .iter()
            .map(|(ttl, _)| drawn_nodes(paths, *ttl))
            .collect();
        let node_index = |path: &Path, column: usize| -> Option<usize> {
            let identity = identity_of(path, drawn_distances[column].0)?;
            let nodes = &nodes_by_column[column];
            nodes
                .iter()
                .position(|node| *node == identity)
                .or(Some(nodes.len() - 1))
        };
        let columns = drawn_distances
            .iter()
            .enumerate()
            .map(|(column, (ttl, skipped))| {
                let mut top = 0;
                let nodes = nodes_by_column[column]
                    .iter()
                    .enumerate()
                    .map(|(index, identity)| {
                        let paths_through = paths
                            .iter()
                            .filter(|path| node_index(path, column) == Some(index));
                        let flows = paths_through.map(|path| path.ports.len()).sum();
                        top += flows;
                        Node {
                            identity: *identity,
                            flows,
                            top: top - flows,
                        }
                    });
                Column {
                    ttl: *ttl,
                    skipped: *skipped,
                    nodes: nodes.collect(),
                }
            });
        let columns: Vec<Column> = columns.collect();
        let mut ribbons = Vec::new();
        for column in 1..columns.len() {
            let mut flows_by_ribbon: BTreeMap<(usize, usize, usize), usize> = BTreeMap::new();
            for (rank, path) in paths.iter().enumerate() {
                if let (Some(from), Some(to)) =
                    (node_index(path, column - 1), node_index(path, column))
                {
                    *flows_by_ribbon
                        .entry((rank.min(coloured_count), from, to))
                        .or_default() += path.ports.len();
                }
            }
            ribbons.extend(stack_ribbons(column - 1, &flows_by_ribbon));
        }
        let flows = paths.iter().map(|path| path.ports.len()).sum();
        Self {
            columns,
            ribbons,
            flows,
        }
    }
}

/// Ribbons on top of each other in both of their nodes, in the order of their paths.
fn stack_ribbons(
    column: usize,
    flows_by_ribbon: &BTreeMap<(usize, usize, usize), usize>,
) -> Vec<Ribbon> {
    let mut filled_left: BTreeMap<usize, usize> = BTreeMap::new();
    let mut filled_right: BTreeMap<usize, usize> = BTreeMap::new();
    let ribbons = flows_by_ribbon.iter().map(|((path, from, to), flows)| {
        let (left_offset, right_offset) = (
            filled_left.entry(*from).or_default(),
            filled_right.entry(*to).or_default(),
        );
        let within = (*left_offset, *right_offset);
        *left_offset += flows;
        *right_offset += flows;
        Ribbon {
            column,
            nodes: (*from, *to),
            path: *path,
            flows: *flows,
            within,
        }
    });
    ribbons.collect()
}

fn identity_of(path: &Path, ttl: usize) -> Option<NodeIdentity> {
    if ttl == 0 {
        return Some(NodeIdentity::Source);
    }
    let hop = path.hops.get(ttl - 1)?;
    Some(hop.map_or(NodeIdentity::Silent, NodeIdentity::Router))
}

/// Which distances are drawn, each with how many were left out before it: of several hops in a row
/// that all flows share, the first and the last are enough.
fn select_distances(paths: &[Path]) -> Vec<(usize, usize)> {
    let last = paths.iter().map(|path| path.hops.len()).max().unwrap_or(0);
    let is_shared = |ttl: usize| {
        let first = paths.first().and_then(|path| identity_of(path, ttl));
        first.is_some() && paths.iter().all(|path| identity_of(path, ttl) == first)
    };
    let mut distances = Vec::new();
    let mut skipped = 0;
    for ttl in 0..=last {
        let is_skipped =
            ttl > 0 && ttl < last && is_shared(ttl - 1) && is_shared(ttl) && is_shared(ttl + 1);
        if is_skipped {
            skipped += 1;
        } else {
            distances.push((ttl, skipped));
            skipped = 0;
        }
    }
    distances
}

/// The routers that are drawn at a distance, in the order of the mean rank of their paths.
fn drawn_nodes(paths: &[Path], ttl: usize) -> Vec<NodeIdentity> {
    let mut flows_and_ranks: BTreeMap<NodeIdentity, (usize, f64)> = BTreeMap::new();
    for (rank, path) in paths.iter().enumerate() {
        if let Some(identity) = identity_of(path, ttl) {
            let flows = path.ports.len();
            let (flow_sum, rank_sum) = flows_and_ranks.entry(identity).or_default();
            *flow_sum += flows;
            *rank_sum += neph_analysis::text::to_f64(flows) * neph_analysis::text::to_f64(rank);
        }
    }
    let mut nodes: Vec<(NodeIdentity, usize, f64)> = flows_and_ranks
        .into_iter()
        .map(|(identity, (flows, rank_sum))| {
            (
                identity,
                flows,
                rank_sum / neph_analysis::text::to_f64(flows),
            )
        })
        .collect();
    let exceeds_max = nodes.len() > MAX_NODES;
    if exceeds_max {
        nodes.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        nodes.truncate(MAX_NODES - 1);
    }
    nodes.sort_by(|a, b| a.2.total_cmp(&b.2).then(a.0.cmp(&b.0)));
    let mut identities: Vec<NodeIdentity> =
        nodes.into_iter().map(|(identity, _, _)| identity).collect();
    if exceeds_max {
        identities.push(NodeIdentity::Others);
    }
    identities
}

#[cfg(test)]
mod tests {
    use neph_model::{FlowHop, PathHash, TraceKind, Wall};

    use super::*;

    fn path(hops: &[u8], flows: u16) -> Path {
        let address = |last: &u8| (*last > 0).then(|| IpAddr::from([10, 0, 0, *last]));
        Path {
            hops: hops.iter().map(address).collect(),
            hash: format!("{hops:?}"),
            ports: (0..flows).collect(),
            reached: true,
            latency: None,
        }
    }

    #[test]
    fn an_unanswered_hop_does_not_create_another_path() {
        let route = |source_port: u16, hops: &[u8]| {
            let addresses = path(hops, 0).hops;
            let hop = |(ttl, address): (u8, &Option<IpAddr>)| FlowHop {
                round_trips: vec![Span::from_millis(i64::from(source_port))],
                ..FlowHop::new(ttl, *address)
            };
            FlowRoute {
                source_port,
                hops: (1..).zip(&addresses).map(hop).collect(),
                hash: PathHash::of(&addresses),
                end: TraceEnd::Reached,
            }
        };
        let trace = FlowTrace {
            destination: ([10, 0, 0, 9], 862).into(),
            kind: TraceKind::Udp,
            started: Wall::from_unix_nanos(0),
            routes: vec![
                route(30, &[1, 2, 9]),
                route(20, &[0, 2, 9]),
                route(40, &[1, 3, 9]),
            ],
            enough: None,
        };
        let paths = paths(&trace, 7, &|port, traced| match port {
            30 => Some(15.0),
            _ => traced.map(Span::millis_f64),
        });
        let ports_and_latencies: Vec<(&[u16], Option<f64>)> = paths
            .iter()
            .map(|path| (path.ports.as_slice(), path.latency))
            .collect();
        // Of two flows the median lies between them.
        assert_eq!(
            ports_and_latencies,
            [([40].as_slice(), Some(40.0)), (&[20, 30], Some(17.5))]
        );
    }

    #[test]
    fn a_diamond_keeps_its_middle_and_skips_shared_hops() {
        let paths = [
            path(&[1, 2, 3, 4, 11, 21, 9], 30),
            path(&[1, 2, 3, 4, 12, 21, 9], 10),
        ];
        let layout = Layout::of(&paths, 7);
        let drawn: Vec<(usize, usize)> = layout
            .columns
            .iter()
            .map(|column| (column.ttl, column.skipped))
            .collect();
        // Hops 1 to 3 stand between others that all flows share.
        assert_eq!(drawn, [(0, 0), (4, 3), (5, 0), (6, 0), (7, 0)]);
        let middle = &layout.columns[2].nodes;
        let heights: Vec<(usize, usize)> =
            middle.iter().map(|node| (node.flows, node.top)).collect();
        assert_eq!(heights, [(30, 0), (10, 30)]);
        let ribbons: Vec<&Ribbon> = layout
            .ribbons
            .iter()
            .filter(|ribbon| ribbon.column == 2)
            .collect();
        assert_eq!((ribbons[1].within, ribbons[1].flows), ((0, 30), 10));
    }

    #[test]
    fn merged_nodes_keep_the_number_of_flows() {
        let sixty_paths: Vec<Path> = (1..=60).map(|router| path(&[1, router, 9], 2)).collect();
        let layout = Layout::of(&sixty_paths, 3);
        assert_eq!(layout.columns[2].nodes.len(), MAX_NODES);
        for column in 0..3 {
            let ribbons = layout
                .ribbons
                .iter()
                .filter(|ribbon| ribbon.column == column);
            assert_eq!(ribbons.map(|ribbon| ribbon.flows).sum::<usize>(), 120);
        }
    }
}
