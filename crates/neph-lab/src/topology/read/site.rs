//! Reads `[[site]]`, `[[router]]` and `[[switch]]` tables.
//!
//! Owns their names, settings and share of the host; [`super::address`] reads addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use neph_text::{Fault, Fields, FromNode, Node, Spanned, Value, did_you_mean};

use super::address::{self, Networks};
use super::{NAME_REMEDY, is_name};
use crate::gate::Share;
use crate::topology::{Prefix, Role, Site, quantity};

/// The tables that this module reads, in this order.
const TABLES: [(&str, Role); 3] = [
    ("site", Role::Site),
    ("router", Role::Router),
    ("switch", Role::Switch),
];

/// A node as in the file, and its place.
struct SiteDraft {
    site: Site,
    inside: Option<Spanned<String>>,
    needs_v4: bool,
    span: Range<usize>,
}

/// All nodes: sites, routers, switches; adds missing addresses.
pub(super) fn sites(fields: &mut Fields<'_>) -> Vec<Site> {
    let networks = address::networks(fields);
    let mut drafts: Vec<SiteDraft> = Vec::new();
    for (key, role) in TABLES {
        let tables = fields.tables(key);
        if role == Role::Site && tables.is_empty() && fields.problems().is_empty() {
            let remedy = "add [[site]] with a name";
            fields.fault(fields.span(), "there is no site", remedy);
        }
        for table in tables {
            let Some(draft) = read_draft(table, role) else {
                continue;
            };
            check_conflicts(&draft, &drafts, fields);
            drafts.push(draft);
        }
    }
    assign_addresses(&mut drafts, networks, fields);
    set_outer_sites(&mut drafts, fields);
    drafts.into_iter().map(|draft| draft.site).collect()
}

/// Finds the hosts of nodes that run inside another site.
fn set_outer_sites(drafts: &mut [SiteDraft], fields: &Fields<'_>) {
    let hosts: Vec<String> = drafts
        .iter()
        .filter(|draft| draft.site.role == Role::Site && draft.inside.is_none())
        .map(|draft| draft.site.name.clone())
        .collect();
    let names: Vec<String> = drafts.iter().map(|draft| draft.site.name.clone()).collect();
    for draft in drafts {
        let Some(host) = draft.inside.take() else {
            continue;
        };
        if !hosts.contains(&host.value) {
            let known_hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
            let message = format!("there is no site '{}' to be inside of", host.value);
            fields.fault(host.span, message, did_you_mean(&host.value, &known_hosts));
            continue;
        }
        draft.site.inside = names.iter().position(|name| *name == host.value);
    }
}

/// Reports properties that a node must not share with an earlier one.
fn check_conflicts(draft: &SiteDraft, others: &[SiteDraft], fields: &Fields<'_>) {
    let SiteDraft { site, span, .. } = draft;
    for SiteDraft { site: other, .. } in others {
        if fields.problems().is_full() {
            return;
        }
        if other.name == site.name {
            let message = format!("two sites are called '{}'", site.name);
            fields.fault(span.clone(), message, "give each its own name");
        }
        let addresses: Vec<IpAddr> = configured_addresses(site).collect();
        let shared_address = configured_addresses(other).find(|ip| addresses.contains(ip));
        if let Some(address) = shared_address {
            let message = format!("'{}' and '{}' both have {address}", other.name, site.name);
            fields.fault(span.clone(), message, "give each its own address");
        }
    }
}

fn configured_addresses(site: &Site) -> impl Iterator<Item = IpAddr> {
    site.addresses().filter(|address| !address.is_unspecified())
}

/// Assigns missing addresses in order, so that the same file has the same addresses.
fn assign_addresses(drafts: &mut [SiteDraft], networks: Networks, fields: &Fields<'_>) {
    let mut used_v4: BTreeSet<Ipv4Addr> = drafts.iter().map(|d| d.site.v4.address).collect();
    let v6 = drafts.iter().filter_map(|d| Some(d.site.v6?.address));
    let mut used_v6: BTreeSet<Ipv6Addr> = v6.collect();
    for SiteDraft {
        site,
        inside,
        needs_v4,
        span,
    } in drafts
    {
        if *needs_v4 {
            let Some(v4) = networks.next_v4(&mut used_v4) else {
                let message = format!("the network has no address left for '{}'", site.name);
                fields.fault(
                    span.clone(),
                    message,
                    "write a larger network = \"10.0.0.0/8\"",
                );
                continue;
            };
            site.v4 = v4;
        }
        if site.v6.is_none() && !site.is_switch() {
            // Overlays and guests use IPv4; later nodes keep the IPv6 addresses of earlier versions.
            let next = networks.next_v6(&mut used_v6);
            site.v6 = next.filter(|_| inside.is_none());
        }
    }
}

