//! Owns the settings of a table of guests, and their network: a tap for each on a bridge of its host, and
//! routes from every site.

use std::ops::RangeInclusive;

use neph_model::BitRate;
use neph_text::{Bytes, Fault, Fields, FromNode, Node, Port};

use super::pods::{self, Pod, Pods, host_mac, pod_mac};
use crate::guest::{self, Guest, Kernel};
use crate::plan::{Operation, routes};
use crate::topology::fixture::Nodes;
use crate::topology::quantity;

/// The default memory of a guest.
const DEFAULT_MEMORY: u64 = 192 << 20;
/// The minimum holds the image twice for a moment.
const MEMORY_RANGE: RangeInclusive<u64> = (64 << 20)..=(64 << 30);

/// The settings of a table of guests, for every kind.
#[derive(Clone, Debug)]
pub(super) struct GuestSettings {
    pub(super) sites: Vec<Pod>,
    pub(super) memory: u64,
    bandwidth: Option<BitRate>,
    pub(super) port: u16,
    pub(super) run: Vec<String>,
}

/// From 64 MiB to 64 GiB.
fn memory(node: &Node) -> Result<u64, Fault> {
    match Bytes::from_node(node)? {
        Bytes(bytes) if MEMORY_RANGE.contains(&bytes) => Ok(bytes),
        _ => {
            let message = "this is no memory for a guest";
            Err(Fault::new(message, "write from \"64MiB\" to \"64GiB\""))
        }
    }
}

/// One line of shell.
fn shell_line(node: &Node) -> Result<String, Fault> {
    let line = String::from_node(node)?;
    if line.trim().is_empty() || line.contains('\n') {
        let message = "this is no command";
        return Err(Fault::new(
            message,
            "write one line, such as \"sysctl -w net.ipv4.tcp_sack=0\"",
        ));
    }
    Ok(line)
}

impl GuestSettings {
    /// Reads the settings that every kind has.
    pub(super) fn read(table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Self> {
        let sites = pods::read_list(table, "sites", nodes);
        let memory = table.optional_with("memory", memory);
        let bandwidth = table.optional_with("bandwidth", quantity::rate);
        let port = table.optional::<Port>("port");
        let run = table
            .one_or_list_with("run", shell_line)
            .unwrap_or_default();
        Some(Self {
            sites: sites?,
            memory: memory.map_or(DEFAULT_MEMORY, |memory| memory.value),
            bandwidth: bandwidth.map(|rate| rate.value),
            port: port.map_or(guest::DEFAULT_PORT, |port| port.value.0),
            run: run.into_iter().map(|line| line.value).collect(),
        })
    }

    /// The guests, with this kind of kernel.
    pub(super) fn guests(&self, kernel: Kernel) -> Vec<Guest> {
        let to_guest = |guest: &Pod| Guest {
            site: guest.site,
            port: self.port,
            bandwidth: self.bandwidth,
            kernel,
        };
        self.sites.iter().map(to_guest).collect()
    }

    /// What runs in addition to the reflector, as shell lines.
    pub(super) fn run_script(&self) -> String {
        let lines = self.run.iter().flat_map(|line| [line.as_str(), " &\n"]);
        lines.collect()
    }

    /// The bridge of a host with a tap for each of its guests, or what `interface_command` creates instead. MAC addresses
    /// are known, so ARP is not needed. A guest accepts no frame longer than its MTU, so segmentation offload
    /// is off.
    pub(super) fn bridge_operations(
        &self,
        pods: Pods<'_>,
        host: usize,
        interface_command: impl Fn(Pod) -> String,
    ) -> Vec<Operation> {
        let (bridge, namespace) = (pods.interface_name("vm"), pods.namespace(host));
        let (mac, mtu) = (host_mac(pods.context.number, host), pods.underlay_mtu());
        let add_bridge = format!("link add name {bridge} type bridge stp_state 0 mcast_snooping 0");
        let gso_options = no_gso_options(mtu);
        let mut operations = vec![
            Operation::sysctl(namespace, "net.ipv4.ip_forward", "1"),
            Operation::ip(namespace, add_bridge),
            Operation::ip(
                namespace,
                format!("link set dev {bridge} address {mac} mtu {mtu} {gso_options} up"),
            ),
        ];
        for guest in pods.inside_host(host) {
            let (tap, address) = (tap_name(guest), pods.address(guest.site));
            let congestion_option = routes::congestion_option(pods.site(host));
            let mac = pod_mac(guest.site);
            let lines = [
                interface_command(guest),
                format!("link set dev {tap} mtu {mtu} master {bridge} up"),
                format!("neighbour add {address} lladdr {mac} dev {bridge} nud permanent"),
                format!(
                    "route add {address}/32 dev {bridge} src {}{congestion_option}",
                    pods.address(host)
                ),
            ];
            operations.extend(lines.map(|line| Operation::ip(namespace, line)));
            // A burst of ten frames and a queue of 50 ms, similar to the limit of libvirt.
            operations.extend(self.bandwidth.map(|rate| {
                let rate = rate.bits_per_second();
                let line =
                    format!("qdisc add dev {tap} root tbf rate {rate}bit burst 15140 latency 50ms");
                Operation::tc(namespace, line)
            }));
        }
        operations
    }
}

/// Options of an interface without segmentation offload: it sends each segment by itself.
pub(super) fn no_gso_options(mtu: u32) -> String {
    format!("gso_max_segs 1 gso_max_size {mtu}")
}

/// The guest's interface at its host.
pub(super) fn tap_name(guest: Pod) -> String {
    format!("tap_{}", guest.site)
}

/// Routes from all sites outside the host to a guest, through the host.
pub(super) fn routes_to_guest(pods: Pods<'_>, guest: Pod) -> Vec<Operation> {
    let topology = pods.context.topology;
    let address = pods.address(guest.site);
    let others = topology.sites.iter().enumerate();
    let others = others
        .filter(|(index, site)| *index != guest.host && site.inside.is_none() && !site.is_switch());
    let routes = others.filter_map(|(index, _)| {
        let route = routes::route_through(topology, (index, guest.host), address.into())?;
        let line = route.line("add", &routes::Weights::default());
        Some(Operation::ip(pods.namespace(index), line))
    });
    routes.collect()
}
