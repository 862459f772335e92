//! Topologies. What reads keeps the invariants that building relies on: names are unique and fit
//! the kernel, links join two sites that exist, their paths are told apart. What does not is refused
//! with places in the text.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use neph_lab::Topology;
use neph_model::Span;
use neph_text::Source;

#[path = "../checks/problems.rs"]
mod problems;

fuzz_target!(|text: &str| {
    let source = Source::new("topology.toml", text);
    match Topology::parse(&source) {
        Ok(topology) => assert_topology_invariants(&topology),
        Err(problems_found) => problems::check(&source, &problems_found),
    }
});

fn assert_topology_invariants(topology: &Topology) {
    let sites = &topology.sites;
    assert!(!sites.is_empty());
    let names: BTreeSet<_> = sites.iter().map(|site| &site.name).collect();
    assert_eq!(names.len(), sites.len());
    assert!(names.iter().all(|name| (1..=24).contains(&name.len())));
    let addresses: Vec<_> = sites.iter().flat_map(|site| site.addresses()).collect();
    assert_eq!(
        addresses.iter().collect::<BTreeSet<_>>().len(),
        addresses.len()
    );
    for site in sites {
        assert_eq!(
            topology.site_index(&site.name).map(|at| &sites[at]),
            Some(site)
        );
        // A setting must not lead out of /proc/sys/net.
        assert!(
            site.sysctls
                .keys()
                .all(|key| key.starts_with("net.") && !key.contains(['/', '\0']))
        );
        assert!(!site.sysctls.keys().any(|key| key.contains("..")));
    }
    let links: BTreeSet<_> = topology.links.iter().map(|link| &link.name).collect();
    assert_eq!(links.len(), topology.links.len());
    for link in &topology.links {
        assert!(link.a < sites.len() && link.b < sites.len() && link.a != link.b);
        assert!((1..=15).contains(&link.name.len()) && !link.name.contains(['/', ' ']));
        for shape in [&link.a_to_b, &link.b_to_a] {
            let names: BTreeSet<_> = shape.paths.iter().map(|path| &path.name).collect();
            assert_eq!(names.len(), shape.paths.len(), "two paths are the same");
            let wire_settings = shape
                .paths
                .iter()
                .map(|path| &path.wire)
                .chain([&shape.wire]);
            assert!(
                wire_settings
                    .into_iter()
                    .all(|wire| wire.delay >= Span::ZERO)
            );
            assert!(shape.rate.is_none_or(|rate| rate.bits_per_second() > 0));
        }
    }
    let top_level_sites = sites.iter().filter(|site| site.inside.is_none()).count();
    assert!(topology.links.len() + 1 >= top_level_sites, "not connected");
}
