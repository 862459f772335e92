//! Whether somebody listens where a plan's endpoints are, as far as its lab tells: at a site that has
//! reflectors one of them must listen there. One without them may be silent on purpose.
//!
//! Says nothing where something else may listen: a service of the topology, or a box in the path.

use std::net::{IpAddr, SocketAddr};

use neph_campaign::plan::{Endpoint, LabPlan, LabReflector};
use neph_lab::{Site, Topology};
use neph_model::ProbeKind;
use neph_text::{Fault, Problems};

use super::stage::reflect_flags;
use super::{Read, Scene};

/// Notes every endpoint in the lab that nobody would answer. Only of a plan without other mistakes: who
/// listens where is not known while a reflector's site or flags are wrong.
pub(super) fn check(read: &Read, problems: &Problems<'_>) {
    let Some(lab) = &read.plan.lab else {
        return;
    };
    if !problems.is_empty() {
        return;
    }
    for endpoint in &read.plan.endpoints {
        let mut scenes = read.scenes.iter();
        if let Some(fault) = scenes.find_map(|scene| unheard(endpoint, lab, scene)) {
            problems.add(endpoint.written_at.clone(), fault);
        }
    }
}

fn unheard(endpoint: &Endpoint, lab: &LabPlan, scene: &Scene) -> Option<Fault> {
    // The kernel answers echoes, and SYNs to a port without a listener too.
    let by_kernel = matches!(endpoint.target.probe, ProbeKind::Icmp | ProbeKind::Syn);
    let port = endpoint.target.port.filter(|_| !by_kernel)?;
    let address = SocketAddr::new(endpoint.target.host.parse().ok()?, port);
    let topology = &scene.topology;
    let (index, site) = site_at(topology, address.ip())?;
    let others = topology
        .services
        .iter()
        .any(|service| service.site == index);
    if others || !topology.fixtures.is_empty() {
        return None;
    }
    let own = lab
        .reflectors
        .iter()
        .filter(|one| one.site.value == site.name);
    let listening: Vec<SocketAddr> = own.filter_map(listens_at).collect();
    if listening.iter().any(|at| takes(*at, address)) {
        return None;
    }
    let first = listening.first()?;
    let what = format!(
        "nobody listens at {address}: the reflector at site '{}' listens at {first}",
        site.name
    );
    let wanted = SocketAddr::new(any_like(address.ip()), port);
    let remedy = format!(
        "give that [[lab.reflector]] flags = [\"--listen\", \"{wanted}\"], or write the address \
         that it listens at"
    );
    Some(Fault::new(what, remedy))
}

fn site_at(topology: &Topology, address: IpAddr) -> Option<(usize, &Site)> {
    let mut sites = topology.sites.iter().enumerate();
    sites.find(|(_, site)| site.addresses().any(|own| own == address))
}

/// None for flags that cannot be.
fn listens_at(reflector: &LabReflector) -> Option<SocketAddr> {
    reflect_flags(reflector).ok().map(|flags| flags.listen)
}

/// Whether who listens at `at` takes what comes to `to`; `[::]` takes IPv4 too.
fn takes(at: SocketAddr, to: SocketAddr) -> bool {
    let same_ip = match at.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => to.is_ipv4(),
        IpAddr::V6(ip) if ip.is_unspecified() => true,
        ip => ip == to.ip(),
    };
    same_ip && at.port() == to.port()
}

/// Every address of that version.
fn any_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::from([0; 4]),
        IpAddr::V6(_) => IpAddr::from([0; 16]),
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use crate::campaign::understand;
    use crate::exit::Failure;

    /// What is wrong with a plan for the shipped topology of four regions.
    fn told(url: &str, reflectors: &str) -> String {
        let topology = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../neph-lab/topologies/regions-4-pairs.toml"
        );
        let plan = format!(
            "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 9\n\
             [[endpoint]]\nname = \"virginia\"\nurl = \"{url}\"\n\
             [lab]\ntopology = \"{topology}\"\nprober = \"oregon\"\n{reflectors}"
        );
        match understand(Source::new("p.toml", plan)) {
            Ok(_) => String::new(),
            Err(Failure::Text(_, problems)) => {
                let each = problems.iter().map(ToString::to_string);
                each.collect::<Vec<_>>().join("\n")
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_port_that_no_reflector_of_the_lab_listens_at_is_a_mistake_of_the_plan() {
        let at = |site: &str| format!("[[lab.reflector]]\nsite = \"{site}\"\n");
        let wrong = told("udp://10.88.0.2:21082", &at("virginia"));
        for part in [
            "p.toml:7:7",
            "listens at 0.0.0.0:8080",
            "\"--listen\", \"0.0.0.0:21082\"",
        ] {
            assert!(wrong.contains(part), "{part}: {wrong}");
        }
        let moved = at("virginia") + "flags = [\"--listen\", \"0.0.0.0:21082\"]\n";
        assert_eq!(told("udp://10.88.0.2:21082", &moved), "");
        let elsewhere = at("virginia") + "flags = [\"--listen\", \"127.0.0.1:8080\"]\n";
        assert!(told("ws://10.88.0.2:8080", &elsewhere).contains("nobody listens"));
        assert_eq!(told("tcp://10.88.0.2:9", &at("tokyo")), "");
    }

    #[test]
    fn what_the_kernel_answers_and_what_is_outside_the_lab_needs_no_reflector() {
        for url in ["icmp://10.88.0.2", "syn://10.88.0.2:9", "udp://192.0.2.1"] {
            assert_eq!(told(url, ""), "", "{url}");
        }
    }
}
