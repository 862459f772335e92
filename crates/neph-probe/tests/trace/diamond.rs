//! A network of namespaces whose paths part and meet: here - r0 - { a1 ... an } - r9 - there, where
//! r0 is a Linux router that balances by flow (ECMP).

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use neph_probe::Place;
use neph_sys::netns::{self, NetNs};

use crate::support::eventually;

/// Removed when dropped, also by a panic.
pub(super) struct Diamond {
    prefix: String,
    pub(super) branches: u8,
}

/// The two address families, as the commands of `ip` name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    /// Host `host` of network `net`.
    pub(super) fn address(self, net: u8, host: u8) -> IpAddr {
        let text = match self {
            Self::V4 => format!("10.98.{net}.{host}"),
            Self::V6 => format!("fd98:{net}::{host}"),
        };
        text.parse().expect("an address")
    }

    const fn option(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }

    const fn length(self) -> u8 {
        match self {
            Self::V4 => 24,
            Self::V6 => 64,
        }
    }
}

pub(super) const BOTH: [Family; 2] = [Family::V4, Family::V6];

impl Diamond {
    pub(super) fn up(name: &str, branches: u8) -> Self {
        let diamond = Self {
            prefix: format!("neph-{name}-{}", std::process::id()),
            branches,
        };
        for place in diamond.places() {
            ip(&["netns", "add", &diamond.name(&place)]);
            ip(&["-n", &diamond.name(&place), "link", "set", "lo", "up"]);
            // Nobody else has our addresses; looking for duplicates takes seconds.
            diamond.set(&place, "net/ipv6/conf/default/accept_dad", "0");
        }
        diamond.join("here", "r0", 1);
        for branch in 1..=branches {
            diamond.join("r0", &format!("a{branch}"), 10 + branch);
            diamond.join(&format!("a{branch}"), "r9", 20 + branch);
        }
        diamond.join("r9", "there", 30);
        for place in diamond.places() {
            diamond.set(&place, "net/ipv4/ip_forward", "1");
            diamond.set(&place, "net/ipv6/conf/all/forwarding", "1");
            // As many errors as are asked for: Linux tells a peer of one a second.
            diamond.set(&place, "net/ipv4/icmp_ratelimit", "0");
            diamond.set(&place, "net/ipv6/icmp/ratelimit", "0");
        }
        for version in ["ipv4", "ipv6"] {
            diamond.set(
                "r0",
                &format!("net/{version}/fib_multipath_hash_policy"),
                "3",
            );
            diamond.set(
                "r0",
                &format!("net/{version}/fib_multipath_hash_fields"),
                "55",
            );
        }
        for family in BOTH {
            diamond.route(family);
        }
        diamond.wait();
        diamond
    }

    fn places(&self) -> Vec<String> {
        let branches = (1..=self.branches).map(|branch| format!("a{branch}"));
        let ends = ["here", "r0", "r9", "there"].map(str::to_owned);
        ends.into_iter().chain(branches).collect()
    }

    pub(super) fn name(&self, place: &str) -> String {
        format!("{}-{place}", self.prefix)
    }

    pub(super) fn place(&self, place: &str) -> Place {
        Place::named(self.name(place))
    }

    /// A link with the addresses .1 at `left` and .2 at `right` of network `net`.
    fn join(&self, left: &str, right: &str, net: u8) {
        let device = format!("n{net}");
        let (left, right) = (self.name(left), self.name(right));
        ip(&[
            "link", "add", &device, "netns", &left, "type", "veth", "peer", "name", &device,
            "netns", &right,
        ]);
        for (name, host) in [(&left, 1), (&right, 2)] {
            for family in BOTH {
                let address = format!("{}/{}", family.address(net, host), family.length());
                ip(&[
                    "-n", name, "address", "add", &address, "dev", &device, "nodad",
                ]);
            }
            ip(&["-n", name, "link", "set", &device, "up"]);
        }
    }

