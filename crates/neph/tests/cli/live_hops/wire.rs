//! Two namespaces with a veth pair between them, and UDP sockets at both ends.

use std::net::UdpSocket;
use std::time::Duration;

use neph_sys::netns::{NetNs, remove, with_namespace};

use crate::neph::run_ip;

/// Client and server on a [`Wire`].
pub(crate) struct Sockets {
    client: UdpSocket,
    server: UdpSocket,
}

impl Sockets {
    /// Datagrams from the client to the server, each answered.
    pub(crate) fn exchange(&self, count: u8) {
        let mut byte = [0];
        for number in 0..count {
            self.client
                .send_to(&[number], "10.91.0.2:4002")
                .expect("sent");
            let (_, from) = self.server.recv_from(&mut byte).expect("a request");
            self.server.send_to(&byte, from).expect("answered");
            self.client.recv_from(&mut byte).expect("an answer");
        }
    }
}

/// Two namespaces with addresses 10.91.0.1 and 10.91.0.2 on interfaces `near` and `far`.
pub(crate) struct Wire {
    pub(super) names: [String; 2],
    pub(super) namespaces: [NetNs; 2],
}

impl Wire {
    /// None where this user may make no namespace.
    #[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
    pub(crate) fn up(test: &str) -> Option<Self> {
        let names = ["a", "b"].map(|end| format!("hops-{}-{test}-{end}", std::process::id()));
        let Ok(first) = NetNs::create(&names[0]) else {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{test}");
            println!("SKIP {test}: namespaces need root");
            return None;
        };
        let second = NetNs::create(&names[1]).expect("another namespace");
        let wire = Self {
            namespaces: [first, second],
            names,
        };
        let [a, b] = &wire.names;
        for line in [
            format!("-n {a} link add near type veth peer name far netns {b}"),
            format!("-n {a} address add 10.91.0.1/24 dev near"),
            format!("-n {b} address add 10.91.0.2/24 dev far"),
            format!("-n {a} link set near up"),
            format!("-n {b} link set far up"),
        ] {
            run_ip(&line);
        }
        Some(wire)
    }

    /// Datagrams from the first to the second, each answered.
    pub(crate) fn exchange(&self, count: u8) {
        self.sockets().exchange(count);
    }

    /// A socket at each end. Opened once where other threads start programs: between fork and exec a new
    /// process holds a copy of each socket, so the port of a closed one can still be in use.
    pub(crate) fn sockets(&self) -> Sockets {
        let open = |end: usize, address: &str| {
            let opened = with_namespace(&self.namespaces[end], || UdpSocket::bind(address));
            let socket = opened.expect("entered").expect("a socket");
            let timeout = Some(Duration::from_secs(20));
            socket.set_read_timeout(timeout).expect("an option");
            socket
        };
        Sockets {
            client: open(0, "10.91.0.1:4001"),
            server: open(1, "10.91.0.2:4002"),
        }
    }

    /// Both ends as points `near` and `far` of this host.
    pub(crate) fn ends(&self) -> [String; 2] {
        let [a, b] = &self.names;
        [format!("near=iface:near@{a}"), format!("far=iface:far@{b}")]
    }

    /// The first end as a point of this host, the second as one over ssh.
    pub(super) fn points(&self) -> [String; 2] {
        let [a, b] = &self.names;
        [
            format!("here=iface:near@{a}"),
            format!("there=ssh:root@{b}/far"),
        ]
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for name in &self.names {
            // Only root could create it.
            let _ = remove(name);
        }
    }
}
