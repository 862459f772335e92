//! Flannel: its daemon at each host, and etcd at the first host, where the daemons find each other's subnets.
//! Pods are behind a bridge at each host, as with container engines.
//!
//! Owns the configuration of the programs, and when the overlay is ready. Flannel leases each host a /24 of
//! the network. The addresses of a host's pods determine it, and the daemon starts with it as its last lease.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use neph_model::Span;
use neph_text::{Fault, Fields, choice};

use super::pods::{self, Pod, PodNetwork, Pods};
use super::proxy::file_path;
use crate::plan::Operation;
use crate::topology::fixture::{FixtureBuilder, FixtureKind, FixtureParts, Nodes};
use crate::topology::{Link, Prefix, Ready, ReadyCheck, Service, Topology, network};

/// The length of a host's subnet: Flannel's default.
const SUBNET_BITS: u8 = 24;
/// Flannel needs at least four subnets.
const MAX_NETWORK_BITS: u8 = SUBNET_BITS - 2;
/// The key of the network configuration in etcd.
const CONFIG_KEY: &str = "/coreos.com/network/config";
/// etcd is ready after a second, a daemon after a few.
const READY_TIMEOUT: Span = Span::from_secs(30);
/// They are killed at once: there is no state to save.
const STOP_TIMEOUT: Span = Span::ZERO;

#[derive(Debug)]
pub(crate) struct Flannel;

/// How packets reach another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    Vxlan,
    Udp,
}