    fn route(&self, family: Family) {
        let via = |net, host| family.address(net, host).to_string();
        let add = |place: &str, gateways: &[String]| {
            let name = self.name(place);
            let mut words = vec!["-n", &name, family.option(), "route", "add", "default"];
            for gateway in gateways {
                words.extend(["nexthop", "via", gateway]);
            }
            ip(&words);
        };
        let forward: Vec<String> = (1..=self.branches).map(|at| via(10 + at, 2)).collect();
        add("here", &[via(1, 2)]);
        add("r0", &forward);
        for branch in 1..=self.branches {
            add(&format!("a{branch}"), &[via(20 + branch, 2)]);
            let back = format!("{}/{}", family.address(1, 0), family.length());
            let name = self.name(&format!("a{branch}"));
            let gateway = via(10 + branch, 1);
            ip(&[
                "-n",
                &name,
                family.option(),
                "route",
                "add",
                &back,
                "via",
                &gateway,
            ]);
        }
        add("r9", &[via(21, 1)]);
        add("there", &[via(30, 1)]);
    }

    pub(super) fn set(&self, place: &str, setting: &str, value: &str) {
        let ns = NetNs::open(&self.name(place)).expect("just made");
        let write = || fs::write(Path::new("/proc/sys").join(setting), value);
        let done = netns::with_namespace(&ns, write).expect("enter");
        done.unwrap_or_else(|error| panic!("{setting} in {place}: {error}"));
    }

    /// The kernel passes a link's carrier on at most once a second; until then it drops packets.
    fn wait(&self) {
        for place in self.places() {
            eventually("links are up", || {
                let links = ip(&["-n", &self.name(&place), "link", "show", "type", "veth"]);
                !links.contains("state DOWN") && !links.contains("LOWERLAYERDOWN")
            });
        }
    }

    /// Has every branch write down the source ports of the UDP datagrams and TCP segments to this
    /// port that come in, whatever their TTL.
    pub(super) fn watch(&self, port: u16) {
        let rules = format!(
            "table inet watch {{\n\
             set ports {{ type inet_service; flags dynamic; size 65535; }}\n\
             chain watching {{ type filter hook prerouting priority 0;\n\
             udp dport {port} add @ports {{ udp sport }}\n\
             tcp dport {port} add @ports {{ tcp sport }}\n}}\n}}\n"
        );
        let file = std::env::temp_dir().join(format!("{}.nft", self.prefix));
        fs::write(&file, rules).expect("a file");
        for branch in 1..=self.branches {
            self.run(
                &format!("a{branch}"),
                &["nft", "-f", &file.to_string_lossy()],
            );
        }
        fs::remove_file(&file).expect("our own");
    }

    /// The ports that a branch wrote down.
    pub(super) fn seen(&self, branch: u8) -> BTreeSet<u16> {
        let words = ["nft", "-j", "list", "set", "inet", "watch", "ports"];
        let told = self.run(&format!("a{branch}"), &words);
        let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        let objects = told["nftables"].as_array().expect("a list");
        let set = objects.iter().find_map(|object| object.get("set"));
        let ports = set.and_then(|set| set["elem"].as_array().cloned());
        let ports = ports.unwrap_or_default();
        let number = |port: &serde_json::Value| port.as_u64().and_then(|port| port.try_into().ok());
        ports.iter().filter_map(number).collect()
    }

    /// Runs a program at a place; what it printed.
    pub(super) fn run(&self, place: &str, words: &[&str]) -> String {
        let name = self.name(place);
        let mut all = vec!["netns", "exec", &name];
        all.extend(words);
        ip(&all)
    }
}

impl Drop for Diamond {
    fn drop(&mut self) {
        for place in self.places() {
            let name = self.name(&place);
            // One that was not made yet cannot be removed, and need not be.
            let _ = Command::new("ip").args(["netns", "del", &name]).status();
        }
    }
}

fn ip(arguments: &[&str]) -> String {
    let done = Command::new("ip").args(arguments).output();
    let done = done.expect("ip runs");
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments:?}: {told}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}
