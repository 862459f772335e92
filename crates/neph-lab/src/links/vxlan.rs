//! VXLAN (RFC 7348) as a mesh of unicast tunnels of the kernel, as in Flannel and Docker's native driver.
//! Pods are behind a bridge at each host; packets for other hosts' pods travel inside UDP. Every host has
//! entries for every pod, so there is no flooding and no ARP.

use neph_text::Fields;

use super::pods::{self, PodNetwork, Pods, host_mac};
use crate::plan::Operation;
use crate::topology::fixture::{Build, Built, FixtureKind, Nodes};

/// Bytes of the outer IPv4, UDP and VXLAN headers, and of the inner Ethernet header.
const OVERHEAD: u32 = 50;
/// The port of Linux and Flannel; the assigned number is 4789.
const PORT: u16 = 8472;

#[derive(Debug)]
pub(crate) struct Vxlan;

#[derive(Debug)]
struct Mesh {
    port: u16,
}

impl FixtureKind for Vxlan {
    fn name(&self) -> &'static str {
        "vxlan"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn Build>> {
        let pods = pods::read(table, nodes);
        let port = pods::read_port(table, PORT);
        pods::overlay(pods, Mesh { port })
    }
}

impl PodNetwork for Mesh {
    fn build_network(&self, pods: Pods<'_>) -> Built {
        let mtu = pods.underlay_mtu() - OVERHEAD;
        let mut operations = pods.connect_by_bridge(mtu);
        for host in pods.hosts() {
            operations.extend(self.tunnel(pods, host, mtu));
            operations.push(pods.masquerade(host, ""));
        }
        Built::of(operations)
    }
}

impl Mesh {
    fn tunnel(&self, pods: Pods<'_>, host: usize, mtu: u32) -> Vec<Operation> {
        let (namespace, own_address) = (pods.namespace(host), pods.address(host));
        let (device, number) = (pods.interface("vx"), pods.context.number);
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
            let fdb = format!("fdb add {mac} dev {device} dst {address} self permanent");
            operations.push(Operation::bridge(namespace, fdb));
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
