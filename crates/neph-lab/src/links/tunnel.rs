//! A tunnel in user space, as in early Flannel (udp backend) and Weave's sleeve mode. Pods are behind a
//! bridge at each host; a program sends packets for other hosts' pods inside UDP.

use std::net::{IpAddr, SocketAddr};

use neph_text::Fields;

use super::pods::{self, PodNetwork, Pods};
use crate::plan::Operation;
use crate::topology::Prefix;
use crate::topology::fixture::{Build, Built, FixtureKind, Nodes, TunnelEnd};
use crate::tunnel::{Peer, TunnelConfig};

/// Bytes of the outer IPv4 and UDP headers.
const OVERHEAD: u32 = 28;
/// The port of Flannel.
const PORT: u16 = 8285;

#[derive(Debug)]
pub(crate) struct UserSpace;

#[derive(Debug)]
struct Mesh {
    port: u16,
}

impl FixtureKind for UserSpace {
    fn name(&self) -> &'static str {
        "tunnel"
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
        let mut built = Built::of(pods.connect_by_bridge(mtu));
        let device = pods.interface("tun");
        for host in pods.hosts() {
            let make = format!("tuntap add name {device} mode tun");
            built
                .operations
                .push(Operation::ip(pods.namespace(host), make));
            built.operations.push(pods.masquerade(host, ""));
            built.tunnels.push(self.end(pods, host, mtu));
        }
        built
    }
}

impl Mesh {
    fn end(&self, pods: Pods<'_>, host: usize, mtu: u32) -> TunnelEnd {
        let endpoint = |host: usize| SocketAddr::new(IpAddr::V4(pods.address(host)), self.port);
        let device = pods.interface("tun");
        let peers = pods.outside_host(host).map(|pod| Peer {
            subnet: Prefix {
                address: pods.address(pod.site),
                bits: 32,
            },
            endpoint: endpoint(pod.host),
        });
        let (namespace, own_address) = (pods.namespace(host), pods.address(host));
        let up = format!("link set dev {device} mtu {mtu} up");
        let mut afterwards = vec![Operation::ip(namespace, up)];
        afterwards.extend(pods.outside_host(host).map(|pod| {
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
            afterwards,
        }
    }
}
