//! `neph watch any`: all interfaces of a namespace, of which a packet may pass several.

use std::net::{TcpListener, TcpStream};

use neph_sys::netns::{NetNs, remove, with_namespace};
use serde_json::Value;

use crate::neph::{RunOutput, TestFolder, run_ip};
use crate::watches::{Watch, exchange_with, lines, lines_of_kind, with_loopback};

/// A namespace behind an interface of this thread's, which is its way to everywhere.
pub(crate) struct Host {
    name: String,
    pub(crate) ns: NetNs,
}

impl Host {
    /// `10.9.NUMBER.2`, behind the interface `toNUMBER`. Other tests run in this process meanwhile.
    pub(crate) fn behind(test: &str, number: u8) -> Self {
        let name = format!("nephany-{}-{test}-{number}", std::process::id());
        let ns = NetNs::create(&name).expect("make a namespace");
        run_ip(&format!(
            "link add to{number} type veth peer name out netns {name}"
        ));
        run_ip(&format!("addr add 10.9.{number}.1/24 dev to{number}"));
        run_ip(&format!("link set to{number} up"));
        with_namespace(&ns, || {
            run_ip(&format!("addr add 10.9.{number}.2/24 dev out"));
            run_ip("link set out up");
            run_ip(&format!("route add default via 10.9.{number}.1"));
        })
        .expect("enter");
        Self { name, ns }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        remove(&self.name).expect("remove");
    }
}

/// Packets of the one flow, those that were sent again, and round trips of its server's half.
fn flow(ran: &RunOutput) -> [u64; 3] {
    let lines = lines(&ran.out);
    let [flow] = lines_of_kind(&lines, "flow")[..] else {
        panic!("{}", ran.out);
    };
    let sent = |message: &str| -> u64 {
        let of = |side: &str| flow["sent"][side][message].as_u64().expect("a count");
        of("client") + of("server")
    };
    let answered = &flow["round_trips"]["server"]["acknowledgement"]["with_data"];
    [
        sent("packets"),
        sent("retransmission") + sent("spurious_retransmission"),
        answered["n"].as_u64().expect("round trips"),
    ]
}

fn summary(ran: &RunOutput) -> Value {
    lines(&ran.out).pop().expect("a summary")
}

#[test]
fn a_packet_that_a_router_passes_on_counts_once() {
    with_loopback("any", || {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("a router");
        let (client, server) = (Host::behind("any", 1), Host::behind("any", 2));
        let folder = TestFolder::empty();
        let arguments = ["--format", "ndjson", "--proto", "tcp"];
        let write_options = ["--write", "any.pcap"];
        let any = Watch::of(&folder, "any", &[&arguments[..], &write_options].concat());
        let watch = Watch::of(&folder, "to1", &arguments);
        let listener = with_namespace(&server.ns, || TcpListener::bind("10.9.2.2:0"));
        let listener = listener.expect("enter").expect("listen");
        exchange_with(listener, 20, |address| {
            let stream = with_namespace(&client.ns, || TcpStream::connect(address));
            stream.expect("enter").expect("connect")
        });
        let (any, output) = (any.interrupt(), watch.interrupt());
        assert_eq!((any.status, output.status), (130, 130));
        assert_eq!(flow(&any), flow(&output));
        let [packets, ..] = flow(&output);
        let document = summary(&any);
        assert_eq!(document["files"][0]["packets"], 2 * packets, "in and out");
        assert_eq!(document["capture_duplicates_removed"], packets);
        assert_eq!(
            document["files"][0]["bytes"], document["bytes"],
            "each once"
        );
        // The file tells the interfaces, and so the same.
        let read = folder.neph(["read", "any.pcap", "--format", "ndjson"]);
        assert_eq!((read.status, read.err.as_str()), (0, ""));
        assert_eq!(flow(&read), flow(&any));
        assert_eq!(summary(&read)["capture_duplicates_removed"], packets);
    });
}

#[test]
fn a_loopback_packet_counts_once() {
    with_loopback("anylo", || {
        let folder = TestFolder::empty();
        let arguments = ["--format", "ndjson", "--host", "127.0.0.1"];
        let any = Watch::of(&folder, "any", &arguments);
        let watch = Watch::of(&folder, "lo", &arguments);
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        exchange_with(listener, 20, |address| {
            TcpStream::connect(address).expect("connect")
        });
        let (any, output) = (any.interrupt(), watch.interrupt());
        assert_eq!(flow(&any), flow(&output));
        let packets = |ran: &RunOutput| summary(ran)["files"][0]["packets"].clone();
        assert_eq!(packets(&any), packets(&output));
        assert_eq!(summary(&any)["capture_duplicates_removed"], 0);
    });
}
