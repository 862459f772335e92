//! What the overlays share: pods, and their connection to their host.
//!
//! Owns the interfaces between a host and its pods. A pod's interface is `eth0`, as in containers. Its host
//! is its gateway, and MAC addresses are known, so ARP is not needed. IPv4 only, like the emulated overlays.

use std::fmt::Debug;
use std::net::Ipv4Addr;

use neph_text::{Fault, Fields, Port};

use crate::plan::Operation;
use crate::route;
use crate::topology::fixture::{FixtureBuilder, FixtureContext, FixtureParts, Nodes};
use crate::topology::{Prefix, Site};

/// The default MTU of Ethernet.
const DEFAULT_MTU: u32 = 1500;

/// A pod with its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pod {
    /// Its index among the sites.
    pub(super) site: usize,
    /// The index of its host.
    pub(super) host: usize,
}

/// What a kind of overlay creates for its pods.
pub(super) trait PodNetwork: Debug + Send + Sync + 'static {
    /// How it is built, as in [`FixtureBuilder::build`].
    fn build_network(&self, pods: Pods<'_>) -> FixtureParts;
}

/// An overlay of one kind, with its pods.
#[derive(Debug)]
struct Overlay<K> {
    pods: Vec<Pod>,
    kind: K,
}

impl<K: PodNetwork> FixtureBuilder for Overlay<K> {
    fn pods(&self) -> Vec<usize> {
        self.pods.iter().map(|pod| pod.site).collect()
    }

    fn build(&self, context: &FixtureContext<'_>) -> FixtureParts {
        self.kind.build_network(Pods {
            pods: &self.pods,
            context: *context,
        })
    }
}

/// An overlay of this kind; `None` without pods.
pub(super) fn overlay(
    pods: Option<Vec<Pod>>,
    kind: impl PodNetwork,
) -> Option<Box<dyn FixtureBuilder>> {
    let pods = pods?;
    Some(Box::new(Overlay { pods, kind }))
}

/// The UDP port of an overlay that uses one; `default_port` is the default.
pub(super) fn read_port(table: &mut Fields<'_>, default_port: u16) -> u16 {
    let port = table.optional::<Port>("port");
    port.map_or(default_port, |port| port.value.0)
}

/// The pods that the key `pods` of an overlay's table lists.
pub(super) fn read(table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Vec<Pod>> {
    read_list(table, "pods", nodes)
}

/// The sites inside others that `key` lists; at least one.
pub(super) fn read_list<'f>(
    table: &mut Fields<'f>,
    key: &'f str,
    nodes: Nodes<'_>,
) -> Option<Vec<Pod>> {
    table.needed(key);
    let names = table.one_or_list::<String>(key)?;
    let mut pods = Vec::new();
    for name in names {
        let site = nodes.resolve_site(&name, table)?;
        let Some(host) = nodes.sites[site].inside else {
            let message = format!("'{}' is not inside another site", name.value);
            let remedy = "write inside = \"HOST\" at its [[site]]";
            table.problems().add(name.span, Fault::new(message, remedy));
            return None;
        };
        pods.push(Pod { site, host });
    }
    Some(pods)
}

/// A fault if a pod is outside of its overlay's network, or another site inside of it.
pub(super) fn check_addresses(
    network: Prefix<Ipv4Addr>,
    pods: &[Pod],
    nodes: Nodes<'_>,
) -> Option<Fault> {
    let is_pod = |index: usize| pods.iter().any(|pod| pod.site == index);
    let mut sites = nodes.sites.iter().enumerate();
    let (index, site) = sites.find(|(index, site)| {
        !site.is_switch() && is_pod(*index) != network.contains(site.v4.address)
    })?;
    let position = if is_pod(index) { "outside" } else { "inside" };
    let message = format!("'{}' has an address {position} this network", site.name);
    let remedy = "give the overlay a network of its own, and its pods an address in it";
    Some(Fault::new(message, remedy))
}

/// The pods of an overlay, and their names and addresses in a lab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pods<'t> {
    pub(super) pods: &'t [Pod],
    pub(super) context: FixtureContext<'t>,
}

impl<'t> Pods<'t> {
    /// The hosts, each once, in the order of the sites.
    pub(super) fn hosts(self) -> Vec<usize> {
        let mut hosts: Vec<usize> = self.pods.iter().map(|pod| pod.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// The pods inside `host`.
    pub(super) fn inside_host(self, host: usize) -> impl Iterator<Item = Pod> + 't {
        self.pods
            .iter()
            .copied()
            .filter(move |pod| pod.host == host)
    }

    /// The pods inside other hosts.
    pub(super) fn outside_host(self, host: usize) -> impl Iterator<Item = Pod> + 't {
        self.pods
            .iter()
            .copied()
            .filter(move |pod| pod.host != host)
    }

