//! Links that circuits share, from the hops of their traces.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use neph_model::{Hop, Traceroute};

/// The route of a circuit, as far as routers answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitRoute {
    /// Where it begins: the site's name.
    pub from: String,
    /// Where it ends: the name of the other site, or of the endpoint.
    pub to: String,
    /// By distance: the router that answered. `None` if none did, or several, so that the forwarding one is
    /// not known. The destination is no hop.
    pub hops: Vec<Option<IpAddr>>,
}

impl CircuitRoute {
    /// The route that a traceroute found.
    pub fn from_traceroute(from: &str, to: &str, trace: &Traceroute) -> Self {
        let max_ttl = trace.hops.iter().map(|hop| hop.ttl).max().unwrap_or(0);
        let router_at = |ttl: u8| {
            let mut hops = trace.hops.iter();
            let hop: &Hop = hops.find(|hop| hop.ttl == ttl)?;
            match hop.addresses.as_slice() {
                [only] if *only != trace.destination => Some(*only),
                _ => None,
            }
        };
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            hops: (1..=max_ttl).map(router_at).collect(),
        }
    }

    fn name(&self) -> String {
        format!("{}-{}", self.from, self.to)
    }

    fn has_common_end(&self, other: &Self) -> bool {
        let ends = [&other.from, &other.to];
        ends.contains(&&self.from) || ends.contains(&&self.to)
    }
}

/// Routers that forward the packets of several circuits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedHops {
    /// The routers, in the order in which the packets pass them; at least two.
    pub routers: Vec<IpAddr>,
    /// Indices of the circuits; at least two, two of which have no end in common.
    pub circuits: Vec<usize>,
    /// Names of the circuits, in the same order.
    pub names: Vec<String>,
}

/// `circuits ams-mil and lju-bra share the link 10.0.0.1 -> 10.0.0.2`, with the number of routers where
/// they are more.
impl fmt::Display for SharedHops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (last, others) = self.names.split_last().ok_or(fmt::Error)?;
        write!(f, "circuits {} and {last} share ", others.join(", "))?;
        match self.routers.as_slice() {
            [first, second] => write!(f, "the link {first} -> {second}"),
            routers => {
                let ends = [routers.first(), routers.last()];
                let [Some(first), Some(end)] = ends else {
                    return Err(fmt::Error);
                };
                write!(f, "the path {first} -> {end} ({} routers)", routers.len())
            }
        }
    }
}

/// The links that circuits share: two routers that answered one after the other, in the same order, in the
/// traces of several circuits. Neighbouring links of the same circuits are one. What is shared only by
/// circuits that have an end in common is left out, since they exclude each other there.
///
/// What is found may still be two links in parallel, and routers that do not answer hide links: a declared
/// link is better.
pub fn shared_hops(routes: &[CircuitRoute]) -> Vec<SharedHops> {
    let mut users: BTreeMap<(IpAddr, IpAddr), BTreeSet<usize>> = BTreeMap::new();
    for (circuit, route) in routes.iter().enumerate() {
        for link in links(route) {
            users.entry(link).or_default().insert(circuit);
        }
    }
    let mut shared: Vec<SharedHops> = Vec::new();
    for route in routes {
        let mut previous_users: Option<&BTreeSet<usize>> = None;
        let mut router_run: Vec<IpAddr> = Vec::new();
        for (address, other) in links(route) {
            let link_users = &users[&(address, other)];
            if previous_users == Some(link_users) && router_run.last() == Some(&address) {
                router_run.push(other);
            } else {
                add_shared_hops(&mut shared, routes, &router_run, previous_users);
                router_run = vec![address, other];
            }
            previous_users = Some(link_users);
        }
        add_shared_hops(&mut shared, routes, &router_run, previous_users);
    }
    shared
}

fn links(route: &CircuitRoute) -> impl Iterator<Item = (IpAddr, IpAddr)> {
    let neighbours = route.hops.iter().zip(route.hops.iter().skip(1));
    let known_addresses = neighbours.filter_map(|(address, other)| (*address).zip(*other));
    // A router that answers at two distances is no link.
    known_addresses.filter(|(address, other)| address != other)
}

