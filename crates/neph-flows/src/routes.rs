//! Combines the routes of many flows: the routers at each distance, their successors, and the paths with
//! their flows.

use std::collections::BTreeMap;
use std::net::IpAddr;

use neph_model::{
    Diamond, DiamondHop, DiamondLink, DiamondNode, DiamondPath, FlowRoute, PathHash, TraceEnd,
};

/// Combines the routes. A flow with a missing or early-ending answer belongs to the single path that
/// otherwise matches: its probes were lost there. A flow without any answer belongs to no path.
pub fn diamond(routes: &[FlowRoute]) -> Diamond {
    Diamond {
        flows: count(routes.len()),
        hops: hops(routes),
        links: links(routes),
        paths: paths(routes),
    }
}

/// Sort key that puts missing answers last.
type HopKey = (bool, Option<IpAddr>);

fn hop_key(address: Option<IpAddr>) -> HopKey {
    (address.is_none(), address)
}

fn hops(routes: &[FlowRoute]) -> Vec<DiamondHop> {
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
                from.probes = from.probes.saturating_sub(count(round_trips.len()));
            }
            if let Some(node) = nodes.get_mut(&hop_key(Some(address))) {
                node.probes += count(round_trips.len());
                node.round_trips.extend(round_trips);
            }
        }
    }
    let sorted = |(ttl, nodes): (u8, BTreeMap<HopKey, DiamondNode>)| {
        let mut nodes: Vec<DiamondNode> = nodes.into_values().collect();
        nodes.sort_by_key(|node| (node.address.is_none(), std::cmp::Reverse(node.flows)));
        for node in &mut nodes {
            node.round_trips.sort_unstable();
        }
        DiamondHop { ttl, nodes }
    };
    hops.into_iter().map(sorted).collect()
}

