//! The plain bridge, the default of a container engine: pods behind a bridge, NAT towards other hosts, and
//! published ports of the host.

use std::net::SocketAddrV4;

use neph_text::{Fault, Fields, Port};

use super::pods::{self, Pod, PodNetwork, Pods};
use crate::topology::fixture::{Build, Built, FixtureKind, Nodes};

#[derive(Debug)]
pub(crate) struct Bridge;

#[derive(Debug)]
struct Engine {
    published: Vec<Published>,
}

/// A port of a pod's host that leads to the pod.
#[derive(Clone, Copy, Debug)]
struct Published {
    host: usize,
    port: u16,
    to: SocketAddrV4,
}

impl FixtureKind for Bridge {
    fn name(&self) -> &'static str {
        "bridge"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn Build>> {
        let pods = pods::read(table, nodes);
        let entries = table.tables("publish");
        let pods = pods?;
        let published = entries
            .into_iter()
            .map(|entry| publish(entry, nodes, &pods));
        let published = published.collect::<Option<_>>()?;
        pods::overlay(Some(pods), Engine { published })
    }
}

fn publish(mut table: Fields<'_>, nodes: Nodes<'_>, pods: &[Pod]) -> Option<Published> {
    let port = table.required::<Port>("port");
    let to = table.required_with("to", |node| nodes.endpoint(node));
    let problems = table.problems();
    table.finish();
    let (port, to) = (port?, to?);
    let is_target = |pod: &&Pod| nodes.sites[pod.site].v4.address == *to.value.ip();
    let Some(pod) = pods.iter().find(is_target) else {
        let message = "this is no pod of the overlay";
        problems.add(to.span, Fault::new(message, "name one that 'pods' lists"));
        return None;
    };
    Some(Published {
        host: pod.host,
        port: port.value.0,
        to: to.value,
    })
}

impl PodNetwork for Engine {
    fn build_network(&self, pods: Pods<'_>) -> Built {
        let mut operations = pods.connect_by_bridge(pods.underlay_mtu());
        for host in pods.hosts() {
            operations.push(pods.masquerade(host, &self.ways_in(pods, host)));
        }
        Built::of(operations)
    }
}

impl Engine {
    /// The chains that lead from the host's ports to its pods.
    fn ways_in(&self, pods: Pods<'_>, host: usize) -> String {
        let address = pods.address(host);
        let mut rules = String::new();
        for published in self
            .published
            .iter()
            .filter(|published| published.host == host)
        {
            for protocol in ["tcp", "udp"] {
                rules.push_str(&format!(
                    "    ip daddr {address} {protocol} dport {} dnat to {}\n",
                    published.port, published.to
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
