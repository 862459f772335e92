//! Which link leads from a site towards every other: shortest paths by delay, then hops.
//!
//! Owns the search. Does not write routes: the plan does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use neph_model::Span;

use crate::topology::Topology;

/// What a step over a link costs beside its delay, so that of two paths without delay the one
/// with fewer hops is taken: about what forwarding costs here.
const HOP: Span = Span::from_micros(10);

/// The first step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hop {
    /// Index of the link to leave by.
    pub(crate) link: usize,
    /// Index of the site at its other end.
    pub(crate) via: usize,
}

/// For each site, the first hop from `start` towards it: none for `start` itself and for what it
/// cannot reach. Dijkstra's algorithm; ties go to the link that stands first in the file.
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
            let (far, delay) = match site {
                _ if link.a == site => (link.b, link.a_to_b.wire.delay),
                _ if link.b == site => (link.a, link.b_to_a.wire.delay),
                _ => continue,
            };
            let first = first.or(Some(Hop {
                link: index,
                via: far,
            }));
            open.push(Reverse((cost + delay + HOP, first, far)));
        }
    }
    hops
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;

    /// a - b - c in a row with 1 ms a link, and a direct link a - c that is slow one way.
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
    fn the_shorter_way_is_taken_each_direction_by_itself() {
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
}
