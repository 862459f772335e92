//! Routing without encapsulation, as in Calico: pods are behind a bridge at each host. BIRD announces each
//! pod's location to every host and router by BGP. There is one autonomous system per node, and one session
//! per link (RFC 7938), so that routers in between know the pods too. BGP selects the path with the fewest
//! hops.

use std::fmt::Write;
use std::net::Ipv4Addr;

use neph_model::Span;
use neph_text::Fields;

use super::pods::{self, PodNetwork, Pods};
use crate::plan::Operation;
use crate::segment;
use crate::topology::fixture::{FixtureBuilder, FixtureContext, FixtureKind, FixtureParts, Nodes};
use crate::topology::{Ready, ReadyCheck, Role, Service};

/// The first of the numbers for private use (RFC 6996).
const FIRST_AS_NUMBER: usize = 64_512;
/// Sessions come up within some seconds.
const READY_TIMEOUT: Span = Span::from_secs(30);
const STOP_TIMEOUT: Span = Span::from_secs(2);

#[derive(Debug)]
pub(crate) struct Routed;

impl FixtureKind for Routed {
    fn name(&self) -> &'static str {
        "routed"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        pods::overlay(pods::read(table, nodes), Self)
    }
}

impl PodNetwork for Routed {
    fn build_network(&self, pods: Pods<'_>) -> FixtureParts {
        let context = &pods.context;
        let mut operations = pods.connect_by_bridge(pods.underlay_mtu());
        let speakers: Vec<usize> = bgp_speakers(context).collect();
        for speaker in &speakers {
            let namespace = pods.namespace(*speaker);
            operations.push(Operation::sysctl(namespace, "net.ipv4.ip_forward", "1"));
            let name = format!("{}.conf", context.name_at(*speaker));
            operations.push(Operation::file(
                namespace,
                &name,
                configuration(pods, *speaker),
            ));
        }
        let check = context.own_file("ready.sh");
        let script = ready_script(pods, &speakers);
        operations.push(Operation::file(pods.namespace(speakers[0]), &check, script));
        let services = speakers.iter().map(|speaker| {
            let is_last = speakers.last() == Some(speaker);
            let check = is_last.then(|| context.folder.join(&check).display().to_string());
            bird_service(context, *speaker, check)
        });
        let services = services.collect();
        FixtureParts {
            operations,
            services,
            ..FixtureParts::default()
        }
    }
}

/// All nodes that forward: all but switches and pods.
fn bgp_speakers(context: &FixtureContext<'_>) -> impl Iterator<Item = usize> {
    let sites = context.topology.sites.iter().enumerate();
    sites.filter_map(|(index, site)| {
        let is_speaker = site.role != Role::Switch && site.inside.is_none();
        is_speaker.then_some(index)
    })
}

fn control_socket(context: &FixtureContext<'_>, speaker: usize) -> String {
    let file = format!("{}.ctl", context.name_at(speaker));
    context.folder.join(file).display().to_string()
}

fn configuration(pods: Pods<'_>, speaker: usize) -> String {
    let own_address = pods.address(speaker);
    let mut text = format!(
        "log stderr all;\nrouter id {own_address};\nprotocol device {{ scan time 10; }}\n\
         protocol kernel {{\n  learn;\n  \
         ipv4 {{ import all; export where source = RTS_BGP; }};\n}}\n\
         protocol static {{\n  ipv4;\n"
    );
    let mut append = |args: std::fmt::Arguments<'_>| {
        // Writing to a String never fails.
        let _ = text.write_fmt(args);
    };
    for pod in pods.inside_host(speaker) {
        let (address, bridge) = (pods.address(pod.site), pods.interface_name("br"));
        append(format_args!("  route {address}/32 via \"{bridge}\";\n"));
    }
    append(format_args!("}}\n"));
    for (number, address) in neighbours(pods, speaker) {
        // The addresses are those of the nodes, not the links': no hop is counted between them.
        append(format_args!(
            "protocol bgp {{\n  local {own_address} as {};\n  neighbor {address} as {};\n  multihop;\n  \
             connect delay time 1;\n  connect retry time 1;\n  error wait time 1, 2;\n  \
             ipv4 {{\n    import all;\n    \
             export where source = RTS_BGP || source = RTS_STATIC;\n    next hop self;\n  }};\n}}\n",
            FIRST_AS_NUMBER + speaker,
            FIRST_AS_NUMBER + number,
        ));
    }
    text
}

/// The speakers at the other end of each link, each once.
fn neighbours(pods: Pods<'_>, speaker: usize) -> Vec<(usize, Ipv4Addr)> {
    let topology = pods.context.topology;
    let links = segment::links_of(topology, speaker);
    let neighbours = links.flat_map(|link| segment::neighbours_over(topology, speaker, link));
    let mut sites: Vec<usize> = neighbours.map(|neighbour| neighbour.site).collect();
    sites.retain(|site| *site != speaker);
    sites.sort_unstable();
    sites.dedup();
    sites
        .into_iter()
        .map(|site| (site, pods.address(site)))
        .collect()
}

/// Exits with status 0 when every speaker knows every pod.
fn ready_script(pods: Pods<'_>, speakers: &[usize]) -> String {
    let addresses = pods.pods.iter().map(|pod| pods.address(pod.site));
    let prefixes: Vec<String> = addresses.map(|address| format!("{address}/32")).collect();
    let controls = speakers
        .iter()
        .map(|speaker| control_socket(&pods.context, *speaker));
    let controls: Vec<String> = controls.collect();
    format!(
        "for control in {}; do\n  routes=$(birdc -s $control show route) || exit 1\n  \
         for pod in {}; do\n    case $routes in *$pod*) ;; *) exit 1 ;; esac\n  done\ndone\n",
        controls.join(" "),
        prefixes.join(" "),
    )
}

/// BIRD at one node; ready at once, or when the script at `check` succeeds.
fn bird_service(context: &FixtureContext<'_>, speaker: usize, check: Option<String>) -> Service {
    let file = |ending: &str| {
        let name = format!("{}.{ending}", context.name_at(speaker));
        context.folder.join(name).display().to_string()
    };
    let command = [
        "bird",
        "-f",
        "-c",
        &file("conf"),
        "-s",
        &file("ctl"),
        "-P",
        &file("pid"),
    ];
    Service {
        name: context.name_at(speaker),
        site: speaker,
        command: command.map(str::to_owned).to_vec(),
        environment: std::collections::BTreeMap::new(),
        ready: check.map(|script| Ready {
            check: ReadyCheck::Command(vec!["sh".to_owned(), script]),
            timeout: READY_TIMEOUT,
        }),
        log: None,
        grace: STOP_TIMEOUT,
    }
}
