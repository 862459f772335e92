//! Next hops from a site to every other site: shortest paths by delay, then hops; or the direct link if the
//! topology wants that.
//!
//! Owns the search. The plan writes the routes.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use neph_model::Span;

use crate::gate::Shape;
use crate::segment;
use crate::topology::{Link, Routing, Topology};

/// Cost of a hop in addition to its delay, so that of two paths without delay the one with fewer hops is
/// used. About the time of forwarding here.
const HOP_COST: Span = Span::from_micros(10);

/// The first hop of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hop {
    /// Index of the outgoing link.
    pub(crate) link: usize,
    /// Index of the next node: the site at the other end, or behind the switch there.
    pub(crate) via: usize,
}

/// For each site, the first hop from `start` towards it; `None` for `start` itself and for unreachable sites.
/// Dijkstra's algorithm; of equal paths, the first link in the file wins.
pub(crate) fn first_hops(topology: &Topology, start: usize) -> Vec<Option<Hop>> {
    let count = topology.sites.len();
    let mut hops: Vec<Option<Hop>> = vec![None; count];
    let mut done = vec![false; count];
    let mut open = BinaryHeap::from([Reverse((Span::ZERO, None, start))]);
    while let Some(Reverse((cost, first, site))) = open.pop() {
        if std::mem::replace(&mut done[site], true) {
            continue;
        }
        hops[site] = first;
        for (index, link) in topology.links.iter().enumerate() {
            let Some((neighbour, delay)) = neighbour_over(link, site) else {
                continue;
            };
            let first = match first {
                None => Hop {
                    link: index,
                    via: neighbour,
                },
                // A switch forwards packets for the neighbour behind it.
                Some(Hop { link, via }) if topology.sites[via].is_switch() => Hop {
                    link,
                    via: neighbour,
                },
                Some(hop) => hop,
            };
            open.push(Reverse((cost + delay + HOP_COST, Some(first), neighbour)));
        }
    }
    match topology.routing {
        Routing::Fastest => {}
        Routing::Direct => prefer_direct(topology, start, &mut hops),
        Routing::Ecmp => {
            let equal = equal_hops(topology, start).into_iter();
            hops = equal.map(|equal| equal.into_iter().next()).collect();
        }
    }
    hops
}

/// Like [`first_hops`], with all equal first hops: more than one only if the topology wants that. In the
/// order of the links in the file.
pub(crate) fn all_first_hops(topology: &Topology, start: usize) -> Vec<BTreeSet<Hop>> {
    if topology.routing == Routing::Ecmp {
        return equal_hops(topology, start);
    }
    let hops = first_hops(topology, start).into_iter();
    hops.map(|hop| hop.into_iter().collect()).collect()
}

/// For each site, the first hops from `start` of all paths to it with the fewest links.
fn equal_hops(topology: &Topology, start: usize) -> Vec<BTreeSet<Hop>> {
    let mut hops: Vec<BTreeSet<Hop>> = vec![BTreeSet::new(); topology.sites.len()];
    let mut done = vec![false; topology.sites.len()];
    done[start] = true;
    let mut frontier = vec![start];
    while !frontier.is_empty() {
        let mut next = BTreeSet::new();
        for site in frontier {
            for (index, link) in topology.links.iter().enumerate() {
                let Some((neighbour, _)) =
                    Topology::far_end(link, site).filter(|(neighbour, _)| !done[*neighbour])
                else {
                    continue;
                };
                next.insert(neighbour);
                let first = |hop: Hop| {
                    let via = hop.via;
                    let via = if topology.sites[via].is_switch() {
                        neighbour
                    } else {
                        via
                    };
                    Hop { via, ..hop }
                };
                let own_hop = (site == start).then_some(Hop {
                    link: index,
                    via: neighbour,
                });
                let next_hops: Vec<Hop> = hops[site].iter().copied().map(first).collect();
                hops[neighbour].extend(next_hops.into_iter().chain(own_hop));
            }
        }
        frontier = next.into_iter().collect();
        for site in &frontier {
            done[*site] = true;
        }
    }
    hops
}

/// The shapes of the links from one site to another, in order; `None` for a site and itself, and for
/// unreachable sites.
pub(crate) fn path_shapes(topology: &Topology, from: usize, to: usize) -> Option<Vec<&Shape>> {
    let mut shapes = Vec::new();
    let mut site = from;
    while site != to {
        let hop = first_hops(topology, site)[to]?;
        for (link, entered) in segment::links_to(topology, (site, hop.link), hop.via)? {
            let link = &topology.links[link];
            shapes.push(if link.a == entered {
                &link.a_to_b
            } else {
                &link.b_to_a
            });
        }
        site = hop.via;
    }
    (from != to).then_some(shapes)
}

impl Topology {
    /// Links without a route, because other paths between all sites are at least as fast.
    pub fn unused_links(&self) -> Vec<&Link> {
        if self.routing != Routing::Fastest {
            return Vec::new();
        }
        let mut used = BTreeSet::new();
        for site in 0..self.sites.len() {
            for hop in first_hops(self, site).into_iter().flatten() {
                let links = segment::links_to(self, (site, hop.link), hop.via);
                used.extend(links.into_iter().flatten().map(|(link, _)| link));
            }
        }
        let links = self.links.iter().enumerate();
        let unused = links.filter(|(index, _)| !used.contains(index));
        unused.map(|(_, link)| link).collect()
    }
}

