//! Checks that the endpoints and loads of a plan have a listener, as far as its lab shows. A site
//! must have the address. A site with reflectors must have one that listens at the port. A site
//! without reflectors may be silent on purpose, unless the lab has no reflector at all.
//!
//! Reports nothing if something else may listen: a service of the topology, or a device in the path.

use std::net::{IpAddr, SocketAddr};

use neph_campaign::plan::{Endpoint, LabPlan};
use neph_lab::addresses::{accepts, site_at, unknown_address_fault};
use neph_model::LoadSpec;
use neph_text::{Fault, Problems};

use super::{LabTopology, PlanSource};

/// Reports every endpoint and load in the lab that no site would answer. Only for plans without
/// other mistakes: the listeners are not known while the site of a reflector is wrong.
pub(super) fn check(plan_source: &PlanSource, problems: &Problems<'_>) {
    let Some(lab) = &plan_source.plan.lab else {
        return;
    };
    if !problems.is_empty() {
        return;
    }
    for endpoint in &plan_source.plan.endpoints {
        let mut lab_topologies = plan_source.lab_topologies.iter();
        let Some((ip, port)) = requested_address(endpoint) else {
            continue;
        };
        if let Some(fault) =
            lab_topologies.find_map(|lab_topology| unreachable_fault(ip, port, lab, lab_topology))
        {
            problems.add(endpoint.address_span.clone(), fault);
        }
    }
    for background_load in &plan_source.plan.background_loads {
        let targets = background_load.value.loads().iter();
        let targets = targets.filter_map(|load| load_target(&load.load));
        let mut pairs = targets.flat_map(|target| {
            plan_source
                .lab_topologies
                .iter()
                .map(move |lab_topology| (target, lab_topology))
        });
        let fault = pairs.find_map(|(target, lab_topology)| {
            unreachable_fault(target.ip(), Some(target.port()), lab, lab_topology)
        });
        if let Some(fault) = fault {
            problems.add(background_load.span.clone(), fault);
        }
    }
}

/// The address of the endpoint, and the port that needs a listener; `None` for a name.
fn requested_address(endpoint: &Endpoint) -> Option<(IpAddr, Option<u16>)> {
    let ip = endpoint.target.host().parse().ok()?;
    // The kernel answers ICMP echo, and SYNs to a port without a listener.
    let is_answered_by_kernel = endpoint.target.kind().properties().is_answered_by_kernel;
    Some((ip, (!is_answered_by_kernel).then(|| endpoint.target.port())))
}

/// The reflector that a load sends to; `None` for a name.
fn load_target(load: &LoadSpec) -> Option<SocketAddr> {
    match load {
        LoadSpec::Cpu(_) => None,
        LoadSpec::Flow { to, .. } | LoadSpec::Stream { to, .. } => to.parse().ok(),
    }
}

