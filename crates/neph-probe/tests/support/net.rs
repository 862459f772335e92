//! Namespaces that are joined by veth pairs.
//!
//! Owns making them, waiting until packets pass, and removing them, also after a panic. Does not
//! own who is where: addresses, routes and settings are those of whoever makes a net.

use std::fs;
use std::path::Path;

use neph_probe::Placement;
use neph_sys::netns::{self, NetNs};
use neph_sys::process;

use super::eventually;

/// Places called `neph-NAME-PID-PLACE`, each with its loopback up; gone when dropped.
pub(crate) struct Net {
    prefix: String,
    places: Vec<String>,
}

/// One end of a link.
pub(crate) struct End<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) device: &'a str,
    /// With their lengths, as `10.98.0.1/24`.
    pub(crate) addresses: &'a [String],
}

impl Net {
    pub(crate) fn new<P: AsRef<str>>(name: &str, places: &[P]) -> Self {
        let mut net = Self {
            prefix: format!("neph-{name}-{}", std::process::id()),
            places: Vec::new(),
        };
        for namespace in places {
            let namespace = namespace.as_ref();
            net.places.push(namespace.to_owned());
            ip(&["netns", "add", &net.name(namespace)]);
            net.ip(namespace, "link set lo up");
            // Nobody else has our addresses; looking for duplicates takes seconds.
            net.set(namespace, "net/ipv6/conf/default/accept_dad", "0");
        }
        net
    }

    pub(crate) fn name(&self, namespace: &str) -> String {
        format!("{}-{namespace}", self.prefix)
    }

    pub(crate) fn placement(&self, namespace: &str) -> Placement {
        Placement::with_name(self.name(namespace))
    }

    pub(crate) fn join(&self, left: &End<'_>, right: &End<'_>) {
        let (peer_namespace, peer) = (self.name(right.namespace), right.device);
        let args = format!(
            "link add {} type veth peer name {peer} netns {peer_namespace}",
            left.device
        );
        self.ip(left.namespace, &args);
        for End {
            namespace,
            device,
            addresses,
        } in [left, right]
        {
            for address in *addresses {
                self.ip(
                    namespace,
                    &format!("address add {address} dev {device} nodad"),
                );
            }
            self.ip(namespace, &format!("link set {device} up"));
        }
    }

    /// The kernel passes a link's carrier on at most once a second; until then it drops packets.
    pub(crate) fn wait(&self) {
        for namespace in &self.places {
            eventually("links are up", || {
                let links = self.ip(namespace, "link show type veth");
                !links.contains("state DOWN") && !links.contains("LOWERLAYERDOWN")
            });
        }
    }

    /// Runs `ip` for a place, with these words; what it printed.
    pub(crate) fn ip(&self, namespace: &str, args: &str) -> String {
        let name = self.name(namespace);
        let mut all_args = vec!["-n", &name];
        all_args.extend(args.split_whitespace());
        ip(&all_args)
    }

    /// Runs a program at a place; what it printed.
    pub(crate) fn run(&self, namespace: &str, args: &[&str]) -> String {
        let name = self.name(namespace);
        let mut all_args = vec!["netns", "exec", &name];
        all_args.extend(args);
        ip(&all_args)
    }

    pub(crate) fn within<T: Send>(&self, namespace: &str, work: impl FnOnce() -> T + Send) -> T {
        let ns = NetNs::open(&self.name(namespace)).expect("it was made");
        netns::with_namespace(&ns, work).expect("enter")
    }

    pub(crate) fn set(&self, namespace: &str, setting: &str, value: &str) {
        let write = || fs::write(Path::new("/proc/sys").join(setting), value);
        let done = self.within(namespace, write);
        done.unwrap_or_else(|error| panic!("{setting} in {namespace}: {error}"));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for namespace in &self.places {
            let name = self.name(namespace);
            // One that was not made cannot be removed, and need not be.
            let _ = process::command("ip")
                .args(["netns", "del", &name])
                .status();
        }
    }
}

fn ip(arguments: &[&str]) -> String {
    let done = process::command("ip").args(arguments).output();
    let done = done.expect("ip runs");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments:?}: {stderr}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}
