//! VXLAN (RFC 7348) as a mesh of unicast tunnels of the kernel, as in Flannel and Docker's native driver.
//! Pods are behind a bridge at each host; packets for other hosts' pods travel inside UDP. Every host has
//! entries for every pod, so there is no flooding and no ARP.

use neph_text::Fields;

use super::pods::{self, PodNetwork, Pods, host_mac};
use crate::plan::Operation;
use crate::topology::fixture::{FixtureBuilder, FixtureKind, FixtureParts, Nodes};

/// Bytes of the outer IPv4, UDP and VXLAN headers, and of the inner Ethernet header.
const OVERHEAD_BYTES: u32 = 50;
/// The port of Linux and Flannel; the assigned number is 4789.
const DEFAULT_PORT: u16 = 8472;

#[derive(Debug)]
pub(crate) struct Vxlan;

#[derive(Debug)]
struct VxlanMesh {
    port: u16,
}

impl FixtureKind for Vxlan {
    fn name(&self) -> &'static str {
        "vxlan"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        let pods = pods::read(table, nodes);
        let port = pods::read_port(table, DEFAULT_PORT);
        pods::overlay(pods, VxlanMesh { port })
    }
}

impl PodNetwork for VxlanMesh {
    fn build_network(&self, pods: Pods<'_>) -> FixtureParts {
        let mtu = pods.underlay_mtu() - OVERHEAD_BYTES;
        let mut operations = pods.connect_by_bridge(mtu);
        for host in pods.hosts() {
            operations.extend(self.tunnel_operations(pods, host, mtu));
            operations.push(pods.masquerade_operation(host, ""));
        }
        FixtureParts::from_operations(operations)
    }
}

impl VxlanMesh {
    fn tunnel_operations(&self, pods: Pods<'_>, host: usize, mtu: u32) -> Vec<Operation> {
        let (namespace, own_address) = (pods.namespace(host), pods.address(host));
        let (device, number) = (pods.interface_name("vx"), pods.context.number);
        let add_device = format!(
            "link add name {device} mtu {mtu} address {} type vxlan id {} local {own_address} dstport {} \
             nolearning",
            host_mac(number, host),
            number + 1,
            self.port,
        );
        let mut operations = vec![
            Operation::ip(namespace, add_device),
            Operation::ip(namespace, format!("link set dev {device} up")),
        ];
        for remote in pods.hosts().into_iter().filter(|remote| *remote != host) {
            let (mac, address) = (host_mac(number, remote), pods.address(remote));
            let add_fdb_entry = format!("fdb add {mac} dev {device} dst {address} self permanent");
            operations.push(Operation::bridge(namespace, add_fdb_entry));
            let add_neighbour =
                format!("neighbour add {address} lladdr {mac} dev {device} nud permanent");
            operations.push(Operation::ip(namespace, add_neighbour));
            for pod in pods.inside_host(remote) {
                let line = format!(
                    "route add {}/32 via {address} dev {device} onlink src {own_address}",
                    pods.address(pod.site)
                );
                operations.push(Operation::ip(namespace, line));
            }
        }
        operations
    }
}
