//! Docker's overlay between real engines: one engine per host, in one swarm, with an attachable network of
//! its native driver (VXLAN), and a container per pod. The container's interface is moved to the pod, so that
//! a pod is a site like any other.
//!
//! Each engine has its own process and mount namespaces: when its first process ends, for any reason, the
//! kernel ends its containers and removes its mounts. The container only holds the pod's interface; its image
//! is busybox, built here.

use std::net::Ipv4Addr;

use neph_model::Span;
use neph_text::Fields;

use super::pods::{self, Pod, PodNetwork, Pods};
use super::proxy::file_path;
use crate::plan::Operation;
use crate::topology::fixture::{FixtureBuilder, FixtureContext, FixtureKind, FixtureParts, Nodes};
use crate::topology::{Prefix, Ready, ReadyCheck, Service, network};

/// An engine is ready after a second or two, the whole swarm after about ten.
const READY_TIMEOUT: Span = Span::from_secs(90);
/// It is killed at once: there is no state to save.
const STOP_TIMEOUT: Span = Span::ZERO;

#[derive(Debug)]
pub(crate) struct Docker;

#[derive(Debug)]
struct Swarm {
    network: Prefix<Ipv4Addr>,
}

impl FixtureKind for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        let pods = pods::read(table, nodes);
        let network = table.required_with("network", network);
        let (pods, network) = (pods?, network?);
        if let Some(fault) = pods::check_addresses(network.value, &pods, nodes) {
            table.problems().add(network.span.clone(), fault);
            return None;
        }
        let network = network.value;
        pods::overlay(Some(pods), Swarm { network })
    }
}

impl PodNetwork for Swarm {
    fn build_network(&self, pods: Pods<'_>) -> FixtureParts {
        let context = &pods.context;
        let hosts = pods.hosts();
        let script = context.own_file("swarm.sh");
        let first_namespace = pods.namespace(hosts[0]);
        let services = hosts.iter().map(|host| {
            let check = if hosts.last() == Some(host) {
                vec!["sh".to_owned(), file_path(context.folder, &script)]
            } else {
                let socket = format!("unix://{}", engine_file(pods, *host, "sock"));
                ["docker", "-H", &socket, "info"]
                    .map(str::to_owned)
                    .to_vec()
            };
            engine_service(pods, *host, check)
        });
        FixtureParts {
            services: services.collect(),
            operations: vec![Operation::file(
                first_namespace,
                &script,
                self.script(pods, &hosts),
            )],
            programs: vec!["dockerd", "docker", "unshare", "nsenter"],
            // The only content of its container.
            static_programs: vec!["busybox"],
            groups: vec![control_group(context)],
            ..FixtureParts::default()
        }
    }
}

/// The name of the engines' control groups, below every mount.
fn control_group(context: &FixtureContext<'_>) -> String {
    // No site's group has this name: site names have no underscore.
    let lab = context.folder.file_name().unwrap_or_default();
    format!("neph-{}-{}_engines", lab.to_string_lossy(), context.name)
}

/// A file of the engine at `host`.
fn engine_file(pods: Pods<'_>, host: usize, suffix: &str) -> String {
    let name = format!("{}.{suffix}", pods.context.name_at(host));
    file_path(pods.context.folder, &name)
}

/// An engine whose processes all end with the first one, whose number it writes to a file.
fn engine_service(pods: Pods<'_>, host: usize, check: Vec<String>) -> Service {
    let file = |suffix| engine_file(pods, host, suffix);
    // Docker's other folders are on file systems of their own, which vanish with it. So it does not see the
    // host's Docker.
    let hide_script = "for folder in /run/containerd /run/docker /var/lib/docker /etc/docker; do \
                mkdir -p $folder && mount -t tmpfs tmpfs $folder || exit 1; done";
    let run = format!(
        "echo $$ > {}; exec unshare --pid --fork --kill-child --mount --mount-proc sh -c '{hide_script}; \
         exec dockerd --data-root {} --exec-root {} -p {} -H unix://{} --cgroup-parent /{} \
         --bridge none --iptables=false --exec-opt native.cgroupdriver=cgroupfs'",
        file("first"),
        file("data"),
        file("exec"),
        file("pid"),
        file("sock"),
        control_group(&pods.context),
    );
    Service {
        name: pods.context.name_at(host),
        site: host,
        command: vec!["sh".to_owned(), "-c".to_owned(), run],
        environment: std::collections::BTreeMap::new(),
        ready: Some(Ready {
            check: ReadyCheck::Command(check),
            timeout: READY_TIMEOUT,
        }),
        log: None,
        grace: STOP_TIMEOUT,
    }
}