fn links(routes: &[FlowRoute]) -> Vec<DiamondLink> {
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

fn paths(routes: &[FlowRoute]) -> Vec<DiamondPath> {
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
        .map(|(addresses, routes)| path(addresses, &routes))
        .collect();
    paths.sort_by_key(|path| (std::cmp::Reverse(path.source_ports.len()), path.hash));
    paths
}

fn path(addresses: Vec<Option<IpAddr>>, routes: &[&FlowRoute]) -> DiamondPath {
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
    let mut at = 0;
    while let Some((torn, _)) = groups.get(at) {
        let missing = holes(torn);
        let open = is_open(&groups[at].1);
        let fits = |(complete, theirs): &(Vec<Option<IpAddr>>, Vec<&FlowRoute>)| {
            let mut pairs = torn.iter().zip(complete);
            let longer = open && !is_open(theirs) && complete.len() > torn.len();
            (longer || complete.len() == torn.len() && holes(complete) < missing)
                && pairs.all(|(ours, theirs)| ours.is_none() || ours == theirs)
        };
        let mut fitting = (0..groups.len()).filter(|other| fits(&groups[*other]));
        match (missing > 0 || open, fitting.next(), fitting.next()) {
            (true, Some(only), None) => {
                let moved = std::mem::take(&mut groups[at].1);
                groups[only].1.extend(moved);
                groups.remove(at);
            }
            _ => at += 1,
        }
    }
}

/// Whether the answers of these flows ended before their path did.
fn is_open(routes: &[&FlowRoute]) -> bool {
    let open = |route: &&FlowRoute| matches!(route.end, TraceEnd::Silent | TraceEnd::Stopped);
    routes.iter().all(open)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use neph_model::{FlowHop, Span};

    use super::*;

    fn addr(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    /// A route through these routers (0: a hole); each hop's round trip is its distance in milliseconds.
    fn route(source_port: u16, over: &[u8]) -> FlowRoute {
        let hops: Vec<FlowHop> = over
            .iter()
            .zip(1..)
            .map(|(last, ttl)| {
                let address = (*last > 0).then(|| addr(*last));
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
    fn two_ways_make_a_diamond() {
        let routes = [
            route(3, &[1, 11, 9]),
            route(1, &[1, 10, 9]),
            route(2, &[1, 10, 9]),
        ];
        let diamond = diamond(&routes);
        assert_eq!(diamond.flows, 3);
        let widths: Vec<usize> = diamond.hops.iter().map(|hop| hop.nodes.len()).collect();
        assert_eq!(widths, [1, 2, 1]);
        let middle = &diamond.hops[1].nodes;
        assert_eq!(
            (middle[0].address, middle[0].flows, middle[0].probes),
            (Some(addr(10)), 2, 4)
        );
        assert_eq!((middle[1].address, middle[1].flows), (Some(addr(11)), 1));
        let links: Vec<_> = diamond
            .links
            .iter()
            .map(|link| (link.ttl, link.from, link.to, link.flows))
            .collect();
        let link = |ttl, from: u8, to: u8, flows| {
            (ttl, (from > 0).then(|| addr(from)), Some(addr(to)), flows)
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
    fn a_lost_answer_makes_no_path_of_its_own() {
        let complete = [route(1, &[1, 10, 9]), route(2, &[1, 11, 8, 9])];
        let torn = [
            route(3, &[1, 0, 9]),
            route(4, &[0, 0, 9]),
            route(5, &[1, 11, 0, 9]),
        ];
        let routes: Vec<FlowRoute> = complete.iter().chain(&torn).cloned().collect();
        let paths = diamond(&routes).paths;
        let ports: Vec<_> = paths.iter().map(|path| path.source_ports.clone()).collect();
        assert_eq!(ports, [vec![1, 3, 4], vec![2, 5]]);
        assert_eq!(paths[0].hash, complete[0].hash);
    }

    #[test]
    fn a_flow_whose_answers_end_early_is_on_the_path_that_goes_on() {
        let mut early = route(3, &[1, 10]);
        early.end = TraceEnd::Silent;
        let routes = [route(1, &[1, 10, 9]), route(2, &[1, 11, 9]), early.clone()];
        let paths = diamond(&routes).paths;
        let ports: Vec<_> = paths.iter().map(|path| path.source_ports.clone()).collect();
        assert_eq!(ports, [vec![1, 3], vec![2]]);
        assert_eq!(diamond(&[early]).paths.len(), 1);
    }

    #[test]
    fn a_hole_that_could_be_either_stays_its_own() {
        let routes = [
            route(1, &[1, 10, 9]),
            route(2, &[1, 11, 9]),
            route(3, &[1, 0, 9]),
        ];
        assert_eq!(diamond(&routes).paths.len(), 3);
    }

    #[test]
    fn round_trips_are_those_of_the_router_that_answered() {
        let mut wandered = route(1, &[1, 10, 9]);
        wandered.hops[1].probes = 3;
        wandered.hops[1].other_addresses = vec![addr(11), addr(12)];
        wandered.hops[1].other_addresses_round_trips =
            [7, 8].map(|ms| vec![Span::from_millis(ms)]).into();
        let middle = &diamond(&[wandered, route(2, &[1, 11, 9])]).hops[1].nodes;
        let nodes = middle
            .iter()
            .map(|node| (node.address, node.probes, &node.round_trips[..]));
        let millis = Span::from_millis;
        let expected = [
            (Some(addr(10)), 1, &[millis(2)][..]),
            (Some(addr(11)), 3, &[millis(2), millis(7)][..]),
        ];
        assert_eq!(nodes.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn nothing_makes_nothing() {
        assert_eq!(diamond(&[]), Diamond::default());
        let mut silent = route(1, &[0, 0]);
        silent.end = TraceEnd::Silent;
        let mut unasked = silent.clone();
        unasked.hops.clear();
        let routes = diamond(&[silent, unasked]);
        assert_eq!((routes.flows, routes.paths), (2, Vec::new()));
    }
}
