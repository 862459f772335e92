//! Reads a `[[link]]` table into a [`Link`]: settings of both directions, then of each.

use std::collections::BTreeSet;
use std::ops::Range;

use neph_text::{Fault, Fields, FromNode, Node, choice};

use super::features::{DIRECTIONS, read_shape};
use super::trace::Traces;
use super::{NAME_REMEDY, engineering, is_name, path, schedule};
use crate::gate::{Change, ChangeAction, PartialShape, Shape};
use crate::links::{LINK_KINDS, link_kind};
use crate::topology::{Link, Site};

/// The minimum MTU with IPv6 (RFC 8200, section 5).
const MIN_IPV6_MTU: u32 = 1280;

/// Names that the kernel uses otherwise: loopback, and settings of all interfaces.
const RESERVED_NAMES: [&str; 3] = ["lo", "all", "default"];

/// The possible ends of links.
#[derive(Clone, Copy)]
pub(super) struct LinkEnds<'s> {
    /// The sites that could be read.
    pub(super) sites: &'s [Site],
    /// Whether these are all. If not, an unknown name may be one of the others.
    pub(super) is_complete: bool,
}

/// All links of a topology.
pub(super) fn links(fields: &mut Fields<'_>, ends: LinkEnds<'_>) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut names = BTreeSet::new();
    let traces = Traces::default();
    for (number, table) in fields.tables("link").into_iter().enumerate() {
        let span = table.span();
        let Some(link) = read_link(table, number, ends, &traces) else {
            continue;
        };
        if !names.insert(link.name.clone()) {
            let message = format!("two links are called '{}'", link.name);
            fields.fault(span, message, "give one of them another 'name'");
        }
        links.push(link);
    }
    links
}

fn read_link(
    mut table: Fields<'_>,
    number: usize,
    ends: LinkEnds<'_>,
    traces: &Traces,
) -> Option<Link> {
    let a = site_index(&mut table, "a", ends);
    let b = site_index(&mut table, "b", ends);
    let name = table.optional_with("name", link_name);
    let kinds: Vec<(&str, &'static str)> =
        LINK_KINDS.iter().map(|k| (k.name(), k.name())).collect();
    let kind = table.optional_with("kind", |node| choice(node, &kinds));
    let shared = read_shape(&mut table, traces);
    let mut shapes = DIRECTIONS.map(|key| read_direction(&mut table, key, &shared, traces));
    let paths = path::paths(&mut table, traces);
    path::apply_paths(&paths, &mut shapes);
    path::read_splitting(&mut table, &mut shapes);
    let mut schedule = schedule::changes(&mut table, &paths, traces);
    schedule.extend(engineering::read_engineering(&mut table, &shapes));
    check_useless_queues(&mut table, &shapes, &schedule);
    let [a_to_b, b_to_a] = shapes;
    let link = a.zip(b).map(|(a, b)| Link {
        name: name.map_or_else(
            || default_name(&ends.sites[a], &ends.sites[b], number),
            |name| name.value,
        ),
        a,
        b,
        kind: kind.map(|kind| kind.value),
        a_to_b,
        b_to_a,
        schedule,
    });
    if let Some(link) = &link {
        check_kind_features(&mut table, link);
        check_ipv6_mtu(&mut table, link, ends.sites);
    }
    let (span, problems) = (table.span(), table.problems());
    table.finish();
    let link = link?;
    if link.a == link.b {
        let message = format!("this link joins '{}' with itself", ends.sites[link.a].name);
        problems.add(span, Fault::new(message, "name two different sites"));
        return None;
    }
    Some(link)
}

/// Checks that the link's kind can do what is requested.
fn check_kind_features(table: &mut Fields<'_>, link: &Link) {
    let kind = link_kind(link);
    for (key, feature) in kind.unsupported_features(link) {
        let span = key_span(table, key);
        let message = format!("a link of kind \"{}\" cannot {feature}", kind.name());
        table.fault(span, message, "leave 'kind' out or drop this");
    }
}

/// Checks that the MTU suits the addresses of the sites.
fn check_ipv6_mtu(table: &mut Fields<'_>, link: &Link, sites: &[Site]) {
    // A switch has no address, but the nodes behind it may.
    let may_have_ipv6 = |site: &usize| sites[*site].v6.is_some() || sites[*site].is_switch();
    let ends = [link.a, link.b];
    let uses_ipv6 =
        ends.iter().all(may_have_ipv6) && ends.iter().any(|site| sites[*site].v6.is_some());
    let is_too_small = |shape: &Shape| shape.mtu.is_some_and(|mtu| mtu < MIN_IPV6_MTU);
    if uses_ipv6 && (is_too_small(&link.a_to_b) || is_too_small(&link.b_to_a)) {
        let span = key_span(table, "mtu");
        let message =
            format!("IPv6 needs an MTU of {MIN_IPV6_MTU}, and both sites have an address");
        table.fault(span, message, "write a larger one or drop an 'address_v6'");
    }
}

/// Where `key` is set for a link: for both directions, or else for one.
fn key_span(table: &mut Fields<'_>, key: &'static str) -> Range<usize> {
    let find_span = |table: &mut Fields<'_>| {
        let entry = table.entry(key)?;
        Some(entry.node.span.clone())
    };
    let mut span = find_span(table);
    for direction in DIRECTIONS {
        span = span.or_else(|| find_span(&mut table.table(direction)?));
    }
    span.unwrap_or_else(|| table.span())
}

