//! The routes of a site: to each address through one neighbour, or several equal ones.
//!
//! Owns the text of a route and the seeds of the kernel's hash. [`crate::route`] finds equal next hops.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::host_prefix;
use crate::gate::mix_bits;
use crate::route::{self, Hop};
use crate::topology::{Site, Topology};

/// The weights of links as next hops of one router, by the link's index; the default is 1. A next hop of
/// weight 0 is not used, unless all are 0: then the first is.
pub(crate) type Weights = BTreeMap<usize, u32>;

/// A route to one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The address with the length of its prefix.
    destination: String,
    /// The longest packet, if a link allows less than its interface.
    mtu: Option<u32>,
    /// The options that are common to all next hops.
    common_options: String,
    /// The next hops: a link's index, and text for `ip`. Never empty.
    next_hops: Vec<(usize, String)>,
}

impl Route {
    /// Whether it has several next hops.
    pub(crate) fn is_split(&self) -> bool {
        self.next_hops.len() > 1
    }

    /// Whether one of its next hops uses the link with this index.
    pub(crate) fn may_use(&self, link: usize) -> bool {
        self.next_hops.iter().any(|(index, _)| *index == link)
    }

    /// The line for `ip` that has to `add` or `replace` it with these weights.
    pub(crate) fn line(&self, verb: &str, weights: &Weights) -> String {
        let weight = |link: &usize| weights.get(link).copied().unwrap_or(1);
        let mut used = self
            .next_hops
            .iter()
            .map(|(link, step)| (step, weight(link)));
        let mut used: Vec<(&String, u32)> =
            used.by_ref().filter(|(_, weight)| *weight > 0).collect();
        if used.is_empty() {
            used.extend(self.next_hops.first().map(|(_, step)| (step, 1)));
        }
        let Self {
            destination,
            common_options,
            ..
        } = self;
        let mtu = self
            .mtu
            .map_or_else(String::new, |mtu| format!(" mtu {mtu}"));
        if let [(step, _)] = used[..] {
            return format!("route {verb} {destination} {step}{mtu} {common_options}");
        }
        let next_hops = used.iter();
        let next_hops = next_hops.map(|(step, weight)| format!(" nexthop {step} weight {weight}"));
        format!(
            "route {verb} {destination}{mtu} {common_options}{}",
            next_hops.collect::<String>()
        )
    }
}

/// The routes from the site with index `index` to all others, one for each address family that both and the
/// neighbours in between have.
pub(crate) fn routes(topology: &Topology, index: usize) -> Vec<Route> {
    let hops = route::all_first_hops(topology, index);
    let routes = hops.iter().enumerate().flat_map(|(target, hops)| {
        let hops: Vec<Hop> = hops.iter().copied().collect();
        let addresses = topology.sites[target].addresses();
        let routes = addresses.filter_map(|address| route_over(topology, index, &hops, address));
        routes.collect::<Vec<_>>()
    });
    routes.collect()
}

/// The route from the site with index `index` to an address that is reached through the site with index
/// `through`; `None` if both are the same site.
pub(crate) fn route_through(
    topology: &Topology,
    (index, through): (usize, usize),
    address: IpAddr,
) -> Option<Route> {
    let hops = &route::all_first_hops(topology, index)[through];
    let hops: Vec<Hop> = hops.iter().copied().collect();
    route_over(topology, index, &hops, address)
}

/// The route from a site to `address` over these first hops; `None` without its address family.
fn route_over(topology: &Topology, index: usize, hops: &[Hop], address: IpAddr) -> Option<Route> {
    let source_site = &topology.sites[index];
    let address_of_family = |site: &Site| {
        site.addresses()
            .find(|candidate| candidate.is_ipv4() == address.is_ipv4())
    };
    let source = address_of_family(source_site)?;
    let next_hops = hops.iter().filter_map(|hop| {
        let gateway = address_of_family(&topology.sites[hop.via])?;
        let dev = &topology.links[hop.link].name;
        let next_hop = if gateway == address {
            format!("dev {dev}")
        } else {
            format!("via {gateway} onlink dev {dev}")
        };
        Some((hop.link, next_hop))
    });
    let next_hops: Vec<(usize, String)> = next_hops.collect();
    let links = next_hops.iter().map(|(link, _)| *link);
    (!next_hops.is_empty()).then(|| Route {
        destination: host_prefix(address),
        mtu: links
            .filter_map(|link| smaller_mtu(topology, index, link))
            .min(),
        common_options: format!("src {source}{}", congestion_option(source_site)),
        next_hops: next_hops.clone(),
    })
}

/// Locked: an application cannot choose another one, so the topology decides. In a namespace the sysctl only
/// accepts unprivileged algorithms, and CUBIC is not one.
pub(crate) fn congestion_option(site: &Site) -> String {
    let name = site.congestion_control.as_ref();
    name.map_or_else(String::new, |name| format!(" congctl lock {name}"))
}

/// The MTU of a link in the direction that leaves this site, if its interface allows more for incoming
/// packets.
fn smaller_mtu(topology: &Topology, index: usize, link: usize) -> Option<u32> {
    let link = &topology.links[link];
    let shape = if link.a == index {
        &link.a_to_b
    } else {
        &link.b_to_a
    };
    shape.mtu.filter(|mtu| link.interface_mtu() > Some(*mtu))
}

/// The seed of the hash at a site after this many reshuffles. It differs between sites, or consecutive
/// routers would all choose the same. Never 0, which the kernel takes for no seed.
pub(crate) fn hash_seed(site: usize, reshuffles: u64) -> u32 {
    let site = u64::try_from(site).unwrap_or(u64::MAX).wrapping_add(1);
    let seed = mix_bits(mix_bits(site).wrapping_add(reshuffles));
    let [a, b, c, d, ..] = seed.to_le_bytes();
    u32::from_le_bytes([a, b, c, d]) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_route() -> Route {
        Route {
            destination: "10.0.0.6/32".to_owned(),
            mtu: None,
            common_options: "src 10.0.0.1".to_owned(),
            next_hops: vec![
                (0, "via 10.0.0.2 onlink dev r0-m1".to_owned()),
                (3, "via 10.0.0.3 onlink dev r0-m2".to_owned()),
            ],
        }
    }

    #[test]
    fn next_hops_have_weights_and_those_of_weight_0_are_omitted() {
        let line_with_weights = |weights: &[(usize, u32)]| {
            let weights: Weights = weights.iter().copied().collect();
            split_route().line("replace", &weights)
        };
        assert_eq!(
            line_with_weights(&[(3, 5), (9, 7)]),
            "route replace 10.0.0.6/32 src 10.0.0.1 \
             nexthop via 10.0.0.2 onlink dev r0-m1 weight 1 \
             nexthop via 10.0.0.3 onlink dev r0-m2 weight 5"
        );
        let single_route = "route replace 10.0.0.6/32 via 10.0.0.3 onlink dev r0-m2 src 10.0.0.1";
        assert_eq!(line_with_weights(&[(0, 0)]), single_route);
        assert!(
            line_with_weights(&[(0, 0), (3, 0)]).contains("dev r0-m1 src"),
            "the first"
        );
    }

    #[test]
    fn seeds_differ_by_site_and_reshuffle_and_are_never_zero() {
        let seeds = (0..50).flat_map(|site| (0..50).map(move |times| hash_seed(site, times)));
        let seeds: std::collections::BTreeSet<u32> = seeds.collect();
        assert!(seeds.len() == 2_500 && !seeds.contains(&0));
    }
}
