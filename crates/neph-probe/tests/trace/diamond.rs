//! A network of namespaces whose paths part and meet: here - r0 - { a1 ... an } - r9 - there, where
//! r0 is a Linux router that balances by flow (ECMP).

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;

use neph_probe::Placement;

use crate::support::{End, Net};

/// Removed when dropped, also by a panic.
pub(super) struct Diamond {
    net: Net,
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
        let middle = (1..=branches).map(|branch| format!("a{branch}"));
        let ends = ["here", "r0", "r9", "there"].map(str::to_owned);
        let places: Vec<String> = ends.into_iter().chain(middle).collect();
        let net = Net::new(name, &places);
        let diamond = Self { net, branches };
        diamond.join("here", "r0", 1);
        for branch in 1..=branches {
            diamond.join("r0", &format!("a{branch}"), 10 + branch);
            diamond.join(&format!("a{branch}"), "r9", 20 + branch);
        }
        diamond.join("r9", "there", 30);
        for namespace in &places {
            diamond.set(namespace, "net/ipv4/ip_forward", "1");
            diamond.set(namespace, "net/ipv6/conf/all/forwarding", "1");
            // As many errors as are asked for: Linux tells a peer of one a second.
            diamond.set(namespace, "net/ipv4/icmp_ratelimit", "0");
            diamond.set(namespace, "net/ipv6/icmp/ratelimit", "0");
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
        diamond.net.wait();
        diamond
    }

    pub(super) fn name(&self, namespace: &str) -> String {
        self.net.name(namespace)
    }

    pub(super) fn placement(&self, namespace: &str) -> Placement {
        self.net.placement(namespace)
    }

    pub(super) fn set(&self, namespace: &str, setting: &str, value: &str) {
        self.net.set(namespace, setting, value);
    }

    /// Runs a program at a place; what it printed.
    pub(super) fn run(&self, namespace: &str, args: &[&str]) -> String {
        self.net.run(namespace, args)
    }

    /// A link with the addresses .1 at `left` and .2 at `right` of network `net`.
    fn join(&self, left: &str, right: &str, net: u8) {
        let device = format!("n{net}");
        let of =
            |host| BOTH.map(|family| format!("{}/{}", family.address(net, host), family.length()));
        let end = |namespace, addresses| End {
            namespace,
            device: &device,
            addresses,
        };
        self.net.join(&end(left, &of(1)), &end(right, &of(2)));
    }

    fn route(&self, family: Family) {
        let via = |net, host| family.address(net, host).to_string();
        let add = |namespace: &str, to: &str, gateways: &[String]| {
            let hops: Vec<String> = gateways
                .iter()
                .map(|gateway| format!("nexthop via {gateway}"))
                .collect();
            let args = format!("{} route add {to} {}", family.option(), hops.join(" "));
            self.net.ip(namespace, &args);
        };
        let forward: Vec<String> = (1..=self.branches).map(|at| via(10 + at, 2)).collect();
        add("here", "default", &[via(1, 2)]);
        add("r0", "default", &forward);
        let back = format!("{}/{}", family.address(1, 0), family.length());
        for branch in 1..=self.branches {
            let namespace = format!("a{branch}");
            add(&namespace, "default", &[via(20 + branch, 2)]);
            add(&namespace, &back, &[via(10 + branch, 1)]);
        }
        add("r9", "default", &[via(21, 1)]);
        add("there", "default", &[via(30, 1)]);
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
        let file = std::env::temp_dir().join(format!("{}.nft", self.name("here")));
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
    pub(super) fn ports_seen(&self, branch: u8) -> BTreeSet<u16> {
        let command = ["nft", "-j", "list", "set", "inet", "watch", "ports"];
        let stdout = self.run(&format!("a{branch}"), &command);
        let document: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
        let objects = document["nftables"].as_array().expect("a list");
        let set = objects.iter().find_map(|object| object.get("set"));
        let ports = set.and_then(|set| set["elem"].as_array().cloned());
        let ports = ports.unwrap_or_default();
        let number = |port: &serde_json::Value| port.as_u64().and_then(|port| port.try_into().ok());
        ports.iter().filter_map(number).collect()
    }
}
