//! A tunnel in user space, as in early Flannel (udp backend) and Weave's sleeve mode. Pods are behind a
//! bridge at each host; a program sends packets for other hosts' pods inside UDP.

use std::net::{IpAddr, SocketAddr};

use neph_text::Fields;

use super::pods::{self, PodNetwork, Pods};
use crate::plan::Operation;
use crate::topology::Prefix;
use crate::topology::fixture::{FixtureBuilder, FixtureKind, FixtureParts, Nodes, TunnelEnd};
use crate::tunnel::{Peer, TunnelConfig};

/// Bytes of the outer IPv4 and UDP headers.
const OVERHEAD_BYTES: u32 = 28;
/// The port of Flannel.
const DEFAULT_PORT: u16 = 8285;

#[derive(Debug)]
pub(crate) struct UserSpace;

#[derive(Debug)]
struct TunnelMesh {
    port: u16,
}

impl FixtureKind for UserSpace {
    fn name(&self) -> &'static str {
        "tunnel"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        let pods = pods::read(table, nodes);
        let port = pods::read_port(table, DEFAULT_PORT);
        pods::overlay(pods, TunnelMesh { port })
    }
}

impl PodNetwork for TunnelMesh {
    fn build_network(&self, pods: Pods<'_>) -> FixtureParts {
        let mtu = pods.underlay_mtu() - OVERHEAD_BYTES;
        let mut parts = FixtureParts::from_operations(pods.connect_by_bridge(mtu));
        let device = pods.interface_name("tun");
        for host in pods.hosts() {
            let add_device = format!("tuntap add name {device} mode tun");
            parts
                .operations
                .push(Operation::ip(pods.namespace(host), add_device));
            parts.operations.push(pods.masquerade_operation(host, ""));
            parts.tunnels.push(self.tunnel_end(pods, host, mtu));
        }
        parts
    }
}

impl TunnelMesh {
    fn tunnel_end(&self, pods: Pods<'_>, host: usize, mtu: u32) -> TunnelEnd {
        let endpoint = |host: usize| SocketAddr::new(IpAddr::V4(pods.address(host)), self.port);
        let device = pods.interface_name("tun");
        let peers = pods.outside_host(host).map(|pod| Peer {
            subnet: Prefix {
                address: pods.address(pod.site),
                bits: 32,
            },
            endpoint: endpoint(pod.host),
        });
        let (namespace, own_address) = (pods.namespace(host), pods.address(host));
        let set_up = format!("link set dev {device} mtu {mtu} up");
        let mut operations_after_start = vec![Operation::ip(namespace, set_up)];
        operations_after_start.extend(pods.outside_host(host).map(|pod| {
            let line = format!(
                "route add {}/32 dev {device} src {own_address}",
                pods.address(pod.site)
            );
            Operation::ip(namespace, line)
        }));
        TunnelEnd {
            site: host,
            config: TunnelConfig {
                interface: device.clone(),
                listen: endpoint(host),
                peers: peers.collect(),
            },
            operations_after_start,
        }
    }
}
