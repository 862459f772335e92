//! What must hold of sites inside others: an overlay joins each to its host, and no link does.

use std::ops::Range;

use neph_text::{Fault, Problems};

use crate::topology::Topology;

/// Checks that each pod is in one overlay or guest table, and has no link.
pub(super) fn check(topology: &Topology, span: &Range<usize>, problems: &Problems<'_>) {
    for link in &topology.links {
        let ends = [link.a, link.b].map(|end| &topology.sites[end]);
        if let Some(pod) = ends.iter().find(|site| site.inside.is_some()) {
            let message = format!(
                "link '{}' ends at '{}', which is inside another site",
                link.name, pod.name
            );
            problems.add(
                span.clone(),
                Fault::new(
                    message,
                    "link its host, and join it by an [[overlay]] or as a [[guest]]",
                ),
            );
        }
    }
    for (index, site) in topology.sites.iter().enumerate() {
        let fixtures = topology.fixtures.iter();
        let memberships = fixtures.filter(|fixture| fixture.build.pods().contains(&index));
        // Whether each is a guest's.
        let memberships: Vec<bool> = memberships
            .map(|fixture| !fixture.build.guests().is_empty())
            .collect();
        let (message, remedy) = match (site.inside, &memberships[..]) {
            (Some(_), []) => (
                "no overlay and no guest",
                "list it in the pods of an [[overlay]] or the sites of a [[guest]]",
            ),
            (None, _) | (_, [_]) => continue,
            (_, memberships) if memberships.iter().all(|is_guest| *is_guest) => {
                ("more than one [[guest]]", "leave it in one")
            }
            (_, memberships) if memberships.contains(&true) => {
                ("an overlay and a [[guest]]", "leave it in one of them")
            }
            _ => ("more than one overlay", "leave it in one"),
        };
        let message = format!("'{}' is inside another site and in {message}", site.name);
        problems.add(span.clone(), Fault::new(message, remedy));
    }
}
