//! From TOML to a [`Topology`]: each mistake with its place.
//!
//! Owns the file as a whole and its sites; links are read in [`link`].

mod link;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::str::FromStr;

use toml::de::DeTable;

use super::table::{Mistakes, Reader};
use super::{Prefix, Site, Topology};
use crate::place::PlacedError;
use crate::route;

const NAME_REMEDY: &str = "use lower-case letters, digits and hyphens, beginning with a letter";

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
    let complete = mistakes.is_empty();
    let ends = link::Ends {
        sites: &sites,
        complete,
    };
    let links = link::links(&reader, ends, &mut mistakes);
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