fn unreachable_fault(
    ip: IpAddr,
    port: Option<u16>,
    lab: &LabPlan,
    lab_topology: &LabTopology,
) -> Option<Fault> {
    let topology = &lab_topology.topology;
    let Some((index, site)) = site_at(topology, ip) else {
        // Overlays, load balancers and guests add IPv4 addresses.
        let has_all_addresses = topology.fixtures.is_empty() || ip.is_ipv6();
        return unknown_address_fault(ip, topology).filter(|_| has_all_addresses);
    };
    if !topology.fixtures.is_empty() {
        return None;
    }
    let port = port?;
    let address = SocketAddr::new(ip, port);
    let mut services = topology.services.iter();
    if services.any(|service| service.site == index) {
        return None;
    }
    if lab.reflectors.is_empty() {
        let message = format!("no reflector listens at {address}: the lab has none");
        let remedy = format!("add [[lab.reflector]] with site = \"{}\"", site.name);
        return Some(Fault::new(message, remedy));
    }
    let reflectors = lab
        .reflectors
        .iter()
        .filter(|reflector| reflector.site.value == site.name);
    let listeners: Vec<SocketAddr> = reflectors
        .map(|reflector| reflector.spec.value.address)
        .collect();
    if listeners.iter().any(|listener| accepts(*listener, address)) {
        return None;
    }
    let first = listeners.first()?;
    let message = format!(
        "no reflector listens at {address}: that of site '{}' listens at {first}",
        site.name
    );
    let remedy = format!(
        "give that [[lab.reflector]] flags = [\"--listen\", \"[::]:{port}\"], or write the address \
         that it listens at"
    );
    Some(Fault::new(message, remedy))
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use crate::campaign::parse_plan;
    use crate::exit::Failure;

    /// The problems of a plan for the shipped topology of four regions.
    fn problems_text(url: &str, reflectors: &str) -> String {
        let topology = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../neph-lab/topologies/regions-4-pairs.toml"
        );
        problems_text_in((topology, "oregon"), url, reflectors)
    }

    /// The problems of a plan that measures from a site of a topology.
    fn problems_text_in((topology, prober): (&str, &str), url: &str, reflectors: &str) -> String {
        let plan = format!(
            "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 9\n\
             [[endpoint]]\nname = \"virginia\"\nurl = \"{url}\"\n\
             [lab]\ntopology = \"{topology}\"\nprober = \"{prober}\"\n{reflectors}"
        );
        match parse_plan(Source::new("p.toml", plan)) {
            Ok(_) => String::new(),
            Err(Failure::Text(_, problems)) => {
                let messages = problems.iter().map(ToString::to_string);
                messages.collect::<Vec<_>>().join("\n")
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_port_that_no_reflector_of_the_lab_listens_at_is_a_mistake_of_the_plan() {
        let reflector_at = |site: &str| format!("[[lab.reflector]]\nsite = \"{site}\"\n");
        let problems = problems_text("udp://10.88.0.2:21082", &reflector_at("virginia"));
        for part in [
            "p.toml:7:7",
            "listens at [::]:8080",
            "\"--listen\", \"[::]:21082\"",
        ] {
            assert!(problems.contains(part), "{part}: {problems}");
        }
        let other_port = reflector_at("virginia") + "flags = [\"--listen\", \"0.0.0.0:21082\"]\n";
        assert_eq!(problems_text("udp://10.88.0.2:21082", &other_port), "");
        let loopback = reflector_at("virginia") + "flags = [\"--listen\", \"127.0.0.1:8080\"]\n";
        assert!(problems_text("ws://10.88.0.2:8080", &loopback).contains("no reflector listens"));
        assert_eq!(
            problems_text("tcp://10.88.0.2:9", &reflector_at("tokyo")),
            ""
        );
    }

    #[test]
    fn kernel_answers_and_external_targets_need_no_reflector() {
        for url in [
            "icmp://10.88.0.2",
            "syn://10.88.0.2:9",
            "udp://127.0.0.1",
            "udp://elsewhere.example",
        ] {
            assert_eq!(problems_text(url, ""), "", "{url}");
        }
    }

    #[test]
    fn a_lab_without_any_reflector_answers_no_endpoint_in_it() {
        let problems = problems_text("udp://10.88.0.2:21082", "");
        let expected = "p.toml:7:7: no reflector listens at 10.88.0.2:21082: the lab has none; add \
                    [[lab.reflector]] with site = \"virginia\"";
        assert_eq!(problems, expected);
    }

    #[test]
    fn an_address_that_no_site_of_the_lab_has_is_a_mistake_of_the_plan() {
        for url in ["udp://10.88.0.77", "icmp://192.0.2.1", "syn://10.88.0.77:9"] {
            let problems = problems_text(url, "[[lab.reflector]]\nsite = \"virginia\"\n");
            let expected = "p.toml:7:7: no site of the lab has the address";
            assert!(problems.starts_with(expected), "{url}: {problems}");
            assert!(problems.contains("(virginia)"), "{problems}");
        }
    }

    #[test]
    fn a_load_that_no_site_of_the_lab_would_take_is_a_mistake_of_the_plan() {
        let problems_of_load = |to: &str| {
            let reflector = "[[lab.reflector]]\nsite = \"virginia\"\n";
            let load = format!("udp://10.88.0.2:8080\"\nstress = \"oregon flow {to} 5Mbit/s");
            problems_text(&load, reflector)
        };
        assert_eq!(problems_of_load("10.88.0.2:8080"), "");
        assert_eq!(problems_of_load("elsewhere.example:8080"), "");
        let problems = problems_of_load("10.88.0.99:8080");
        let expected =
            "p.toml:8:10: no site of the lab has the address 10.88.0.99; write for example";
        assert!(problems.starts_with(expected), "{problems}");
        let problems = problems_of_load("10.88.0.2:8081");
        let expected = "p.toml:8:10: no reflector listens at 10.88.0.2:8081";
        assert!(problems.starts_with(expected), "{problems}");
        let problems = problems_of_load("[fd00::1]:8080");
        assert!(
            problems.contains("fd00::1; write for example 10.88."),
            "{problems}"
        );
    }

    #[test]
    fn a_guest_is_not_reached_by_ipv6() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lab.toml");
        let text = "version = 1\nnetwork = \"10.9.0.0/24\"\nnetwork_v6 = \"fd00:9::/64\"\n\
                    site = [{name = \"h\"}, {name = \"vm\", inside = \"h\"}]\n\
                    guest = [{name = \"m\", kind = \"uml\", sites = [\"vm\"]}]\n";
        std::fs::write(&file, text).expect("written");
        let file = file.display().to_string();
        let problems_of = |url: &str| problems_text_in((&file, "h"), url, "");
        assert_eq!(problems_of("udp://10.9.0.2:8080"), "");
        assert_eq!(
            problems_of("udp://[fd00:9::2]:8080"),
            "p.toml:7:7: no site of the lab has the address fd00:9::2; write for example fd00:9::1 (h)"
        );
    }
}
