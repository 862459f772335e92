//! Two namespaces and a veth pair, and what the kernel tells of TCP in them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use neph_probe::Place;
use neph_sys::netns::{self, NetNs};
use socket2::{Domain, Protocol, Socket, Type};

use crate::support::{eventually, is_root, skip};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Ours,
    Theirs,
}

/// 10.98.0.1 and `fd00:98::1` on our side, .2 on theirs; gone when dropped, also by a panic.
pub(crate) struct Pair {
    names: [String; 2],
}

impl Pair {
    /// `None` without root, after a word.
    pub(crate) fn new(name: &str) -> Option<Self> {
        if !is_root() {
            skip(name, "network namespaces need root");
            return None;
        }
        let pid = std::process::id();
        let pair = Self {
            names: ["a", "b"].map(|side| format!("neph-syn-{pid}-{name}-{side}")),
        };
        for name in &pair.names {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        let [ours, theirs] = &pair.names;
        ip(&[
            "link", "add", "v", "netns", ours, "type", "veth", "peer", "name", "v", "netns", theirs,
        ]);
        for (name, last) in [(ours, 1), (theirs, 2)] {
            ip(&[
                "-n",
                name,
                "address",
                "add",
                &format!("10.98.0.{last}/24"),
                "dev",
                "v",
            ]);
            let six = format!("fd00:98::{last}/64");
            ip(&["-n", name, "address", "add", &six, "dev", "v", "nodad"]);
            ip(&["-n", name, "link", "set", "v", "up"]);
        }
        for name in &pair.names {
            eventually("links are up", || {
                let links = ip(&["-n", name, "link", "show", "type", "veth"]);
                !links.contains("state DOWN") && !links.contains("LOWERLAYERDOWN")
            });
        }
        Some(pair)
    }

    fn name(&self, side: Side) -> &str {
        match side {
            Side::Ours => &self.names[0],
            Side::Theirs => &self.names[1],
        }
    }

    pub(crate) fn place(&self, side: Side) -> Place {
        Place::named(self.name(side))
    }

    pub(crate) fn within<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> T {
        let ns = NetNs::open(self.name(side)).expect("it was made");
        netns::with_namespace(&ns, work).expect("enter")
    }

    /// A listener of theirs, for both versions, that never accepts and whose queue is short.
    pub(crate) fn listen(&self, port: u16) -> Socket {
        self.listen_at(Side::Theirs, port)
    }

    pub(crate) fn listen_at(&self, side: Side, port: u16) -> Socket {
        self.within(side, || {
            let tcp = Some(Protocol::TCP);
            let socket = Socket::new(Domain::IPV6, Type::STREAM, tcp).expect("a socket");
            socket.set_reuse_address(true).expect("an option");
            let any: SocketAddr = "[::]:0".parse().expect("an address");
            let at = SocketAddr::new(any.ip(), port);
            socket.bind(&at.into()).expect("a free port");
            socket.listen(2).expect("listen");
            socket
        })
    }

    /// Connects to them from `source`, and takes the connection away on our side alone: they hold
    /// it, we do not know it.
    pub(crate) fn orphan(&self, port: u16, source: u16) {
        self.within(Side::Ours, || {
            let tcp = Some(Protocol::TCP);
            let socket = Socket::new(Domain::IPV4, Type::STREAM, tcp).expect("a socket");
            let at = |last, port| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 98, 0, last)), port);
            socket.bind(&at(1, source).into()).expect("a free port");
            socket
                .connect(&at(2, port).into())
                .expect("somebody listens");
            // Without an address nothing can be sent from it: the RST of closing is lost.
            ip(&[
                "-n",
                &self.names[0],
                "address",
                "del",
                "10.98.0.1/24",
                "dev",
                "v",
            ]);
            let none = Some(std::time::Duration::ZERO);
            socket.set_linger(none).expect("an option");
            drop(socket);
            ip(&[
                "-n",
                &self.names[0],
                "address",
                "add",
                "10.98.0.1/24",
                "dev",
                "v",
            ]);
        });
    }

    /// How many connections to this port of theirs are half open, and how many stand.
    pub(crate) fn connections(&self, port: u16) -> (usize, usize) {
        let lines = self.within(Side::Theirs, || {
            let read = |file| fs::read_to_string(file).expect("the kernel tells");
            read("/proc/thread-self/net/tcp") + &read("/proc/thread-self/net/tcp6")
        });
        let ours = format!(":{port:04X}");
        let of = |state: &str| {
            let is = |line: &&str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words.get(1).is_some_and(|local| local.ends_with(&ours))
                    && words.get(3) == Some(&state)
            };
            lines.lines().filter(is).count()
        };
        (of("03"), of("01"))
    }

    /// Handshakes that were begun and not completed, as the kernel counts them.
    pub(crate) fn attempts_failed(&self, side: Side) -> u64 {
        let told = self.within(side, || fs::read_to_string("/proc/thread-self/net/snmp"));
        let told = told.expect("the kernel tells");
        let mut tcp = told.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, values) = (tcp.next().expect("names"), tcp.next().expect("values"));
        let mut pairs = names.split_whitespace().zip(values.split_whitespace());
        let (_, value) = pairs
            .find(|(name, _)| *name == "AttemptFails")
            .expect("told");
        value.parse().expect("a number")
    }

    pub(crate) fn nft(&self, side: Side, rules: &str) -> String {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", self.name(side), "nft"])
            .arg(rules);
        let done = command.stdin(Stdio::null()).output().expect("nft runs");
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{told}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            // One that was not made yet cannot be removed, and need not be.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn ip(arguments: &[&str]) -> String {
    let done = Command::new("ip")
        .args(arguments)
        .output()
        .expect("ip runs");
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments:?}: {told}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}
