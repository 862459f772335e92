//! From TOML to a [`Topology`]: each mistake with its place.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::str::FromStr;

use neph_model::{ByteSize, Span};
use toml::de::DeTable;

use super::quantity::{self, Wrong};
use super::table::{Mistakes, Reader};
use super::{Link, Prefix, Site, Topology};
use crate::gate::{Jitter, Shape, Share};
use crate::links::LINKS;
use crate::place::{PlacedError, did_you_mean};
use crate::route;

const NAME_REMEDY: &str = "use lower-case letters, digits and hyphens, beginning with a letter";
/// A queue where a rate is given without one: what a home access router commonly holds.
const DEFAULT_QUEUE: ByteSize = ByteSize(256 * 1024);

pub(super) fn file(text: &str) -> Result<Topology, Vec<PlacedError>> {
    let document = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        vec![PlacedError::new(
            span,
            error.message(),
            "see https://toml.io for the syntax",
        )]
    })?;
    if !document.get_ref().contains_key("version") {
        let what = "'version' is missing";
        return Err(vec![PlacedError::new(
            0..0,
            what,
            "begin the file with version = 1",
        )]);
    }
    table(document.get_ref(), document.span())
}

pub(super) fn table(table: &DeTable<'_>, span: Range<usize>) -> Result<Topology, Vec<PlacedError>> {
    let mut mistakes = Vec::new();
    let reader = Reader::new(table, span);
    version(&reader, &mut mistakes);
    let sites = sites(&reader, &mut mistakes);
    let links = links(&reader, &sites, &mut mistakes);
    let whole = reader.span();
    reader.finish(&mut mistakes);
    if mistakes.is_empty() {
        let topology = Topology { sites, links };
        connected(&topology, whole, &mut mistakes);
        if mistakes.is_empty() {
            return Ok(topology);
        }
    }
    mistakes.sort_by_key(|mistake| mistake.span.start);
    Err(mistakes)
}

fn version(reader: &Reader<'_, '_>, mistakes: &mut Mistakes) {
    let Some(value) = reader.get("version") else {
        return;
    };
    if value
        .get_ref()
        .as_integer()
        .is_none_or(|number| number.as_str() != "1")
    {
        let what = "this version of the topology format is not known";
        mistakes.push(PlacedError::new(value.span(), what, "write version = 1"));
    }
}

fn sites(reader: &Reader<'_, '_>, mistakes: &mut Mistakes) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    let tables = reader.tables("site", mistakes);
    if tables.is_empty() && mistakes.is_empty() {
        let remedy = "add [[site]] with name and address";
        mistakes.push(PlacedError::new(reader.span(), "there is no site", remedy));
    }
    for table in tables {
        let span = table.span();
        let Some(site) = site(table, mistakes) else {
            continue;
        };
        for other in &sites {
            if other.name == site.name {
                let what = format!("two sites are called '{}'", site.name);
                mistakes.push(PlacedError::new(
                    span.clone(),
                    what,
                    "give each its own name",
                ));
            }
            if let Some(same) = other
                .addresses()
                .find(|ip| site.addresses().any(|own| own == *ip))
            {
                let what = format!("'{}' and '{}' both have {same}", other.name, site.name);
                mistakes.push(PlacedError::new(
                    span.clone(),
                    what,
                    "give each its own address",
                ));
            }
        }
        sites.push(site);
    }
    sites
}