impl Swarm {
    /// Joins the engines, creates the network, and moves each container's interface to its pod. Runs
    /// repeatedly until it succeeds; finished pods stay.
    fn script(&self, pods: Pods<'_>, hosts: &[usize]) -> String {
        let docker = |host: usize| format!("docker -H unix://{}", engine_file(pods, host, "sock"));
        let (first, own_address) = (docker(hosts[0]), pods.address(hosts[0]));
        let log = file_path(pods.context.folder, &pods.context.own_file("swarm.log"));
        let mut script = format!(
            "exec 2>>{log}\nset -ex\n\
             swarm() {{ $1 info --format '{{{{.Swarm.LocalNodeState}}}}' | grep -qx active; }}\n\
             {first} info >&2\nswarm '{first}' || {first} swarm init --advertise-addr {own_address} >&2\n\
             token=$({first} swarm join-token -q worker)\n"
        );
        for host in &hosts[1..] {
            let (docker, address) = (docker(*host), pods.address(*host));
            script.push_str(&format!(
                "swarm '{docker}' || {docker} swarm join --token $token \
                 --advertise-addr {address} {own_address}:2377 >&2\n"
            ));
        }
        let Prefix { address, bits } = self.network;
        script.push_str(&format!(
            "{first} network inspect pods >&2 || {first} network create -d overlay --attachable \
             --subnet {address}/{bits} pods >&2\n"
        ));
        script.push_str(&format!(
            "still={}\nmkdir -p $still\ncp -L \"$(command -v busybox)\" $still/busybox\n",
            file_path(pods.context.folder, &pods.context.own_file("still")),
        ));
        for host in hosts {
            let docker = docker(*host);
            script.push_str(&format!(
                "{docker} image inspect still >&2 || tar -C $still -c busybox | \
                 {docker} import - still >&2\n"
            ));
        }
        for pod in pods.pods {
            script.push_str(&start_container_script(pods, *pod, &docker(pod.host)));
        }
        for pod in pods.pods {
            script.push_str(&neighbour_script(pods, *pod));
        }
        script
    }
}

/// Starts a pod's container and takes its interface. An incomplete container of an earlier try does not run,
/// and is removed.
fn start_container_script(pods: Pods<'_>, pod: Pod, docker: &str) -> String {
    let (name, address) = (&pods.site(pod.site).name, pods.address(pod.site));
    let namespace = pods.namespace(pod.site);
    format!(
        "if ! ip -n {namespace} link show dev eth0 >&2; then\n  \
         runs=$({docker} inspect -f '{{{{.State.Running}}}}' {name} || true)\n  \
         if [ \"$runs\" != true ]; then\n    {docker} rm -f {name} >&2 || true\n    \
         {docker} run -d --name {name} --network pods --ip {address} still \
         /busybox sleep 1000000000 >&2\n  fi\n  \
         engine=$(cat /proc/$(cat {first})/task/*/children | tr -d ' ')\n  \
         key=$({docker} inspect -f '{{{{.NetworkSettings.SandboxKey}}}}' {name})\n  \
         nsenter --net=/proc/$engine/root$key ip link set dev eth0 netns {namespace}\nfi\n\
         ip -n {namespace} link set dev eth0 up\n",
        first = engine_file(pods, pod.host, "first"),
    )
}

/// Neighbour entries of a pod for the others: Docker derives MAC addresses from IP addresses.
fn neighbour_script(pods: Pods<'_>, pod: Pod) -> String {
    let (namespace, own_address) = (pods.namespace(pod.site), pods.address(pod.site));
    let congestion_option = pods.congestion_option(pod);
    let others = pods.pods.iter().filter(|other| other.site != pod.site);
    let lines = others.map(|other| {
        let address = pods.address(other.site);
        let [a, b, c, d] = address.octets();
        format!(
            "ip -n {namespace} neighbour replace {address} \
             lladdr 02:42:{a:02x}:{b:02x}:{c:02x}:{d:02x} dev eth0 nud permanent\n\
             ip -n {namespace} route replace {address}/32 dev eth0 src {own_address}{congestion_option}\n"
        )
    });
    lines.collect()
}
