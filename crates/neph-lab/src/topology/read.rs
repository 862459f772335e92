//! From TOML to a [`Topology`]: each mistake with its place.
//!
//! Owns the file as a whole and its sites; links are read in [`link`].

mod features;
mod link;
mod path;
mod schedule;
mod trace;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::str::FromStr;

use neph_text::{Fault, Fields, Node, Problem, Problems, Source, Take, Value, parse_toml};

use super::{Prefix, Site, Topology};
use crate::route;

const NAME_REMEDY: &str = "use lower-case letters, digits and hyphens, beginning with a letter";

pub(super) fn file(source: &Source) -> Result<Topology, Vec<Problem>> {
    let problems = Problems::new(source);
    let document = parse_toml(&problems);
    // What a broken syntax left over is not worth further complaints.
    let topology = if problems.is_empty() {
        let mut fields = Fields::new(&document, 0..0, &problems);
        version(&mut fields);
        table(fields)
    } else {
        None
    };
    problems.verdict(topology)
}

fn version(fields: &mut Fields<'_>) {
    let Some(entry) = fields.entry("version") else {
        let remedy = "begin the file with version = 1";
        fields.fault(fields.span(), "'version' is missing", remedy);
        return;
    };
    if entry.node.value != Value::Integer(1) {
        let what = "this version of the topology format is not known";
        fields.fault(entry.node.span.clone(), what, "write version = 1");
    }
}

fn table(mut fields: Fields<'_>) -> Option<Topology> {
    let problems = fields.problems();
    let sites = sites(&mut fields);
    let ends = link::Ends {
        sites: &sites,
        complete: problems.is_empty(),
    };
    let links = link::links(&mut fields, ends);
    let whole = fields.span();
    fields.finish();
    if !problems.is_empty() {
        return None;
    }
    let topology = Topology { sites, links };
    connected(&topology, &whole, problems);
    Some(topology)
}

fn sites(fields: &mut Fields<'_>) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    let tables = fields.tables("site");
    if tables.is_empty() && fields.problems().is_empty() {
        let remedy = "add [[site]] with name and address";
        fields.fault(fields.span(), "there is no site", remedy);
    }
    for table in tables {
        let span = table.span();
        let Some(site) = site(table) else {
            continue;
        };
        for other in &sites {
            if other.name == site.name {
                let what = format!("two sites are called '{}'", site.name);
                fields.fault(span.clone(), what, "give each its own name");
            }
            let same = other
                .addresses()
                .find(|ip| site.addresses().any(|own| own == *ip));
            if let Some(same) = same {
                let what = format!("'{}' and '{}' both have {same}", other.name, site.name);
                fields.fault(span.clone(), what, "give each its own address");
            }
        }
        sites.push(site);
    }
    sites
}

fn site(mut table: Fields<'_>) -> Option<Site> {
    let name = table.required_with("name", site_name);
    let v4 = table.required_with("address", |node| {
        prefix::<Ipv4Addr>(node, 32, "\"10.0.0.1/24\"")
    });
    let v6 = table.optional_with("address_v6", |node| {
        prefix::<Ipv6Addr>(node, 128, "\"fd00::1/64\"")
    });
    let labels = pairs(&mut table, "labels", |_| Ok(()));
    let sysctls = pairs(&mut table, "sysctls", sysctl_name);
    let congestion_control = table.optional_with("congestion_control", congestion);
    table.finish();
    Some(Site {
        name: name?.value,
        v4: v4?.value,
        v6: v6.map(|v6| v6.value),
        labels,
        sysctls,
        congestion_control: congestion_control.map(|name| name.value),
    })
}

fn site_name(node: &Node) -> Result<String, Fault> {
    let text = String::take(node)?;
    if is_name(&text) && text.len() <= 24 && text != "wire" {
        return Ok(text);
    }
    let what = format!("'{text}' cannot be a site's name");
    let remedy = format!("{NAME_REMEDY}, at most 24; 'wire' is the lab's own");
    Err(Fault::new(what, remedy))
}

fn congestion(node: &Node) -> Result<String, Fault> {
    let text = String::take(node)?;
    if is_name(&text) && text.len() < 16 {
        return Ok(text);
    }
    let what = format!("'{text}' is no congestion control");
    Err(Fault::new(what, "write for example \"cubic\""))
}

fn sysctl_name(name: &str) -> Result<(), Fault> {
    let fine = name.starts_with("net.")
        && !name.contains("..")
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if fine {
        return Ok(());
    }
    let what = format!("'{name}' is no setting of a network namespace");
    let remedy = "write names below net., such as \"net.ipv4.tcp_timestamps\" = 1";
    Err(Fault::new(what, remedy))
}

/// The pairs of the table `key` as texts; numbers and truth values as `/proc/sys` takes them.
fn pairs(
    fields: &mut Fields<'_>,
    key: &'static str,
    allowed: impl Fn(&str) -> Result<(), Fault>,
) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    let Some(entry) = fields.entry(key) else {
        return pairs;
    };
    let Value::Table(table) = &entry.node.value else {
        let what = format!("this is {}", entry.node.value.noun());
        fields.fault(entry.node.span.clone(), what, "write a table here");
        return pairs;
    };
    let problems = fields.problems();
    for entry in &table.entries {
        if let Err(fault) = allowed(&entry.key) {
            problems.add(entry.key_span.clone(), fault);
        }
        match plain_text(&entry.node.value) {
            Ok(text) => {
                pairs.insert(entry.key.clone(), text);
            }
            Err(fault) => problems.add(entry.node.span.clone(), fault),
        }
    }
    pairs
}

fn plain_text(value: &Value) -> Result<String, Fault> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Real(number) => Ok(number.to_string()),
        Value::Switch(on) => Ok(u8::from(*on).to_string()),
        other => {
            let what = format!("this is {}", other.noun());
            Err(Fault::new(what, "write a text or a number"))
        }
    }
}

fn prefix<A: FromStr>(node: &Node, bits: u8, example: &str) -> Result<Prefix<A>, Fault> {
    let text = String::take(node)?;
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address.parse(), length.parse().ok()),
        None => (text.parse(), Some(bits)),
    };
    match address.ok().zip(length.filter(|length| *length <= bits)) {
        Some((address, bits)) => Ok(Prefix { address, bits }),
        None => Err(Fault::new(
            format!("\"{text}\" is no address"),
            format!("write for example {example}"),
        )),
    }
}

fn connected(topology: &Topology, span: &Range<usize>, problems: &Problems<'_>) {
    let first_hops = route::first_hops(topology, 0);
    for (index, site) in topology.sites.iter().enumerate().skip(1) {
        if first_hops[index].is_none() {
            let what = format!("'{}' cannot reach '{}'", topology.sites[0].name, site.name);
            let remedy = "add a [[link]] that joins the two parts of the topology";
            problems.add(span.clone(), Fault::new(what, remedy));
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
