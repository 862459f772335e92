//! Combines the routes of many flows: the routers at each distance, their successors, and the paths with
//! their flows.

use std::collections::BTreeMap;
use std::net::IpAddr;

use neph_model::{
    Diamond, DiamondHop, DiamondLink, DiamondNode, DiamondPath, FlowRoute, PathHash, TraceEnd,
};

/// Combines the routes. A flow with a missing or early-ending answer belongs to the single path that
/// otherwise matches: its probes were lost there. A flow without any answer belongs to no path.
pub fn build_diamond(routes: &[FlowRoute]) -> Diamond {
    Diamond {
        flows: to_u32(routes.len()),
        hops: build_hops(routes),
        links: build_links(routes),
        paths: build_paths(routes),
    }
}

/// Sort key that puts missing answers last.
type HopKey = (bool, Option<IpAddr>);

fn hop_key(address: Option<IpAddr>) -> HopKey {
    (address.is_none(), address)
}

fn build_hops(routes: &[FlowRoute]) -> Vec<DiamondHop> {
    let mut hops: BTreeMap<u8, BTreeMap<HopKey, DiamondNode>> = BTreeMap::new();
    let route_hops = || routes.iter().flat_map(|route| &route.hops);
    for hop in route_hops() {
        let nodes = hops.entry(hop.ttl).or_default();
        let node = nodes
            .entry(hop_key(hop.address))
            .or_insert_with(|| DiamondNode {
                address: hop.address,
                flows: 0,
                probes: 0,
                round_trips: Vec::new(),
            });
        node.flows += 1;
        node.probes += hop.probes;
        node.round_trips.extend(&hop.round_trips);
    }
    // A router that answered only some probes of a flow gets a row only if it has flows of its own.
    for hop in route_hops() {
        let Some(nodes) = hops.get_mut(&hop.ttl) else {
            continue;
        };
        for (address, round_trips) in hop.alongside() {
            if let Some(from) = nodes.get_mut(&hop_key(hop.address)) {
                from.probes = from.probes.saturating_sub(to_u32(round_trips.len()));
            }
            if let Some(node) = nodes.get_mut(&hop_key(Some(address))) {
                node.probes += to_u32(round_trips.len());
                node.round_trips.extend(round_trips);
            }
        }
    }
    let to_hop = |(ttl, nodes): (u8, BTreeMap<HopKey, DiamondNode>)| {
        let mut nodes: Vec<DiamondNode> = nodes.into_values().collect();
        nodes.sort_by_key(|node| (node.address.is_none(), std::cmp::Reverse(node.flows)));
        for node in &mut nodes {
            node.round_trips.sort_unstable();
        }
        DiamondHop { ttl, nodes }
    };
    hops.into_iter().map(to_hop).collect()
}

fn build_links(routes: &[FlowRoute]) -> Vec<DiamondLink> {
    let mut links: BTreeMap<(u8, HopKey, HopKey), DiamondLink> = BTreeMap::new();
    for route in routes {
        let mut from = None;
        for hop in &route.hops {
            let ttl = hop.ttl - 1;
            let key = (ttl, hop_key(from), hop_key(hop.address));
            let link = links.entry(key).or_insert(DiamondLink {
                ttl,
                from,
                to: hop.address,
                flows: 0,
            });
            link.flows += 1;
            from = hop.address;
        }
    }
    links.into_values().collect()
}

fn build_paths(routes: &[FlowRoute]) -> Vec<DiamondPath> {
    let mut by_addresses: BTreeMap<(bool, Vec<Option<IpAddr>>), Vec<&FlowRoute>> = BTreeMap::new();
    for route in routes {
        if route.is_unanswered() {
            continue;
        }
        let key = (route.reached(), route.addresses());
        by_addresses.entry(key).or_default().push(route);
    }
    let mut groups: Vec<(Vec<Option<IpAddr>>, Vec<&FlowRoute>)> = by_addresses
        .into_iter()
        .map(|((_, addresses), routes)| (addresses, routes))
        .collect();
    fill_holes(&mut groups);
    let mut paths: Vec<DiamondPath> = groups
        .into_iter()
        .map(|(addresses, routes)| build_path(addresses, &routes))
        .collect();
    paths.sort_by_key(|path| (std::cmp::Reverse(path.source_ports.len()), path.hash));
    paths
}

