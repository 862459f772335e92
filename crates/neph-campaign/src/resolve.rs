//! Whether every host of a plan has an address: a step of its own, because it asks the network.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;

use neph_text::{Fault, Problem, Problems, Source};

use crate::plan::Plan;

/// The addresses of every host that a plan names, once each.
pub type Addresses = BTreeMap<String, Vec<IpAddr>>;

/// Resolves every host of `plan` through `resolver`, which is asked once per host and returns the
/// reason if there is no address. `source` is the text the plan was read from.
///
/// # Errors
/// Every host without an address, at each place where the plan writes it. Agents resolve names on
/// their hosts: of a plan with agents, only names of its sites need an address here.
pub fn resolve(
    plan: &Plan,
    source: &Source,
    resolver: &dyn Fn(&str) -> Result<Vec<IpAddr>, String>,
) -> Result<Addresses, Vec<Problem>> {
    let problems = Problems::new(source);
    let mut answers: BTreeMap<String, Result<Vec<IpAddr>, String>> = BTreeMap::new();
    for (host, address_span) in hosts(plan) {
        let is_site = plan.agents.iter().any(|site| site.name.value == host);
        if !plan.agents.is_empty() && !is_site {
            // Its agents resolve it, from their hosts.
            continue;
        }
        let answer = answers
            .entry(host.to_owned())
            .or_insert_with(|| match resolver(host) {
                Ok(addresses) if addresses.is_empty() => Err("it has no address".to_owned()),
                answer => answer,
            });
        if let Err(reason) = answer {
            let message = format!("host '{host}' cannot be resolved: {reason}");
            let fault = if is_site {
                Fault::new(message, format!("add address to [[site]] '{host}'"))
            } else {
                Fault::new(message, "check the name, or write an address")
            };
            problems.add(address_span, fault);
        }
    }
    let addresses = answers
        .into_iter()
        .filter_map(|(host, answer)| Some((host, answer.ok()?)))
        .collect();
    problems.verdict(Some(addresses))
}

/// Every host that a plan names, and where it is written, in bytes of the plan's text.
pub fn hosts(plan: &Plan) -> impl Iterator<Item = (&str, Range<usize>)> {
    let endpoints = plan.endpoints.iter();
    let endpoints = endpoints.map(|e| (e.target.host(), e.address_span.clone()));
    let pings = plan
        .pings
        .iter()
        .map(|p| (p.value.host.as_str(), p.span.clone()));
    let servers = plan.throughput.iter().flat_map(|check| &check.servers);
    let servers = servers.map(|s| (s.value.host.as_str(), s.span.clone()));
    endpoints.chain(pings).chain(servers)
}
