//! Two namespaces and a veth pair, and what the kernel tells of TCP in them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use neph_probe::Placement;
use socket2::{Domain, Protocol, Socket, Type};

use crate::support::{End, Net, is_root, skip};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Ours,
    Theirs,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Ours => "a",
            Self::Theirs => "b",
        }
    }
}

/// 10.98.0.1 and `fd00:98::1` on our side, .2 on theirs.
pub(crate) struct Pair(Net);

impl Pair {
    /// `None` without root, after a word.
    pub(crate) fn new(name: &str) -> Option<Self> {
        if !is_root() {
            skip(name, "network namespaces need root");
            return None;
        }
        let sides = [Side::Ours, Side::Theirs].map(Side::name);
        let net = Net::new(&format!("syn-{name}"), &sides);
        let of = |host| [format!("10.98.0.{host}/24"), format!("fd00:98::{host}/64")];
        let end = |namespace, addresses| End {
            namespace,
            device: "v",
            addresses,
        };
        net.join(&end(sides[0], &of(1)), &end(sides[1], &of(2)));
        net.wait();
        Some(Self(net))
    }

    pub(crate) fn placement(&self, side: Side) -> Placement {
        self.0.placement(side.name())
    }

    pub(crate) fn within<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> T {
        self.0.within(side.name(), work)
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
            self.0.ip("a", "address del 10.98.0.1/24 dev v");
            let none = Some(std::time::Duration::ZERO);
            socket.set_linger(none).expect("an option");
            drop(socket);
            self.0.ip("a", "address add 10.98.0.1/24 dev v");
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
                let fields: Vec<&str> = line.split_whitespace().collect();
                fields.get(1).is_some_and(|local| local.ends_with(&ours))
                    && fields.get(3) == Some(&state)
            };
            lines.lines().filter(is).count()
        };
        (of("03"), of("01"))
    }

    /// Handshakes that were begun and not completed, as the kernel counts them.
    pub(crate) fn attempts_failed(&self, side: Side) -> u64 {
        let snmp = self.within(side, || fs::read_to_string("/proc/thread-self/net/snmp"));
        let snmp = snmp.expect("the kernel tells");
        let mut tcp = snmp.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, values) = (tcp.next().expect("names"), tcp.next().expect("values"));
        let mut pairs = names.split_whitespace().zip(values.split_whitespace());
        let (_, value) = pairs
            .find(|(name, _)| *name == "AttemptFails")
            .expect("told");
        value.parse().expect("a number")
    }

    pub(crate) fn nft(&self, side: Side, rules: &str) -> String {
        self.0.run(side.name(), &["nft", rules])
    }
}