/// Takes a run of links in, once, if circuits without a common end share it.
fn add_shared_hops(
    shared: &mut Vec<SharedHops>,
    routes: &[CircuitRoute],
    addresses: &[IpAddr],
    circuits: Option<&BTreeSet<usize>>,
) {
    let Some(circuits) = circuits.filter(|circuits| circuits.len() > 1) else {
        return;
    };
    let has_disjoint_circuits = circuits.iter().any(|circuit| {
        let mut others = circuits.iter();
        others.any(|other| circuit != other && !routes[*circuit].has_common_end(&routes[*other]))
    });
    let is_known = shared.iter().any(|known| known.routers == addresses);
    if has_disjoint_circuits && !is_known {
        shared.push(SharedHops {
            routers: addresses.to_vec(),
            circuits: circuits.iter().copied().collect(),
            names: circuits
                .iter()
                .map(|circuit| routes[*circuit].name())
                .collect(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(from: &str, to: &str, hops: &[u8]) -> CircuitRoute {
        let hops = hops.iter().map(|last| {
            let address = IpAddr::from([10, 0, 0, *last]);
            (*last > 0).then_some(address)
        });
        CircuitRoute {
            from: from.to_owned(),
            to: to.to_owned(),
            hops: hops.collect(),
        }
    }

    fn sentences(routes: &[CircuitRoute]) -> Vec<String> {
        shared_hops(routes)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn two_circuits_without_a_common_end_share_the_path_between_two_routers() {
        let routes = [
            route("ams", "mil", &[1, 7, 8, 9, 2]),
            route("lju", "bra", &[3, 7, 8, 9, 4]),
            route("osl", "rom", &[5, 8, 7, 6]),
        ];
        assert_eq!(
            sentences(&routes),
            ["circuits ams-mil and lju-bra share the path 10.0.0.7 -> 10.0.0.9 (3 routers)"]
        );
        assert_eq!(shared_hops(&routes)[0].circuits, [0, 1]);
    }

    #[test]
    fn an_unanswered_hop_hides_a_link_and_the_reverse_direction_is_a_different_link() {
        assert!(sentences(&[route("a", "b", &[7, 0, 8]), route("c", "d", &[7, 0, 8])]).is_empty());
        assert!(sentences(&[route("a", "b", &[7, 8]), route("c", "d", &[8, 7])]).is_empty());
        assert_eq!(
            sentences(&[route("a", "b", &[7, 8, 0, 9]), route("c", "d", &[0, 7, 8])]),
            ["circuits a-b and c-d share the link 10.0.0.7 -> 10.0.0.8"]
        );
    }

    #[test]
    fn links_shared_only_by_circuits_of_one_site_are_not_listed() {
        let routes = [route("a", "b", &[7, 8]), route("a", "c", &[7, 8])];
        assert!(sentences(&routes).is_empty());
    }

    #[test]
    fn links_shared_by_two_and_by_three_circuits_are_both_found() {
        let routes = [
            route("a", "b", &[7, 8, 9]),
            route("c", "d", &[7, 8, 9]),
            route("e", "f", &[8, 9]),
        ];
        assert_eq!(
            sentences(&routes),
            [
                "circuits a-b and c-d share the link 10.0.0.7 -> 10.0.0.8",
                "circuits a-b, c-d and e-f share the link 10.0.0.8 -> 10.0.0.9"
            ]
        );
    }

    #[test]
    fn ambiguous_hops_and_the_destination_are_no_routers_of_the_route() {
        let hop = |ttl, last: &[u8]| Hop {
            ttl,
            addresses: last.iter().map(|last| [10, 0, 0, *last].into()).collect(),
            round_trips: Vec::new(),
        };
        let trace = Traceroute {
            block: 0,
            endpoint: "e".to_owned(),
            site: None,
            destination: [10, 0, 0, 9].into(),
            started: neph_model::Wall::from_unix_nanos(0),
            hops: vec![hop(1, &[1]), hop(2, &[2, 3]), hop(4, &[4]), hop(5, &[9])],
            reached: true,
            failure: None,
        };
        assert_eq!(
            CircuitRoute::from_traceroute("a", "b", &trace).hops,
            route("a", "b", &[1, 0, 0, 4, 0]).hops
        );
    }
}
