//! The plain bridge, the default of a container engine: pods behind a bridge, NAT towards other hosts, and
//! published ports of the host.

use std::net::SocketAddrV4;

use neph_text::{Fault, Fields, Port};

use super::pods::{self, Pod, PodNetwork, Pods};
use crate::topology::fixture::{FixtureBuilder, FixtureKind, FixtureParts, Nodes};

#[derive(Debug)]
pub(crate) struct Bridge;

#[derive(Debug)]
struct BridgeNetwork {
    published_ports: Vec<PublishedPort>,
}

/// A port of a pod's host that leads to the pod.
#[derive(Clone, Copy, Debug)]
struct PublishedPort {
    host: usize,
    port: u16,
    target: SocketAddrV4,
}

impl FixtureKind for Bridge {
    fn name(&self) -> &'static str {
        "bridge"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        let pods = pods::read(table, nodes);
        let entries = table.tables("publish");
        let pods = pods?;
        let published_ports = entries
            .into_iter()
            .map(|entry| read_published_port(entry, nodes, &pods));
        let published_ports = published_ports.collect::<Option<_>>()?;
        pods::overlay(Some(pods), BridgeNetwork { published_ports })
    }
}

fn read_published_port(
    mut table: Fields<'_>,
    nodes: Nodes<'_>,
    pods: &[Pod],
) -> Option<PublishedPort> {
    let port = table.required::<Port>("port");
    let target = table.required_with("to", |node| nodes.endpoint(node));
    let problems = table.problems();
    table.finish();
    let (port, target) = (port?, target?);
    let is_target = |pod: &&Pod| nodes.sites[pod.site].v4.address == *target.value.ip();
    let Some(pod) = pods.iter().find(is_target) else {
        let message = "this is no pod of the overlay";
        problems.add(
            target.span,
            Fault::new(message, "name one that 'pods' lists"),
        );
        return None;
    };
    Some(PublishedPort {
        host: pod.host,
        port: port.value.0,
        target: target.value,
    })
}

impl PodNetwork for BridgeNetwork {
    fn build_network(&self, pods: Pods<'_>) -> FixtureParts {
        let mut operations = pods.connect_by_bridge(pods.underlay_mtu());
        for host in pods.hosts() {
            operations.push(pods.masquerade_operation(host, &self.dnat_chains(pods, host)));
        }
        FixtureParts::from_operations(operations)
    }
}

impl BridgeNetwork {
    /// The chains that lead from the host's ports to its pods.
    fn dnat_chains(&self, pods: Pods<'_>, host: usize) -> String {
        let address = pods.address(host);
        let mut rules = String::new();
        for published in self
            .published_ports
            .iter()
            .filter(|published| published.host == host)
        {
            for protocol in ["tcp", "udp"] {
                rules.push_str(&format!(
                    "    ip daddr {address} {protocol} dport {} dnat to {}\n",
                    published.port, published.target
                ));
            }
        }
        if rules.is_empty() {
            return rules;
        }
        format!(
            "  chain come {{\n    type nat hook prerouting priority dstnat;\n{rules}  }}\n  \
             chain own {{\n    type nat hook output priority -100;\n{rules}  }}\n"
        )
    }
}
