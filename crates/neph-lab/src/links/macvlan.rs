//! Macvlan: each pod has an address of its own on its host's link. There is no forwarding and no
//! encapsulation, but a pod and its host cannot communicate.

use neph_text::{Fault, Fields};

use super::pods::{self, Pod, PodNetwork, Pods, pod_mac};
use crate::plan::Operation;
use crate::topology::fixture::{FixtureBuilder, FixtureKind, FixtureParts, Nodes};
use crate::topology::{Link, Topology};

#[derive(Debug)]
pub(crate) struct Macvlan;

#[derive(Debug)]
struct MacvlanNetwork {
    parent: String,
}

impl FixtureKind for Macvlan {
    fn name(&self) -> &'static str {
        "macvlan"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        let pods = pods::read(table, nodes);
        let parent = table.required::<String>("on");
        let (pods, parent) = (pods?, parent?);
        if nodes.is_complete {
            for pod in &pods {
                if nodes
                    .links
                    .iter()
                    .any(|link| is_parent_link(nodes.sites, link, pod.host, &parent.value))
                {
                    continue;
                }
                let host = &nodes.sites[pod.host].name;
                let message = format!(
                    "'{host}' has no link '{}' and none to such a switch",
                    parent.value
                );
                let remedy = "name the link or the switch that the hosts share";
                table
                    .problems()
                    .add(parent.span.clone(), Fault::new(message, remedy));
                return None;
            }
        }
        pods::overlay(
            Some(pods),
            MacvlanNetwork {
                parent: parent.value,
            },
        )
    }
}

/// Whether `link` is at the site `host`, and is called `parent` or leads to a switch of that name.
fn is_parent_link(sites: &[crate::topology::Site], link: &Link, host: usize, parent: &str) -> bool {
    let Some((other_end, _)) = Topology::far_end(link, host) else {
        return false;
    };
    link.name == parent || (sites[other_end].is_switch() && sites[other_end].name == parent)
}

impl PodNetwork for MacvlanNetwork {
    fn build_network(&self, pods: Pods<'_>) -> FixtureParts {
        let mut operations = Vec::new();
        for pod in pods.pods {
            operations.extend(self.attach_operation(pods, *pod));
        }
        for pod in pods.pods {
            operations.extend(neighbour_operations(pods, *pod));
        }
        FixtureParts::from_operations(operations)
    }
}

impl MacvlanNetwork {
    fn attach_operation(&self, pods: Pods<'_>, pod: Pod) -> Option<Operation> {
        let topology = pods.context.topology;
        let mut links = topology.links.iter();
        let link =
            links.find(|link| is_parent_link(&topology.sites, link, pod.host, &self.parent))?;
        let add_interface = format!(
            "link add link {} name eth0 address {} netns {} type macvlan mode bridge",
            link.name,
            pod_mac(pod.site),
            pods.namespace(pod.site)
        );
        Some(Operation::ip(pods.namespace(pod.host), add_interface))
    }
}

/// Neighbour entries of a pod for the others.
fn neighbour_operations(pods: Pods<'_>, pod: Pod) -> Vec<Operation> {
    let (namespace, own_address) = (pods.namespace(pod.site), pods.address(pod.site));
    let congestion_option = pods.congestion_option(pod);
    let mut operations = vec![Operation::ip(namespace, "link set dev eth0 up")];
    for other in pods.pods.iter().filter(|other| other.site != pod.site) {
        let (address, mac) = (pods.address(other.site), pod_mac(other.site));
        let lines = [
            format!("neighbour add {address} lladdr {mac} dev eth0 nud permanent"),
            format!("route add {address}/32 dev eth0 src {own_address}{congestion_option}"),
        ];
        operations.extend(lines.map(|line| Operation::ip(namespace, line)));
    }
    operations
}