    pub(super) fn site(self, index: usize) -> &'t Site {
        &self.context.topology.sites[index]
    }

    pub(super) fn address(self, index: usize) -> Ipv4Addr {
        self.site(index).v4.address
    }

    pub(super) fn namespace(self, index: usize) -> &'t str {
        &self.context.namespaces[index]
    }

    /// The smallest MTU of the links of these hosts, and of all links between them.
    pub(super) fn underlay_mtu(self) -> u32 {
        let (hosts, topology) = (self.hosts(), self.context.topology);
        let links = topology.links.iter();
        let host_links = links.filter(|link| hosts.contains(&link.a) || hosts.contains(&link.b));
        let link_shapes = host_links.flat_map(|link| [&link.a_to_b, &link.b_to_a]);
        let pairs = hosts
            .iter()
            .flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
        let path_shapes = pairs.filter_map(|(from, to)| route::path_shapes(topology, from, to));
        let shapes = link_shapes.chain(path_shapes.flatten());
        shapes
            .filter_map(|shape| shape.mtu)
            .min()
            .unwrap_or(DEFAULT_MTU)
    }

    /// The name of a host's interface of this overlay. A link's name has no underscore.
    pub(super) fn interface_name(self, prefix: &str) -> String {
        format!("{prefix}_{}", self.context.number)
    }

    /// Connects the pods of each host by a bridge, as container engines do.
    pub(super) fn connect_by_bridge(self, mtu: u32) -> Vec<Operation> {
        let bridge = self.interface_name("br");
        let mut operations = Vec::new();
        for host in self.hosts() {
            let namespace = self.namespace(host);
            let mac = host_mac(self.context.number, host);
            operations.push(Operation::sysctl(namespace, "net.ipv4.ip_forward", "1"));
            let add_bridge =
                format!("link add name {bridge} type bridge stp_state 0 mcast_snooping 0");
            operations.push(Operation::ip(namespace, add_bridge));
            let set_bridge = format!("link set dev {bridge} address {mac} up");
            operations.push(Operation::ip(namespace, set_bridge));
            for pod in self.inside_host(host) {
                let (host_interface, address) =
                    (format!("pod_{}", pod.site), self.address(pod.site));
                let mac = pod_mac(pod.site);
                let commands = [
                    format!(
                        "link add name {host_interface} mtu {mtu} type veth peer name eth0 mtu {mtu} \
                         address {mac} netns {}",
                        self.namespace(pod.site)
                    ),
                    format!("link set dev {host_interface} master {bridge} up"),
                    format!("neighbour add {address} lladdr {mac} dev {bridge} nud permanent"),
                    format!(
                        "route add {address}/32 dev {bridge} src {}",
                        self.address(host)
                    ),
                ];
                operations.extend(commands.map(|command| Operation::ip(namespace, command)));
            }
            let mac = host_mac(self.context.number, host);
            operations.extend(
                self.inside_host(host)
                    .flat_map(|pod| self.add_default_route(pod, &mac, "eth0")),
            );
        }
        operations
    }

    /// Gives a pod its default route over its interface `dev`; the host's end has this MAC address.
    pub(super) fn add_default_route(self, pod: Pod, mac: &str, dev: &str) -> Vec<Operation> {
        let (own_address, gateway) = (self.address(pod.site), self.address(pod.host));
        let congestion_option = self.congestion_option(pod);
        [
            format!("link set dev {dev} up"),
            format!("neighbour add {gateway} lladdr {mac} dev {dev} nud permanent"),
            format!("route add {gateway}/32 dev {dev} src {own_address}{congestion_option}"),
            format!(
                "route add default via {gateway} dev {dev} src {own_address}{congestion_option}"
            ),
        ]
        .map(|command| Operation::ip(self.namespace(pod.site), command))
        .to_vec()
    }

    /// The congestion control in a pod's routes, as for all sites.
    pub(super) fn congestion_option(self, pod: Pod) -> String {
        let name = self.site(pod.site).congestion_control.as_ref();
        name.map_or_else(String::new, |name| format!(" congctl lock {name}"))
    }

    /// Packets that leave the overlay get their host's address, as with container engines.
    pub(super) fn masquerade_operation(self, host: usize, extra_rules: &str) -> Operation {
        let join_addresses = |pods: &mut dyn Iterator<Item = Pod>| {
            let addresses: Vec<String> =
                pods.map(|pod| self.address(pod.site).to_string()).collect();
            addresses.join(", ")
        };
        let (own_sources, all_sources) = (
            join_addresses(&mut self.inside_host(host)),
            join_addresses(&mut self.pods.iter().copied()),
        );
        let rules = format!(
            "table ip overlay-{} {{\n  chain leave {{\n    \
             type nat hook postrouting priority srcnat;\n    \
             ip saddr {{ {own_sources} }} ip daddr != {{ {all_sources} }} oifname != \"{}\" snat to {}\n  }}\n\
             {extra_rules}}}\n",
            self.context.name,
            self.interface_name("br"),
            self.address(host),
        );
        Operation::nft(self.namespace(host), rules)
    }
}

/// The MAC address of a pod: locally administered, the same in every run.
pub(super) fn pod_mac(site: usize) -> String {
    let [.., high, low] = site.to_be_bytes();
    format!("02:6e:70:{high:02x}:{low:02x}:00")
}

/// The MAC address of a host's end of the overlay with this number.
pub(super) fn host_mac(overlay: usize, host: usize) -> String {
    let [.., overlay] = overlay.to_be_bytes();
    let [.., high, low] = host.to_be_bytes();
    format!("02:6e:76:{overlay:02x}:{high:02x}:{low:02x}")
}
