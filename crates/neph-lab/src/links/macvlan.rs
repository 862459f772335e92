//! Macvlan: each pod has an address of its own on its host's link. There is no forwarding and no
//! encapsulation, but a pod and its host cannot communicate.

use neph_text::{Fault, Fields};

use super::pods::{self, Pod, PodNetwork, Pods, pod_mac};
use crate::plan::Operation;
use crate::topology::fixture::{Build, Built, FixtureKind, Nodes};
use crate::topology::{Link, Topology};

#[derive(Debug)]
pub(crate) struct Macvlan;

#[derive(Debug)]
struct MacvlanLink {
    on: String,
}

impl FixtureKind for Macvlan {
    fn name(&self) -> &'static str {
        "macvlan"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn Build>> {
        let pods = pods::read(table, nodes);
        let on = table.required::<String>("on");
        let (pods, on) = (pods?, on?);
        if nodes.is_complete {
            for pod in &pods {
                if nodes
                    .links
                    .iter()
                    .any(|link| is_on(nodes.sites, link, pod.host, &on.value))
                {
                    continue;
                }
                let host = &nodes.sites[pod.host].name;
                let message = format!(
                    "'{host}' has no link '{}' and none to such a switch",
                    on.value
                );
                let remedy = "name the link or the switch that the hosts share";
                table
                    .problems()
                    .add(on.span.clone(), Fault::new(message, remedy));
                return None;
            }
        }
        pods::overlay(Some(pods), MacvlanLink { on: on.value })
    }
}

/// Whether `link` is at the site `host`, and is called `on` or leads to a switch of that name.
fn is_on(sites: &[crate::topology::Site], link: &Link, host: usize, on: &str) -> bool {
    let Some((other_end, _)) = Topology::far_end(link, host) else {
        return false;
    };
    link.name == on || (sites[other_end].is_switch() && sites[other_end].name == on)
}

impl PodNetwork for MacvlanLink {
    fn build_network(&self, pods: Pods<'_>) -> Built {
        let mut operations = Vec::new();
        for pod in pods.pods {
            operations.extend(self.attach(pods, *pod));
        }
        for pod in pods.pods {
            operations.extend(meet(pods, *pod));
        }
        Built::of(operations)
    }
}

impl MacvlanLink {
    fn attach(&self, pods: Pods<'_>, pod: Pod) -> Option<Operation> {
        let topology = pods.context.topology;
        let mut links = topology.links.iter();
        let link = links.find(|link| is_on(&topology.sites, link, pod.host, &self.on))?;
        let attach = format!(
            "link add link {} name eth0 address {} netns {} type macvlan mode bridge",
            link.name,
            pod_mac(pod.site),
            pods.namespace(pod.site)
        );
        Some(Operation::ip(pods.namespace(pod.host), attach))
    }
}

/// Neighbour entries of a pod for the others.
fn meet(pods: Pods<'_>, pod: Pod) -> Vec<Operation> {
    let (namespace, own_address) = (pods.namespace(pod.site), pods.address(pod.site));
    let congestion = pods.congestion(pod);
    let mut operations = vec![Operation::ip(namespace, "link set dev eth0 up")];
    for other in pods.pods.iter().filter(|other| other.site != pod.site) {
        let (address, mac) = (pods.address(other.site), pod_mac(other.site));
        let lines = [
            format!("neighbour add {address} lladdr {mac} dev eth0 nud permanent"),
            format!("route add {address}/32 dev eth0 src {own_address}{congestion}"),
        ];
        operations.extend(lines.map(|line| Operation::ip(namespace, line)));
    }
    operations
}