fn site(table: Reader<'_, '_>, mistakes: &mut Mistakes) -> Option<Site> {
    let name = table
        .needed_text("name", mistakes)
        .and_then(|(text, span)| {
            let fine = is_name(text) && text.len() <= 24 && text != "wire";
            if !fine {
                let what = format!("'{text}' cannot be a site's name");
                let remedy = format!("{NAME_REMEDY}, at most 24; 'wire' is the lab's own");
                mistakes.push(PlacedError::new(span, what, remedy));
            }
            fine.then(|| text.to_owned())
        });
    let v4 = table.needed_text("address", mistakes);
    let v4 = v4.and_then(|place| prefix::<Ipv4Addr>(place, (32, "\"10.0.0.1/24\""), mistakes));
    let v6 = table.text("address_v6", mistakes);
    let v6 = v6.and_then(|place| prefix::<Ipv6Addr>(place, (128, "\"fd00::1/64\""), mistakes));
    let labels = table.pairs("labels", mistakes).into_iter().collect();
    let sysctls = sysctls(&table, mistakes);
    let congestion_control = table.text("congestion_control", mistakes);
    let congestion_control = congestion_control.and_then(|(text, span)| {
        let fine = is_name(text) && text.len() < 16;
        if !fine {
            let what = format!("'{text}' is no congestion control");
            mistakes.push(PlacedError::new(span, what, "write for example \"cubic\""));
        }
        fine.then(|| text.to_owned())
    });
    table.finish(mistakes);
    Some(Site {
        name: name?,
        v4: v4?,
        v6,
        labels,
        sysctls,
        congestion_control,
    })
}

fn sysctls(
    table: &Reader<'_, '_>,
    mistakes: &mut Mistakes,
) -> std::collections::BTreeMap<String, String> {
    let pairs = table.pairs("sysctls", mistakes);
    for (name, _) in &pairs {
        let fine = name.starts_with("net.")
            && !name.contains("..")
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        if !fine {
            let what = format!("'{name}' is no setting of a network namespace");
            let remedy = "write names below net., such as \"net.ipv4.tcp_timestamps\" = 1";
            mistakes.push(PlacedError::new(table.span(), what, remedy));
        }
    }
    pairs.into_iter().collect()
}

fn prefix<A: FromStr>(
    (text, span): (&str, Range<usize>),
    (bits, example): (u8, &str),
    mistakes: &mut Mistakes,
) -> Option<Prefix<A>> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address.parse(), length.parse().ok()),
        None => (text.parse(), Some(bits)),
    };
    let Some((address, bits)) = address.ok().zip(length.filter(|length| *length <= bits)) else {
        let what = format!("\"{text}\" is no address");
        mistakes.push(PlacedError::new(
            span,
            what,
            format!("write for example {example}"),
        ));
        return None;
    };
    Some(Prefix { address, bits })
}

fn links(reader: &Reader<'_, '_>, sites: &[Site], mistakes: &mut Mistakes) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut names = BTreeSet::new();
    for (number, table) in reader.tables("link", mistakes).into_iter().enumerate() {
        let span = table.span();
        let Some(link) = link(table, (number, sites), mistakes) else {
            continue;
        };
        if !names.insert(link.name.clone()) {
            let what = format!("two links are called '{}'", link.name);
            mistakes.push(PlacedError::new(
                span,
                what,
                "give one of them another 'name'",
            ));
        }
        links.push(link);
    }
    links
}

fn link(
    table: Reader<'_, '_>,
    (number, sites): (usize, &[Site]),
    mistakes: &mut Mistakes,
) -> Option<Link> {
    let a = end(&table, "a", sites, mistakes);
    let b = end(&table, "b", sites, mistakes);
    let given = table.text("name", mistakes);
    if let Some((text, span)) = &given
        && !(is_name(text) && text.len() <= 15 && *text != "lo")
    {
        let what = format!("'{text}' cannot be a link's name");
        let remedy = format!("{NAME_REMEDY}, at most 15: it names the interface at both sites");
        mistakes.push(PlacedError::new(span.clone(), what, remedy));
    }
    let kind = kind(&table, mistakes);
    let both = features(&table, mistakes);
    let a_to_b = direction(&table, ("a_to_b", &both), mistakes);
    let b_to_a = direction(&table, ("b_to_a", &both), mistakes);
    let span = table.span();
    table.finish(mistakes);
    let (a, b) = (a?, b?);
    if a == b {
        let what = format!("this link joins '{}' with itself", sites[a].name);
        mistakes.push(PlacedError::new(span, what, "name two different sites"));
        return None;
    }
    let name = given.map_or_else(
        || made_up_name(&sites[a], &sites[b], number),
        |(n, _)| n.into(),
    );
    Some(Link {
        name,
        a,
        b,
        kind,
        a_to_b,
        b_to_a,
    })
}