fn build_path(addresses: Vec<Option<IpAddr>>, routes: &[&FlowRoute]) -> DiamondPath {
    let mut source_ports: Vec<u16> = routes.iter().map(|route| route.source_port).collect();
    source_ports.sort_unstable();
    let destinations = routes.iter().filter_map(|route| route.destination());
    let mut round_trips: Vec<_> = destinations
        .flat_map(|hop| hop.round_trips.iter().copied())
        .collect();
    round_trips.sort_unstable();
    DiamondPath {
        hash: PathHash::of(&addresses),
        addresses,
        source_ports,
        reached: routes.iter().any(|route| route.reached()),
        round_trips,
    }
}

/// Merges each group with holes into the only other group that may be its path.
fn fill_holes(groups: &mut Vec<(Vec<Option<IpAddr>>, Vec<&FlowRoute>)>) {
    let holes =
        |addresses: &[Option<IpAddr>]| addresses.iter().filter(|address| address.is_none()).count();
    // Fewest holes first, open ends last: a merged group is no candidate for groups with less information.
    groups.sort_by_key(|(addresses, routes)| (is_open(routes), holes(addresses)));
    let mut index = 0;
    while let Some((incomplete, _)) = groups.get(index) {
        let hole_count = holes(incomplete);
        let is_group_open = is_open(&groups[index].1);
        let fits = |(candidate, candidate_routes): &(Vec<Option<IpAddr>>, Vec<&FlowRoute>)| {
            let mut pairs = incomplete.iter().zip(candidate);
            let is_longer =
                is_group_open && !is_open(candidate_routes) && candidate.len() > incomplete.len();
            (is_longer || candidate.len() == incomplete.len() && holes(candidate) < hole_count)
                && pairs.all(|(address, other)| address.is_none() || address == other)
        };
        let mut candidates = (0..groups.len()).filter(|other| fits(&groups[*other]));
        match (
            hole_count > 0 || is_group_open,
            candidates.next(),
            candidates.next(),
        ) {
            (true, Some(target), None) => {
                let merged_routes = std::mem::take(&mut groups[index].1);
                groups[target].1.extend(merged_routes);
                groups.remove(index);
            }
            _ => index += 1,
        }
    }
}

