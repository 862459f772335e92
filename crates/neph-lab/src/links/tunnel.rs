//! The tunnel in user space, as early Flannel (its udp backend) and Weave's sleeve mode have it:
//! pods behind a bridge at each host, packets to other hosts' pods through a program and inside
//! UDP.

use std::net::{IpAddr, SocketAddr};

use neph_text::{Fields, Port};

use super::pods::{self, Pod, Pods};
use crate::fixture::{Build, Built, FixtureKind, Ground, Nodes, TunnelEnd};
use crate::plan::Operation;
use crate::topology::Prefix;
use crate::tunnel::{Peer, TunnelConfig};

/// Bytes of the outer IPv4 and UDP headers.
const OVERHEAD: u32 = 28;
/// Flannel's.
const PORT: u16 = 8285;

#[derive(Debug)]
pub(crate) struct UserSpace;

#[derive(Debug)]
struct Overlay {
    pods: Vec<Pod>,
    port: u16,
}

impl FixtureKind for UserSpace {
    fn name(&self) -> &'static str {
        "tunnel"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn Build>> {
        let pods = pods::read(table, nodes);
        let port = table.optional::<Port>("port");
        Some(Box::new(Overlay {
            pods: pods?,
            port: port.map_or(PORT, |port| port.value.0),
        }))
    }
}

impl Build for Overlay {
    fn pods(&self) -> Vec<usize> {
        self.pods.iter().map(|pod| pod.site).collect()
    }

    fn build(&self, ground: &Ground<'_>) -> Built {
        let pods = Pods {
            pods: &self.pods,
            ground: *ground,
        };
        let mtu = pods.underlay_mtu() - OVERHEAD;
        let mut built = Built {
            operations: pods.by_bridge(mtu),
            ..Built::default()
        };
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

impl Overlay {
    fn end(&self, pods: Pods<'_>, host: usize, mtu: u32) -> TunnelEnd {
        let at = |host: usize| SocketAddr::new(IpAddr::V4(pods.address(host)), self.port);
        let device = pods.interface("tun");
        let peers = pods.beyond(host).map(|pod| Peer {
            behind: Prefix {
                address: pods.address(pod.site),
                bits: 32,
            },
            at: at(pod.host),
        });
        let (namespace, own) = (pods.namespace(host), pods.address(host));
        let up = format!("link set dev {device} mtu {mtu} up");
        let mut afterwards = vec![Operation::ip(namespace, up)];
        afterwards.extend(pods.beyond(host).map(|pod| {
            let line = format!(
                "route add {}/32 dev {device} src {own}",
                pods.address(pod.site)
            );
            Operation::ip(namespace, line)
        }));
        TunnelEnd {
            site: host,
            config: TunnelConfig {
                interface: device.clone(),
                listen: at(host),
                peers: peers.collect(),
            },
            afterwards,
        }
    }
}
