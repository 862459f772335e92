//! Reads a `[[service]]` table into a [`Service`].

use std::collections::BTreeSet;
use std::path::PathBuf;

use neph_model::Span;
use neph_text::{Fault, Fields, FromNode, Node, Port, Value};

use super::link::LinkEnds;
use super::site::text_entries;
use super::{NAME_REMEDY, is_name};
use crate::topology::quantity;
use crate::topology::service::{Ready, ReadyCheck, Service};

/// The default timeout until a service is ready.
const DEFAULT_READY_TIMEOUT: Span = Span::from_secs(10);
/// The default time for a service to end.
const DEFAULT_STOP_TIMEOUT: Span = Span::from_secs(2);

/// All services of a topology.
pub(super) fn services(fields: &mut Fields<'_>, ends: LinkEnds<'_>) -> Vec<Service> {
    let mut services = Vec::new();
    let mut names = BTreeSet::new();
    for table in fields.tables("service") {
        let span = table.span();
        let Some(service) = read_service(table, ends) else {
            continue;
        };
        if !names.insert(service.name.clone()) {
            let message = format!("two services are called '{}'", service.name);
            fields.fault(span, message, "give each its own name");
        }
        services.push(service);
    }
    services
}

fn read_service(mut table: Fields<'_>, ends: LinkEnds<'_>) -> Option<Service> {
    let name = table.required_with("name", program_name);
    let site = site_index(&mut table, "site", ends);
    let command = table.required_with("command", command_args);
    let environment = text_entries(&mut table, "environment", check_variable_name);
    let has_ready_check = table.entry("ready").is_some();
    let ready = table.table("ready").and_then(read_ready);
    let log = table.optional_with("log", |node| String::from_node(node).map(PathBuf::from));
    let grace = table.optional_with("grace", quantity::delay);
    table.finish();
    if has_ready_check && ready.is_none() {
        return None;
    }
    Some(Service {
        name: name?.value,
        site: site?,
        command: command?.value,
        environment,
        ready,
        log: log.map(|log| log.value),
        grace: grace.map_or(DEFAULT_STOP_TIMEOUT, |grace| grace.value),
    })
}

/// The name of a program of a lab.
pub(super) fn program_name(node: &Node) -> Result<String, Fault> {
    let text = String::from_node(node)?;
    if is_name(&text) && text.len() <= 24 && text != "journal" {
        return Ok(text);
    }
    let message = format!("'{text}' cannot be a name here");
    Err(Fault::new(message, format!("{NAME_REMEDY}, at most 24")))
}

/// The index of the site that `key` names, which must be able to run programs.
pub(super) fn site_index(
    table: &mut Fields<'_>,
    key: &'static str,
    ends: LinkEnds<'_>,
) -> Option<usize> {
    let site_name = table.required::<String>(key)?;
    let position = ends
        .sites
        .iter()
        .position(|site| site.name == site_name.value);
    match position {
        Some(site) if ends.sites[site].is_switch() => {
            let message = format!("'{}' is a switch", site_name.value);
            table.fault(site_name.span, message, "name a site or a router");
            None
        }
        None if ends.is_complete => {
            let message = format!("there is no site '{}'", site_name.value);
            let known_names = || ends.sites.iter().map(|site| site.name.as_str()).collect();
            table
                .problems()
                .unknown(&site_name.value, site_name.span, message, known_names);
            None
        }
        position => position,
    }
}

/// A program and its arguments.
pub(super) fn command_args(node: &Node) -> Result<Vec<String>, Fault> {
    let example = "write a list such as [\"haproxy\", \"-f\", \"haproxy.cfg\"]";
    let Value::List(nodes) = &node.value else {
        let message = format!("this is {}", node.value.noun());
        return Err(Fault::new(message, example));
    };
    let args: Vec<String> = nodes
        .iter()
        .map(String::from_node)
        .collect::<Result<_, _>>()?;
    if args.first().is_none_or(String::is_empty) {
        return Err(Fault::new("there is no program", example));
    }
    Ok(args)
}

fn check_variable_name(name: &str) -> Result<(), Fault> {
    if name.is_empty() || name.contains(['=', '\0']) {
        let message = format!("'{name}' is no variable");
        return Err(Fault::new(message, "write for example HOME = \"/root\""));
    }
    Ok(())
}

fn read_ready(mut table: Fields<'_>) -> Option<Ready> {
    let tcp = table.optional::<Port>("tcp");
    let command = table.optional_with("command", command_args);
    let timeout = table.optional_with("timeout", quantity::delay);
    let has_entry = ["tcp", "command"].map(|key| table.entry(key).is_some());
    if has_entry == [false, false] || has_entry == [true, true] {
        let remedy = "write either { tcp = 80 } or { command = [\"test\", \"-e\", \"file\"] }";
        table.fault(table.span(), "how it gets ready is not clear", remedy);
    }
    let check = match (tcp, command) {
        (Some(port), _) => Some(ReadyCheck::Tcp(port.value.0)),
        (None, args) => args.map(|args| ReadyCheck::Command(args.value)),
    };
    table.finish();
    Some(Ready {
        check: check?,
        timeout: timeout.map_or(DEFAULT_READY_TIMEOUT, |timeout| timeout.value),
    })
}

#[cfg(test)]
#[path = "service/tests.rs"]
mod tests;