/// The other end of `link` from `site`, and its delay.
fn neighbour_over(link: &Link, site: usize) -> Option<(usize, Span)> {
    let (neighbour, end) = Topology::far_end(link, site)?;
    let delay = match end {
        0 => link.b_to_a.min_delay(),
        _ => link.a_to_b.min_delay(),
    };
    Some((neighbour, delay))
}

/// Reaches each neighbour over the link to it: the fastest, then the first of several.
fn prefer_direct(topology: &Topology, start: usize, hops: &mut [Option<Hop>]) {
    let mut direct: Vec<(Span, usize, usize)> = Vec::new();
    for (index, link) in topology.links.iter().enumerate() {
        if let Some((neighbour, delay)) = neighbour_over(link, start) {
            direct.push((delay, index, neighbour));
        }
    }
    // The best comes last and overrides the others.
    direct.sort_unstable_by(|a, b| b.cmp(a));
    for (_, link, via) in direct {
        if !topology.sites[via].is_switch() {
            hops[via] = Some(Hop { link, via });
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;

    /// a - b - c in a row with 1 ms per link, and a direct link a - c that is slow in one direction.
    fn triangle() -> Topology {
        let site = |name: &str, last: u8| {
            format!("[[site]]\nname = \"{name}\"\naddress = \"10.0.0.{last}\"\n")
        };
        let link =
            |a: &str, b: &str, rest: &str| format!("[[link]]\na = \"{a}\"\nb = \"{b}\"\n{rest}\n");
        let text = [
            "version = 1\n".to_owned(),
            site("a", 1),
            site("b", 2),
            site("c", 3),
            link("a", "b", "delay = \"1ms\""),
            link("b", "c", "delay = \"1ms\""),
            link(
                "a",
                "c",
                "a_to_b = { delay = \"10ms\" }\nb_to_a = { delay = \"1ms\" }",
            ),
        ];
        Topology::parse(&Source::new("triangle", text.concat())).expect("fine")
    }

    #[test]
    fn a_link_slower_than_the_indirect_path_is_unused_unless_neighbours_use_it() {
        let mut topology = triangle();
        assert!(topology.unused_links().is_empty(), "c to a is used");
        topology.links[2].b_to_a = topology.links[2].a_to_b.clone();
        let names = topology
            .unused_links()
            .into_iter()
            .map(|link| link.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["a-c"]);
        topology.routing = Routing::Direct;
        assert!(topology.unused_links().is_empty());
    }

    #[test]
    fn each_direction_takes_its_own_shortest_path() {
        let topology = triangle();
        let from_a = first_hops(&topology, 0);
        assert_eq!(from_a[0], None);
        assert_eq!(
            from_a[2],
            Some(Hop { link: 0, via: 1 }),
            "over b: 2 ms, not 10"
        );
        let from_c = first_hops(&topology, 2);
        assert_eq!(from_c[0], Some(Hop { link: 2, via: 0 }), "direct: 1 ms");
    }

    #[test]
    fn direct_routing_takes_the_direct_link_then_the_fastest_path() {
        let mut topology = triangle();
        topology.routing = Routing::Direct;
        let from_a = first_hops(&topology, 0);
        assert_eq!(
            from_a[2],
            Some(Hop { link: 2, via: 2 }),
            "10 ms, but direct"
        );
        let mut island = topology.links.remove(2);
        island.a = 1;
        topology.links.push(island);
        assert_eq!(first_hops(&topology, 0)[2], Some(Hop { link: 0, via: 1 }));
    }

    #[test]
    fn ecmp_takes_all_paths_with_the_fewest_links() {
        let text = "version = 1\nrouting = \"ecmp\"\n\
                    site = [{name = \"r0\"}, {name = \"r5\"}]\n\
                    router = [{name = \"m1\"}, {name = \"m2\"}, {name = \"far\"}]\n\
                    link = [{a = \"r0\", b = \"m1\", delay = \"1ms\"}, {a = \"m1\", b = \"r5\"}, \
                    {a = \"r0\", b = \"m2\", delay = \"9ms\"}, {a = \"m2\", b = \"r5\"}, \
                    {name = \"again\", a = \"r0\", b = \"m2\"}, {a = \"r5\", b = \"far\"}]\n";
        let topology = Topology::parse(&Source::new("diamond", text)).expect("fine");
        let hops = all_first_hops(&topology, 0);
        let hop = |link, via| Hop { link, via };
        let three: BTreeSet<Hop> = [hop(0, 2), hop(2, 3), hop(4, 3)].into();
        assert_eq!(hops[1], three, "to r5 over m1, and over m2 by two links");
        assert_eq!(hops[4], three, "and so to what is behind it");
        assert_eq!(hops[2], [hop(0, 2)].into());
        assert!(hops[0].is_empty());
        assert_eq!(first_hops(&topology, 0)[1], Some(hop(0, 2)));
    }

    #[test]
    fn a_next_hop_behind_switches_is_the_next_site() {
        let text = "version = 1\nsite = [{name = \"a\"}, {name = \"b\"}, {name = \"c\"}]\n\
                    switch = [{name = \"sw\"}, {name = \"sx\"}]\n\
                    link = [{a = \"a\", b = \"sw\"}, {a = \"sx\", b = \"sw\"}, \
                    {a = \"sx\", b = \"b\"}, {a = \"b\", b = \"c\"}]\n";
        let topology = Topology::parse(&Source::new("switches", text)).expect("fine");
        let from_a = first_hops(&topology, 0);
        assert_eq!(from_a[1], Some(Hop { link: 0, via: 1 }), "a neighbour");
        assert_eq!(from_a[2], Some(Hop { link: 0, via: 1 }), "c is behind b");
    }
}
