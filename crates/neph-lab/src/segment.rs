//! What switches join: the neighbours of a site beyond the other end of its link.
//!
//! Owns the search through switches. Does not write neighbour entries: the plan does.

use crate::topology::{Link, Topology};

/// A site that is reached from a port without passing a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Neighbour {
    /// Its index among the topology's sites.
    pub(crate) site: usize,
    /// The link it is connected by, and so its interface.
    pub(crate) link: usize,
    /// Which end of that link it is: 0 for `a`.
    pub(crate) end: u8,
}

/// Every neighbour behind the link with index `link`, seen from `from`: the site at its other
/// end, or all sites that the switch there leads to. In the order in which they are found.
pub(crate) fn neighbours_over(topology: &Topology, from: usize, link: usize) -> Vec<Neighbour> {
    let mut neighbours = Vec::new();
    let mut open = vec![(from, link)];
    let mut visited = vec![false; topology.links.len()];
    while let Some((from, link)) = open.pop() {
        if std::mem::replace(&mut visited[link], true) {
            continue;
        }
        let Some((site, end)) = Topology::far_end(&topology.links[link], from) else {
            continue;
        };
        if topology.sites[site].is_switch() {
            let others = links_of(topology, site).filter(|other| *other != link);
            open.extend(others.map(|other| (site, other)));
        } else {
            neighbours.push(Neighbour { site, link, end });
        }
    }
    neighbours.sort_unstable();
    neighbours
}

/// The links from `from` over the link with index `link` to the site `to`, which is behind it: each
/// with the site or switch that it is entered at. None where `to` is not behind it.
pub(crate) fn links_to(
    topology: &Topology,
    (from, link): (usize, usize),
    to: usize,
) -> Option<Vec<(usize, usize)>> {
    let (neighbour, _) = Topology::far_end(&topology.links[link], from)?;
    if neighbour == to {
        return Some(vec![(link, from)]);
    }
    if !topology.sites[neighbour].is_switch() {
        return None;
    }
    // Switches form no ring, so this ends.
    let mut other_links = links_of(topology, neighbour).filter(|other| *other != link);
    let rest = other_links.find_map(|other| links_to(topology, (neighbour, other), to))?;
    Some(std::iter::once((link, from)).chain(rest).collect())
}

/// The indices of the links at a site.
pub(crate) fn links_of(topology: &Topology, site: usize) -> impl Iterator<Item = usize> {
    let touches = move |link: &Link| link.a == site || link.b == site;
    let links = topology.links.iter().enumerate();
    links.filter_map(move |(index, link)| touches(link).then_some(index))
}

/// The first link that joins two switches which are joined already.
pub(crate) fn first_ring_link(topology: &Topology) -> Option<usize> {
    // Union-find: each switch points to another one of its group, a root to itself.
    let mut parents: Vec<usize> = (0..topology.sites.len()).collect();
    let root = |parents: &[usize], mut site: usize| {
        while parents[site] != site {
            site = parents[site];
        }
        site
    };
    for (index, link) in topology.links.iter().enumerate() {
        if !topology.sites[link.a].is_switch() || !topology.sites[link.b].is_switch() {
            continue;
        }
        let (a, b) = (root(&parents, link.a), root(&parents, link.b));
        if a == b {
            return Some(index);
        }
        parents[a] = b;
    }
    None
}