fn read_draft(mut table: Fields<'_>, role: Role) -> Option<SiteDraft> {
    let span = table.span();
    let name = table.required_with("name", site_name);
    let labels = text_entries(&mut table, "labels", |_| Ok(()));
    let mut site = Site {
        name: String::new(),
        role,
        inside: None,
        v4: Prefix {
            address: Ipv4Addr::UNSPECIFIED,
            bits: 32,
        },
        v6: None,
        labels,
        sysctls: BTreeMap::new(),
        congestion_control: None,
        cpus: Vec::new(),
        cpu_share: None,
    };
    let mut needs_v4 = false;
    let mut is_valid = true;
    let inside = match role {
        Role::Site => table.optional::<String>("inside"),
        _ => None,
    };
    if role != Role::Switch {
        let has_address = table.entry("address").is_some();
        let v4 = table.optional_with("address", address::v4);
        needs_v4 = !has_address;
        is_valid = has_address == v4.is_some();
        site.v4 = v4.map_or(site.v4, |v4| v4.value);
        let v6 = table.optional_with("address_v6", address::v6);
        if let (Some(v6), Some(_)) = (&v6, &inside) {
            let message = "a site inside another has no IPv6: overlays and guests carry IPv4";
            table.fault(v6.span.clone(), message, "remove address_v6");
        }
        site.v6 = v6.map(|v6| v6.value);
        site.sysctls = text_entries(&mut table, "sysctls", check_sysctl_name);
        let congestion = table.optional_with("congestion_control", congestion_control);
        site.congestion_control = congestion.map(|name| name.value);
        let cpus = table
            .one_or_list_with("cpus", cpu_number)
            .unwrap_or_default();
        site.cpus = cpus.into_iter().map(|cpu| cpu.value).collect();
        let share = table.optional_with("cpu_share", cpu_share);
        site.cpu_share = share.map(|share| share.value);
    }
    table.finish();
    site.name = name?.value;
    is_valid.then_some(SiteDraft {
        site,
        inside,
        needs_v4,
        span,
    })
}

fn site_name(node: &Node) -> Result<String, Fault> {
    let text = String::from_node(node)?;
    if is_name(&text) && text.len() <= 24 && text != "wire" {
        return Ok(text);
    }
    let message = format!("'{text}' cannot be a site's name");
    let remedy = format!("{NAME_REMEDY}, at most 24; 'wire' is the lab's own");
    Err(Fault::new(message, remedy))
}

pub(super) fn congestion_control(node: &Node) -> Result<String, Fault> {
    let text = String::from_node(node)?;
    if is_name(&text) && text.len() < 16 {
        return Ok(text);
    }
    let message = format!("'{text}' is no congestion control");
    Err(Fault::new(message, "write for example \"cubic\""))
}

/// A CPU's number, from 0 to 1023.
fn cpu_number(node: &Node) -> Result<u16, Fault> {
    match u16::from_node(node) {
        Ok(cpu) if cpu < 1024 => Ok(cpu),
        _ => Err(Fault::new(
            "this is no CPU",
            "write numbers from 0, such as cpus = [0]",
        )),
    }
}

/// From 1 % to 100 % of one CPU.
fn cpu_share(node: &Node) -> Result<Share, Fault> {
    let share = quantity::share(node)?;
    if share < Share::from_billionths(10_000_000) {
        let message = "too little to run anything";
        return Err(Fault::new(
            message,
            "write a share of one CPU from 1% to 100%",
        ));
    }
    Ok(share)
}

fn check_sysctl_name(name: &str) -> Result<(), Fault> {
    let is_valid = name.starts_with("net.")
        && !name.contains("..")
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if is_valid {
        return Ok(());
    }
    let message = format!("'{name}' is no setting of a network namespace");
    let remedy = "write names below net., such as \"net.ipv4.tcp_timestamps\" = 1";
    Err(Fault::new(message, remedy))
}

/// The entries of the table `key` as text; numbers and booleans in the format of `/proc/sys`.
pub(super) fn text_entries(
    fields: &mut Fields<'_>,
    key: &'static str,
    check_key: impl Fn(&str) -> Result<(), Fault>,
) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let Some(entry) = fields.entry(key) else {
        return texts;
    };
    let Value::Table(table) = &entry.node.value else {
        let message = format!("this is {}", entry.node.value.noun());
        fields.fault(entry.node.span.clone(), message, "write a table here");
        return texts;
    };
    let problems = fields.problems();
    for entry in &table.entries {
        if let Err(fault) = check_key(&entry.key) {
            problems.add(entry.key_span.clone(), fault);
        }
        match plain_text(&entry.node.value) {
            Ok(text) => {
                texts.insert(entry.key.clone(), text);
            }
            Err(fault) => problems.add(entry.node.span.clone(), fault),
        }
    }
    texts
}

fn plain_text(value: &Value) -> Result<String, Fault> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Real(number) => Ok(number.to_string()),
        Value::Switch(is_on) => Ok(u8::from(*is_on).to_string()),
        other => {
            let message = format!("this is {}", other.noun());
            Err(Fault::new(message, "write a text or a number"))
        }
    }
}