fn link_name(node: &Node) -> Result<String, Fault> {
    let text = String::from_node(node)?;
    if is_name(&text) && text.len() <= 15 && !RESERVED_NAMES.contains(&text.as_str()) {
        return Ok(text);
    }
    let message = format!("'{text}' cannot be a link's name");
    let remedy = format!("{NAME_REMEDY}, at most 15: it names the interface at both sites");
    Err(Fault::new(message, remedy))
}

fn default_name(a: &Site, b: &Site, number: usize) -> String {
    let name = format!("{}-{}", a.name, b.name);
    if name.len() <= 15 {
        name
    } else {
        format!("link{}", number + 1)
    }
}

/// The index of the site that `key` names.
fn site_index(table: &mut Fields<'_>, key: &'static str, ends: LinkEnds<'_>) -> Option<usize> {
    let LinkEnds { sites, is_complete } = ends;
    let site_name = table.required::<String>(key)?;
    let index = sites.iter().position(|site| site.name == site_name.value);
    if index.is_none() && is_complete {
        let message = format!("there is no site '{}'", site_name.value);
        let known_names = || sites.iter().map(|site| site.name.as_str()).collect();
        table
            .problems()
            .unknown(&site_name.value, site_name.span, message, known_names);
    }
    index
}

fn read_direction(
    table: &mut Fields<'_>,
    key: &'static str,
    shared: &PartialShape,
    traces: &Traces,
) -> Shape {
    let mut shape = Shape::default();
    shared.apply(&mut shape);
    let Some(mut inner) = table.table(key) else {
        return shape;
    };
    let own_shape = read_shape(&mut inner, traces);
    own_shape.apply(&mut shape);
    inner.finish();
    shape
}

/// Reports a queue that can never fill.
fn check_useless_queues(table: &mut Fields<'_>, shapes: &[Shape; 2], schedule: &[Change]) {
    let sets_rate = |change: &Change| matches!(&change.action, ChangeAction::Override(changed) if changed.rate.is_some());
    if schedule.iter().any(sets_rate) {
        return;
    }
    for (key, shape) in DIRECTIONS.into_iter().zip(shapes) {
        if shape.rate.is_none()
            && let Some(mut inner) = table.table(key)
            && let Some(queue) = inner.entry("queue").or_else(|| inner.entry("discipline"))
        {
            let message = "a queue without a rate never fills";
            let span = queue.node.span.clone();
            inner.fault(span, message, "add rate = \"...\" or drop it");
        }
    }
}