/// Whether the answers of these flows ended before their path did.
fn is_open(routes: &[&FlowRoute]) -> bool {
    let is_open_route =
        |route: &&FlowRoute| matches!(route.end, TraceEnd::Silent | TraceEnd::Stopped);
    routes.iter().all(is_open_route)
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use neph_model::{FlowHop, Span};

    use super::*;

    fn address_of(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    /// A route through these routers (0: a hole); each hop's round trip is its distance in milliseconds.
    fn route(source_port: u16, routers: &[u8]) -> FlowRoute {
        let hops: Vec<FlowHop> = routers
            .iter()
            .zip(1..)
            .map(|(last, ttl)| {
                let address = (*last > 0).then(|| address_of(*last));
                let round_trip = address.map(|_| Span::from_millis(ttl));
                FlowHop {
                    probes: 2,
                    round_trips: round_trip.into_iter().collect(),
                    ..FlowHop::new(u8::try_from(ttl).expect("near"), address)
                }
            })
            .collect();
        let addresses: Vec<_> = hops.iter().map(|hop| hop.address).collect();
        FlowRoute {
            source_port,
            hash: PathHash::of(&addresses),
            hops,
            end: TraceEnd::Reached,
        }
    }

    #[test]
    fn two_paths_form_a_diamond() {
        let routes = [
            route(3, &[1, 11, 9]),
            route(1, &[1, 10, 9]),
            route(2, &[1, 10, 9]),
        ];
        let diamond = build_diamond(&routes);
        assert_eq!(diamond.flows, 3);
        let widths: Vec<usize> = diamond.hops.iter().map(|hop| hop.nodes.len()).collect();
        assert_eq!(widths, [1, 2, 1]);
        let middle = &diamond.hops[1].nodes;
        assert_eq!(
            (middle[0].address, middle[0].flows, middle[0].probes),
            (Some(address_of(10)), 2, 4)
        );
        assert_eq!(
            (middle[1].address, middle[1].flows),
            (Some(address_of(11)), 1)
        );
        let links: Vec<_> = diamond
            .links
            .iter()
            .map(|link| (link.ttl, link.from, link.to, link.flows))
            .collect();
        let link = |ttl, from: u8, to: u8, flows| {
            (
                ttl,
                (from > 0).then(|| address_of(from)),
                Some(address_of(to)),
                flows,
            )
        };
        assert_eq!(
            links,
            [
                link(0, 0, 1, 3),
                link(1, 1, 10, 2),
                link(1, 1, 11, 1),
                link(2, 10, 9, 2),
                link(2, 11, 9, 1),
            ]
        );
        let paths: Vec<_> = diamond
            .paths
            .iter()
            .map(|path| path.source_ports.clone())
            .collect();
        assert_eq!(paths, [vec![1, 2], vec![3]]);
        assert_eq!(diamond.paths[0].round_trips, [Span::from_millis(3); 2]);
        assert_eq!(diamond.paths[0].hash, routes[1].hash);
    }

    #[test]
    fn a_lost_answer_creates_no_additional_path() {
        let complete = [route(1, &[1, 10, 9]), route(2, &[1, 11, 8, 9])];
        let incomplete = [
            route(3, &[1, 0, 9]),
            route(4, &[0, 0, 9]),
            route(5, &[1, 11, 0, 9]),
        ];
        let routes: Vec<FlowRoute> = complete.iter().chain(&incomplete).cloned().collect();
        let paths = build_diamond(&routes).paths;
        let ports: Vec<_> = paths.iter().map(|path| path.source_ports.clone()).collect();
        assert_eq!(ports, [vec![1, 3, 4], vec![2, 5]]);
        assert_eq!(paths[0].hash, complete[0].hash);
    }

    #[test]
    fn a_flow_with_a_truncated_trace_is_assigned_to_the_longer_path() {
        let mut short_route = route(3, &[1, 10]);
        short_route.end = TraceEnd::Silent;
        let routes = [
            route(1, &[1, 10, 9]),
            route(2, &[1, 11, 9]),
            short_route.clone(),
        ];
        let paths = build_diamond(&routes).paths;
        let ports: Vec<_> = paths.iter().map(|path| path.source_ports.clone()).collect();
        assert_eq!(ports, [vec![1, 3], vec![2]]);
        assert_eq!(build_diamond(&[short_route]).paths.len(), 1);
    }

    #[test]
    fn an_ambiguous_unanswered_hop_stays_separate() {
        let routes = [
            route(1, &[1, 10, 9]),
            route(2, &[1, 11, 9]),
            route(3, &[1, 0, 9]),
        ];
        assert_eq!(build_diamond(&routes).paths.len(), 3);
    }

    #[test]
    fn rtts_belong_to_the_router_that_answered() {
        let mut changing_route = route(1, &[1, 10, 9]);
        changing_route.hops[1].probes = 3;
        changing_route.hops[1].other_addresses = vec![address_of(11), address_of(12)];
        changing_route.hops[1].other_addresses_round_trips =
            [7, 8].map(|ms| vec![Span::from_millis(ms)]).into();
        let middle = &build_diamond(&[changing_route, route(2, &[1, 11, 9])]).hops[1].nodes;
        let nodes = middle
            .iter()
            .map(|node| (node.address, node.probes, &node.round_trips[..]));
        let millis = Span::from_millis;
        let expected = [
            (Some(address_of(10)), 1, &[millis(2)][..]),
            (Some(address_of(11)), 3, &[millis(2), millis(7)][..]),
        ];
        assert_eq!(nodes.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn no_routes_form_an_empty_diamond() {
        assert_eq!(build_diamond(&[]), Diamond::default());
        let mut silent_route = route(1, &[0, 0]);
        silent_route.end = TraceEnd::Silent;
        let mut untraced_route = silent_route.clone();
        untraced_route.hops.clear();
        let routes = build_diamond(&[silent_route, untraced_route]);
        assert_eq!((routes.flows, routes.paths), (2, Vec::new()));
    }
}