fn kind(table: &Reader<'_, '_>, mistakes: &mut Mistakes) -> Option<&'static str> {
    let (text, span) = table.text("kind", mistakes)?;
    let known: Vec<&str> = LINKS.iter().map(|kind| kind.name()).collect();
    let found = LINKS
        .iter()
        .map(|kind| kind.name())
        .find(|name| *name == text);
    if found.is_none() {
        let what = format!("there is no kind of link '{text}'");
        mistakes.push(PlacedError::new(span, what, did_you_mean(text, &known)));
    }
    found
}

fn made_up_name(a: &Site, b: &Site, number: usize) -> String {
    let name = format!("{}-{}", a.name, b.name);
    if name.len() <= 15 {
        name
    } else {
        format!("link{}", number + 1)
    }
}

fn end(
    table: &Reader<'_, '_>,
    key: &'static str,
    sites: &[Site],
    mistakes: &mut Mistakes,
) -> Option<usize> {
    let (text, span) = table.needed_text(key, mistakes)?;
    let found = sites.iter().position(|site| site.name == text);
    if found.is_none() {
        let known: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
        let what = format!("there is no site '{text}'");
        mistakes.push(PlacedError::new(span, what, did_you_mean(text, &known)));
    }
    found
}

/// What is said about one direction, or about both; absent where nothing is said.
#[derive(Clone, Default)]
struct Features {
    delay: Option<Span>,
    jitter: Option<Jitter>,
    loss: Option<Share>,
    rate: Option<neph_model::BitRate>,
    queue: Option<(ByteSize, Range<usize>)>,
}

fn features(table: &Reader<'_, '_>, mistakes: &mut Mistakes) -> Features {
    let queue_span = table.get("queue").map_or(0..0, toml::Spanned::span);
    Features {
        delay: feature(table, ("delay", quantity::delay), mistakes),
        jitter: feature(table, ("jitter", quantity::jitter), mistakes),
        loss: feature(table, ("loss", quantity::share), mistakes),
        rate: feature(table, ("rate", quantity::rate), mistakes),
        queue: feature(table, ("queue", quantity::queue), mistakes).map(|q| (q, queue_span)),
    }
}

/// What a quantity's text means.
type Meaning<T> = fn(&str) -> Result<T, Wrong>;

fn feature<T>(
    table: &Reader<'_, '_>,
    (key, read): (&'static str, Meaning<T>),
    mistakes: &mut Mistakes,
) -> Option<T> {
    let (text, span) = table.text(key, mistakes)?;
    read(text)
        .map_err(|(what, remedy)| mistakes.push(PlacedError::new(span, what, remedy)))
        .ok()
}

fn direction(
    table: &Reader<'_, '_>,
    (key, both): (&'static str, &Features),
    mistakes: &mut Mistakes,
) -> Shape {
    let mut own = Features::default();
    if let Some(inner) = table.get(key).and_then(|value| Reader::of(value, mistakes)) {
        own = features(&inner, mistakes);
        inner.finish(mistakes);
    }
    let rate = own.rate.or(both.rate);
    if let (None, Some((_, span))) = (rate, &own.queue) {
        let what = "a queue without a rate never fills";
        mistakes.push(PlacedError::new(
            span.clone(),
            what,
            "add rate = \"...\" or drop it",
        ));
    }
    let queue = own
        .queue
        .or_else(|| both.queue.clone())
        .map_or(DEFAULT_QUEUE, |(size, _)| size);
    Shape {
        delay: own.delay.or(both.delay).unwrap_or_default(),
        jitter: own.jitter.or(both.jitter).unwrap_or_default(),
        loss: own.loss.or(both.loss).unwrap_or_default(),
        rate,
        queue,
    }
}

fn connected(topology: &Topology, span: Range<usize>, mistakes: &mut Mistakes) {
    let first_hops = route::first_hops(topology, 0);
    for (index, site) in topology.sites.iter().enumerate().skip(1) {
        if first_hops[index].is_none() {
            let what = format!("'{}' cannot reach '{}'", topology.sites[0].name, site.name);
            let remedy = "add a [[link]] that joins the two parts of the topology";
            mistakes.push(PlacedError::new(span.clone(), what, remedy));
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
