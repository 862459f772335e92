//! Every operation that brings a topology up inside its namespaces, in order, before any is done.
//!
//! Owns addresses, neighbours and routes, and the settings of each site. Does nothing itself.
//!
//! A site's address sits on its loopback interface and its links are unnumbered, as routers do
//! it, so a site with several links needs one address only. Neighbours are entered by hand:
//! address resolution over a link of 150 ms would otherwise be the first thing measured.

mod operation;
pub(crate) mod routes;
mod step;
mod steps;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::PathBuf;

use crate::links::{self, LinkKind, LinkPlacement, mac};
use crate::segment;
use crate::topology::fixture::{FixtureContext, FixtureParts, TunnelEnd};
use crate::topology::{Role, Routing, Service, Topology};

pub(crate) use operation::{Operation, Program};
pub use step::Step;
pub use steps::quoted;

/// A topology with the namespaces and the folder of its lab.
#[derive(Debug)]
pub(crate) struct Plan<'t> {
    /// What is to be built.
    pub(crate) topology: &'t Topology,
    /// The lab's own namespace.
    pub(crate) wire: String,
    /// The namespace of each site.
    pub(crate) sites: Vec<String>,
    /// How each link is carried.
    pub(crate) kinds: Vec<&'static dyn LinkKind>,
    /// The lab's folder.
    pub(crate) folder: PathBuf,
    /// What each overlay, balancer and guest is built of.
    fixture_parts: Vec<FixtureParts>,
}

impl<'t> Plan<'t> {
    /// What `topology` becomes where its lab's own namespace is called `wire`, those of its sites
    /// `sites`, and its files are in `folder`.
    pub(crate) fn new(
        topology: &'t Topology,
        wire: String,
        sites: Vec<String>,
        folder: PathBuf,
    ) -> Self {
        let fixtures = topology.fixtures.iter().enumerate();
        let fixture_parts = fixtures.map(|(number, fixture)| {
            fixture.build.build(&FixtureContext {
                name: &fixture.name,
                number,
                topology,
                namespaces: &sites,
                folder: &folder,
            })
        });
        Self {
            fixture_parts: fixture_parts.collect(),
            kinds: topology.links.iter().map(links::link_kind).collect(),
            topology,
            wire,
            sites,
            folder,
        }
    }

    /// All operations: links first, then each site's interfaces, addresses and routes, then what
    /// is built upon them.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (number, (link, kind)) in self.topology.links.iter().zip(&self.kinds).enumerate() {
            let site_namespaces = [self.sites[link.a].as_str(), self.sites[link.b].as_str()];
            operations.extend(kind.create_operations(&LinkPlacement {
                number,
                link,
                wire_namespace: &self.wire,
                site_namespaces,
            }));
        }
        for (index, site) in self.topology.sites.iter().enumerate() {
            if site.is_switch() {
                self.add_bridge(index, &mut operations);
            } else {
                self.add_site_interfaces(index, &mut operations);
            }
        }
        let fixture_parts = self.fixture_parts.iter();
        operations.extend(fixture_parts.flat_map(|parts| parts.operations.iter().cloned()));
        operations
    }

    /// All services: those of overlays and balancers first, then the topology's own.
    pub(crate) fn services(&self) -> impl Iterator<Item = &Service> {
        let fixture_services = self.fixture_parts.iter().flat_map(|parts| &parts.services);
        fixture_services.chain(&self.topology.services)
    }

    /// Programs that services run beside those that they name.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &'static str> {
        let fixture_parts = self.fixture_parts.iter();
        fixture_parts.flat_map(|parts| parts.programs.iter().copied())
    }

    /// Programs that must need no libraries.
    pub(crate) fn static_programs(&self) -> impl Iterator<Item = &'static str> {
        self.fixture_parts
            .iter()
            .flat_map(|parts| parts.static_programs.iter().copied())
    }

    /// Control groups that services make for themselves.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &String> {
        self.fixture_parts.iter().flat_map(|parts| &parts.groups)
    }

    /// What the lab's own threads carry beside the links.
    pub(crate) fn tunnels(&self) -> impl Iterator<Item = &TunnelEnd> {
        self.fixture_parts.iter().flat_map(|parts| &parts.tunnels)
    }

    /// Interfaces whose offloads are switched off: each namespace with its own, the lab's first.
    pub(crate) fn offloads(&self) -> Vec<(&str, Vec<String>)> {
        let ends = self.kinds.iter().enumerate();
        let ends = ends.filter_map(|(number, kind)| kind.engine_ends(number));
        let wire = (self.wire.as_str(), ends.flatten().collect());
        let sites = self.sites.iter().enumerate().map(|(index, namespace)| {
            let own_links = segment::links_of(self.topology, index);
            let own_links = own_links.map(|link| self.topology.links[link].name.clone());
            (namespace.as_str(), own_links.collect())
        });
        std::iter::once(wire).chain(sites).collect()
    }

    /// Joins the links of a switch. Static entries for all neighbours avoid flooding. Without rings
    /// it needs no spanning tree.
    fn add_bridge(&self, index: usize, operations: &mut Vec<Operation>) {
        let (topology, namespace) = (self.topology, &self.sites[index]);
        let add_bridge = "link add name bridge_ type bridge stp_state 0 mcast_snooping 0";
        operations.push(Operation::ip(namespace, add_bridge));
        operations.push(Operation::ip(namespace, "link set dev bridge_ up"));
        for number in segment::links_of(topology, index) {
            let dev = &topology.links[number].name;
            operations.push(Operation::ip(
                namespace,
                format!("link set dev {dev} master bridge_ up"),
            ));
        }
        for number in segment::links_of(topology, index) {
            let dev = &topology.links[number].name;
            for neighbour in segment::neighbours_over(topology, index, number) {
                let mac = mac(neighbour.link, neighbour.end);
                let line = format!("fdb add {mac} dev {dev} master static");
                operations.push(Operation::bridge(namespace, line));
            }
        }
    }

    fn add_site_interfaces(&self, index: usize, operations: &mut Vec<Operation>) {
        let (topology, namespace) = (self.topology, &self.sites[index]);
        let mut ip = |line: String| operations.push(Operation::ip(namespace, line));
        ip("link set dev lo up".to_owned());
        for address in topology.sites[index].addresses() {
            let nodad = if address.is_ipv6() { " nodad" } else { "" };
            ip(format!(
                "address add {} dev lo{nodad}",
                host_prefix(address)
            ));
        }
        for number in segment::links_of(topology, index) {
            let link = &topology.links[number];
            let dev = &link.name;
            // A veth refuses what is longer than its own end allows, so both have the larger one;
            // the smaller one is the routes'.
            if let Some(mtu) = link.interface_mtu() {
                ip(format!("link set dev {dev} mtu {mtu}"));
            }
            ip(format!("link set dev {dev} up"));
            for neighbour in segment::neighbours_over(topology, index, number) {
                if neighbour.site == index {
                    continue;
                }
                let mac = mac(neighbour.link, neighbour.end);
                for address in topology.sites[neighbour.site].addresses() {
                    let neighbour_command =
                        format!("neighbour add {address} lladdr {mac} dev {dev}");
                    ip(neighbour_command + " nud permanent");
                }
            }
        }
        for route in routes::routes(topology, index) {
            ip(route.line("add", &routes::Weights::default()));
        }
    }
}