impl Backend {
    const NAMES: [(&'static str, Self); 2] = [("vxlan", Self::Vxlan), ("udp", Self::Udp)];

    /// Bytes of the outer headers.
    fn overhead(self) -> u32 {
        match self {
            Self::Vxlan => 50,
            Self::Udp => 28,
        }
    }

    /// The configuration for the daemons; the number distinguishes the overlays of one host.
    fn config(self, number: usize) -> String {
        match self {
            Self::Vxlan => format!(
                r#"{{"Type":"vxlan","VNI":{},"Port":{}}}"#,
                number + 1,
                8472 + number
            ),
            Self::Udp => format!(r#"{{"Type":"udp","Port":{}}}"#, 8285 + number),
        }
    }
}

#[derive(Debug)]
struct FlannelNetwork {
    network: Prefix<Ipv4Addr>,
    backend: Backend,
}

impl FixtureKind for Flannel {
    fn name(&self) -> &'static str {
        "flannel"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        let pods = pods::read(table, nodes);
        let network = table.required_with("network", network);
        let backend = table.optional_with("backend", |node| choice(node, &Backend::NAMES));
        let (pods, network) = (pods?, network?);
        let backend = backend.map_or(Backend::Vxlan, |backend| backend.value);
        let fault = check_network_length(network.value)
            .or_else(|| pods::check_addresses(network.value, &pods, nodes))
            .or_else(|| check_subnets(&pods, nodes))
            .or_else(|| check_link_count(backend, &pods, nodes));
        if let Some(fault) = fault {
            table.problems().add(network.span.clone(), fault);
            return None;
        }
        let network = network.value;
        pods::overlay(Some(pods), FlannelNetwork { network, backend })
    }
}

fn check_network_length(network: Prefix<Ipv4Addr>) -> Option<Fault> {
    (network.bits > MAX_NETWORK_BITS).then(|| {
        let message = format!(
            "a /{} has no room for subnets of /{SUBNET_BITS}",
            network.bits
        );
        Fault::new(
            message,
            format!("write a network of /{MAX_NETWORK_BITS} or shorter"),
        )
    })
}

/// The subnet of a pod's address.
fn subnet(address: Ipv4Addr) -> Ipv4Addr {
    let [a, b, c, _] = address.octets();
    Ipv4Addr::new(a, b, c, 0)
}

/// A host has one subnet, and no other host has the same.
fn check_subnets(pods: &[Pod], nodes: Nodes<'_>) -> Option<Fault> {
    let subnet_of = |pod: &Pod| subnet(nodes.sites[pod.site].v4.address);
    let name = |pod: &Pod| &nodes.sites[pod.site].name;
    let pairs = pods.iter().enumerate();
    let mut candidates =
        pairs.flat_map(|(index, pod)| pods[..index].iter().map(move |other| (other, pod)));
    let (first_pod, other) = candidates
        .find(|(pod, other)| (pod.host == other.host) != (subnet_of(pod) == subnet_of(other)))?;
    let conflict = if first_pod.host == other.host {
        "are in one host, but not in one subnet of /24"
    } else {
        "are in two hosts, but in one subnet of /24"
    };
    let message = format!("'{}' and '{}' {conflict}", name(first_pod), name(other));
    Some(Fault::new(
        message,
        "give the pods of each host addresses in a /24 of their own",
    ))
}

fn is_link_of_host(link: &Link, host: usize) -> bool {
    Topology::far_end(link, host).is_some()
}

/// Flannel's VXLAN uses one interface of the host.
fn check_link_count(backend: Backend, pods: &[Pod], nodes: Nodes<'_>) -> Option<Fault> {
    if backend == Backend::Udp || !nodes.is_complete {
        return None;
    }
    let link_count = |host: usize| {
        let links = nodes.links.iter();
        links.filter(|link| is_link_of_host(link, host)).count()
    };
    let pod = pods.iter().find(|pod| link_count(pod.host) != 1)?;
    let host = &nodes.sites[pod.host].name;
    let message = format!(
        "'{host}' has {} links, and Flannel's VXLAN uses one",
        link_count(pod.host)
    );
    let remedy = "give it one link, to a router or a switch, or write backend = \"udp\"";
    Some(Fault::new(message, remedy))
}

impl PodNetwork for FlannelNetwork {
    fn build_network(&self, pods: Pods<'_>) -> FixtureParts {
        let mtu = pods.underlay_mtu() - self.backend.overhead();
        let mut operations = pods.connect_by_bridge(mtu);
        let hosts = pods.hosts();
        for host in &hosts {
            let namespace = pods.namespace(*host);
            if let Some(link) = self.outside_interface(pods, *host) {
                // The daemon reads the interface's address; the host has it on loopback too.
                let line = format!("address add {}/32 dev {link}", pods.address(*host));
                operations.push(Operation::ip(namespace, line));
            }
            let lease_file = format!("{}.lease", pods.context.name_at(*host));
            operations.push(Operation::file(
                namespace,
                &lease_file,
                self.lease_text(pods, *host),
            ));
            operations.push(pods.masquerade_operation(*host, ""));
        }
        let mut services = vec![self.etcd_service(pods, hosts[0])];
        services.extend(hosts.iter().map(|host| self.flanneld_service(pods, *host)));
        FixtureParts {
            services,
            operations,
            programs: vec!["etcd", "etcdctl", "flanneld"],
            ..FixtureParts::default()
        }
    }
}

impl FlannelNetwork {
    /// The interface for a host's packets; `None` if any is suitable.
    fn outside_interface(&self, pods: Pods<'_>, host: usize) -> Option<String> {
        let mut links = pods.context.topology.links.iter();
        let link = links.find(|link| is_link_of_host(link, host))?;
        (self.backend == Backend::Vxlan).then(|| link.name.clone())
    }

    /// The file in which a daemon stores its subnet, and which it reads at its start.
    fn lease_text(&self, pods: Pods<'_>, host: usize) -> String {
        let pod = pods.inside_host(host).next().expect("a host has pods");
        let [a, b, c, _] = pods.address(pod.site).octets();
        let Prefix { address, bits } = self.network;
        format!("FLANNEL_NETWORK={address}/{bits}\nFLANNEL_SUBNET={a}.{b}.{c}.1/{SUBNET_BITS}\n")
    }

    fn etcd_service(&self, pods: Pods<'_>, host: usize) -> Service {
        let own_address = pods.address(host);
        let (client, peer) = (
            etcd_address(pods, own_address),
            format!("http://{own_address}:{}", 2380 + 2 * pods.context.number),
        );
        let folder = file_path(pods.context.folder, &pods.context.own_file("etcd"));
        let run = format!(
            "exec etcd --data-dir {folder} --listen-client-urls {client} --advertise-client-urls {client} \
             --listen-peer-urls {peer} --initial-advertise-peer-urls {peer} --initial-cluster default={peer}"
        );
        let Prefix { address, bits } = self.network;
        let backend = self.backend.config(pods.context.number);
        let config = format!(
            r#"{{"Network":"{address}/{bits}","SubnetLen":{SUBNET_BITS},"SubnetMin":"{address}","Backend":{backend}}}"#
        );
        let check = format!("etcdctl --endpoints {client} put {CONFIG_KEY} '{config}'");
        shell_service(pods.context.own_file("etcd"), host, run, check)
    }

    fn flanneld_service(&self, pods: Pods<'_>, host: usize) -> Service {
        let (address, etcd_host_address) = (pods.address(host), pods.address(pods.hosts()[0]));
        let lease = file_path(
            pods.context.folder,
            &format!("{}.lease", pods.context.name_at(host)),
        );
        let run = format!(
            "exec flanneld -etcd-endpoints {} -iface {} -public-ip {address} -subnet-file {lease} -ip-masq=false \
             -iptables-forward-rules=false",
            etcd_address(pods, etcd_host_address),
            self.outside_interface(pods, host)
                .unwrap_or_else(|| "lo".to_owned()),
        );
        shell_service(
            pods.context.name_at(host),
            host,
            run,
            lease_check(pods, host, &lease),
        )
    }
}

/// Whether a daemon has written its lease. After the last one, each host has routes to all pods.
fn lease_check(pods: Pods<'_>, host: usize, lease: &str) -> String {
    let mut check = format!("grep -q FLANNEL_MTU {lease}");
    let hosts = pods.hosts();
    if hosts.last() != Some(&host) {
        return check;
    }
    for route_host in &hosts {
        for pod in pods.outside_host(*route_host) {
            // There is no other route: without it, the packet would use the host's link.
            check.push_str(&format!(
                " && ip -n {} route get {} | grep -q 'dev flannel'",
                pods.namespace(*route_host),
                pods.address(pod.site),
            ));
        }
    }
    check
}

/// The client address of this overlay's etcd.
fn etcd_address(pods: Pods<'_>, address: Ipv4Addr) -> String {
    format!("http://{address}:{}", 2379 + 2 * pods.context.number)
}

fn shell_service(name: String, site: usize, run: String, check: String) -> Service {
    let shell = |line: String| vec!["sh".to_owned(), "-c".to_owned(), line];
    Service {
        name,
        site,
        command: shell(run),
        environment: BTreeMap::new(),
        ready: Some(Ready {
            check: ReadyCheck::Command(shell(check)),
            timeout: READY_TIMEOUT,
        }),
        log: None,
        grace: STOP_TIMEOUT,
    }
}
