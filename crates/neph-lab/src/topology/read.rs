//! From TOML to a [`Topology`]: each mistake with its place.
//!
//! Owns the file as a whole. What `[[generate]]` asks for is written out first, as tables like
//! those that people write ([`generate`]); then nodes are read in [`site`], links in [`link`].

mod address;
mod engineering;
mod features;
mod fixture;
mod generate;
mod guest;
mod link;
mod path;
mod pod;
mod reroute;
mod schedule;
mod service;
mod site;
mod trace;
mod traffic;

use std::ops::Range;

pub(crate) use address::network;
use neph_text::{Fault, Fields, Problem, Problems, Source, Value, choice, parse_toml};

use super::{Routing, Topology};
use crate::{route, segment};

const NAME_REMEDY: &str = "use lower-case letters, digits and hyphens, beginning with a letter";

pub(super) fn read_file(source: &Source) -> Result<Topology, Vec<Problem>> {
    let problems = Problems::new(source);
    let document = parse_toml(&problems);
    // What a broken syntax left over is not worth further complaints.
    let topology = if problems.is_empty() {
        let document = generate::expand(document, &problems);
        let mut fields = Fields::new(&document, 0..0, &problems);
        check_version(&mut fields);
        read_topology(fields)
    } else {
        None
    };
    problems.verdict(topology)
}

fn check_version(fields: &mut Fields<'_>) {
    let Some(entry) = fields.entry("version") else {
        let remedy = "begin the file with version = 1";
        fields.fault(fields.span(), "'version' is missing", remedy);
        return;
    };
    if entry.node.value != Value::Integer(1) {
        let message = "this version of the topology format is not known";
        fields.fault(entry.node.span.clone(), message, "write version = 1");
    }
}

fn read_topology(mut fields: Fields<'_>) -> Option<Topology> {
    let problems = fields.problems();
    let routing = fields.optional_with("routing", |node| {
        choice(
            node,
            &[
                ("fastest", Routing::Fastest),
                ("direct", Routing::Direct),
                ("ecmp", Routing::Ecmp),
            ],
        )
    });
    let sites = site::sites(&mut fields);
    let ends = link::LinkEnds {
        sites: &sites,
        is_complete: problems.is_empty(),
    };
    let links = link::links(&mut fields, ends);
    let services = service::services(&mut fields, ends);
    let fixtures = fixture::fixtures(&mut fields, ends, &links, &services);
    let traffic = traffic::traffic(&mut fields, ends);
    let routing = routing.map(|routing| routing.value).unwrap_or_default();
    let reroutes = reroute::reroutes(&mut fields, ends, &links, routing);
    let span = fields.span();
    fields.finish();
    if !problems.is_empty() {
        return None;
    }
    let topology = Topology {
        sites,
        links,
        routing,
        services,
        fixtures,
        traffic,
        reroutes,
    };
    pod::check(&topology, &span, problems);
    guest::check(&topology, &span, problems);
    check_no_rings(&topology, &span, problems);
    check_connected(&topology, &span, problems);
    reroute::check(&topology, &span, problems);
    Some(topology)
}

/// Bridges have no spanning tree here: a ring would send a broadcast round for ever.
fn check_no_rings(topology: &Topology, span: &Range<usize>, problems: &Problems<'_>) {
    if let Some(link) = segment::first_ring_link(topology) {
        let message = format!(
            "link '{}' closes a ring of switches",
            topology.links[link].name
        );
        let remedy = "leave it out, or put a [[router]] into the ring";
        problems.add(span.clone(), Fault::new(message, remedy));
    }
}

fn check_connected(topology: &Topology, span: &Range<usize>, problems: &Problems<'_>) {
    // What runs inside another site is reached through an overlay.
    let sites = topology.sites.iter().enumerate();
    let mut independent_sites = sites.filter(|(_, site)| site.inside.is_none());
    let Some((start, first)) = independent_sites.next() else {
        return;
    };
    let first_hops = route::first_hops(topology, start);
    for (index, site) in independent_sites {
        if first_hops[index].is_none() {
            let message = format!("'{}' cannot reach '{}'", first.name, site.name);
            let remedy = "add a [[link]] that joins the two parts of the topology";
            problems.add(span.clone(), Fault::new(message, remedy));
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
#[path = "read/tests.rs"]
mod tests;

#[cfg(test)]
#[path = "read/link_tests.rs"]
mod link_tests;

#[cfg(test)]
#[path = "read/docs_tests.rs"]
mod docs_tests;