fn host_prefix(address: IpAddr) -> String {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    format!("{address}/{bits}")
}

/// Settings of the lab's own namespace, so that no packet but the sites' is on the wire.
pub(crate) const WIRE_SETTINGS: [(&str, &str); 2] = [
    ("net.ipv6.conf.all.disable_ipv6", "1"),
    ("net.ipv6.conf.default.disable_ipv6", "1"),
];

/// The settings of a site before its links are made; the topology's own come last and win.
pub(crate) fn settings(topology: &Topology, index: usize) -> Vec<(&str, String)> {
    let site = &topology.sites[index];
    let forwards = match site.role {
        Role::Site => segment::links_of(topology, index).count() > 1,
        Role::Router => true,
        Role::Switch => false,
    };
    let forwarding_value = if forwards { "1" } else { "0" };
    let disable_ipv6_value = if site.v6.is_some() { "0" } else { "1" };
    let lab_settings = [
        // A window remembered from an earlier run would spoil the next.
        ("net.ipv4.tcp_no_metrics_save", "1"),
        // Echo requests without root.
        ("net.ipv4.ping_group_range", "0 2147483647"),
        ("net.ipv4.ip_forward", forwarding_value),
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.ipv4.conf.default.send_redirects", "0"),
        ("net.ipv6.conf.all.disable_ipv6", disable_ipv6_value),
        ("net.ipv6.conf.default.disable_ipv6", disable_ipv6_value),
        ("net.ipv6.conf.all.forwarding", forwarding_value),
        // No link-local addresses, no router solicitations: only what is measured is on a link.
        ("net.ipv6.conf.default.addr_gen_mode", "1"),
        ("net.ipv6.conf.default.accept_ra", "0"),
    ];
    let to_owned_pair = |(name, value): (&'static str, &str)| (name, value.to_owned());
    let mut settings: Vec<(&str, String)> = lab_settings.into_iter().map(to_owned_pair).collect();
    if topology.routing == Routing::Ecmp && forwards {
        settings.extend(HASH_SETTINGS.map(to_owned_pair));
        settings.push((HASH_SEED, routes::hash_seed(index, 0).to_string()));
    }
    let sysctls = site.sysctls.iter();
    settings.extend(sysctls.map(|(name, value)| (name.as_str(), value.clone())));
    settings
}

/// The fields by which a kernel chooses among equal next hops: addresses, protocol and ports of the packet.
/// Policy 1 takes a hash along that a local socket of this machine has given the packet, which a
/// router would not know.
const HASH_SETTINGS: [(&str, &str); 4] = [
    ("net.ipv4.fib_multipath_hash_policy", "3"),
    ("net.ipv4.fib_multipath_hash_fields", "0x37"),
    ("net.ipv6.fib_multipath_hash_policy", "3"),
    ("net.ipv6.fib_multipath_hash_fields", "0x37"),
];

/// Seeds that hash, for both families; 0 would leave it to the kernel.
pub(crate) const HASH_SEED: &str = "net.ipv4.fib_multipath_hash_seed";
