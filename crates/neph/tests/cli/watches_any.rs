//! `neph watch any`: all interfaces of a namespace, of which a packet may pass several.

use std::io::BufRead;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use neph_sys::netns::{NetNs, remove, with_namespace};
use serde_json::Value;

use crate::neph::{Place, Ran, begin, send};
use crate::watches::{Watch, exchange, exchange_with, lines, of_kind, with_loopback};

pub(crate) fn ip(line: &str) {
    let done = Command::new("ip").args(line.split(' ')).status();
    assert!(done.expect("the ip program").success(), "ip {line}");
}

/// A namespace behind an interface of this thread's, which is its way to everywhere.
pub(crate) struct Host {
    name: String,
    pub(crate) ns: NetNs,
}

impl Host {
    /// `10.9.NUMBER.2`, behind the interface `toNUMBER`.
    pub(crate) fn behind(number: u8) -> Self {
        let name = format!("nephany-{}-{number}", std::process::id());
        let ns = NetNs::create(&name).expect("make a namespace");
        ip(&format!(
            "link add to{number} type veth peer name out netns {name}"
        ));
        ip(&format!("addr add 10.9.{number}.1/24 dev to{number}"));
        ip(&format!("link set to{number} up"));
        with_namespace(&ns, || {
            ip(&format!("addr add 10.9.{number}.2/24 dev out"));
            ip("link set out up");
            ip(&format!("route add default via 10.9.{number}.1"));
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
fn flow(ran: &Ran) -> [u64; 3] {
    let lines = lines(&ran.out);
    let [flow] = of_kind(&lines, "flow")[..] else {
        panic!("{}", ran.out);
    };
    let sent = |what: &str| -> u64 {
        let of = |side: &str| flow["sent"][side][what].as_u64().expect("a count");
        of("client") + of("server")
    };
    let answered = &flow["round_trips"]["server"]["acknowledgement"]["with_data"];
    [
        sent("packets"),
        sent("retransmission") + sent("spurious_retransmission"),
        answered["n"].as_u64().expect("round trips"),
    ]
}

fn summary(ran: &Ran) -> Value {
    lines(&ran.out).pop().expect("a summary")
}

#[test]
fn a_packet_that_a_router_passes_on_counts_once() {
    with_loopback("any", || {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("a router");
        let (client, server) = (Host::behind(1), Host::behind(2));
        let place = Place::empty();
        let arguments = ["--format", "ndjson", "--proto", "tcp"];
        let beside = ["--write", "any.pcap"];
        let any = Watch::of(&place, "any", &[&arguments[..], &beside].concat());
        let one = Watch::of(&place, "to1", &arguments);
        let listener = with_namespace(&server.ns, || TcpListener::bind("10.9.2.2:0"));
        let listener = listener.expect("enter").expect("listen");
        exchange_with(listener, 20, |address| {
            let stream = with_namespace(&client.ns, || TcpStream::connect(address));
            stream.expect("enter").expect("connect")
        });
        let (any, one) = (any.interrupt(), one.interrupt());
        assert_eq!((any.status, one.status), (130, 130));
        assert_eq!(flow(&any), flow(&one));
        let [packets, ..] = flow(&one);
        let told = summary(&any);
        assert_eq!(told["files"][0]["packets"], 2 * packets, "in and out");
        assert_eq!(told["packets_seen_twice"], packets);
        // The file tells the interfaces, and so the same.
        let read = place.neph(["read", "any.pcap", "--format", "ndjson"]);
        assert_eq!((read.status, read.err.as_str()), (0, ""));
        assert_eq!(flow(&read), flow(&any));
        assert_eq!(summary(&read)["packets_seen_twice"], packets);
    });
}

#[test]
fn what_loopback_shows_as_sent_and_as_received_counts_once() {
    with_loopback("anylo", || {
        let place = Place::empty();
        let arguments = ["--format", "ndjson", "--host", "127.0.0.1"];
        let any = Watch::of(&place, "any", &arguments);
        let one = Watch::of(&place, "lo", &arguments);
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        exchange_with(listener, 20, |address| {
            TcpStream::connect(address).expect("connect")
        });
        let (any, one) = (any.interrupt(), one.interrupt());
        assert_eq!(flow(&any), flow(&one));
        let packets = |ran: &Ran| summary(ran)["files"][0]["packets"].clone();
        assert_eq!(packets(&any), packets(&one));
        assert_eq!(summary(&any)["packets_seen_twice"], 0);
    });
}

#[test]
fn an_interface_that_goes_down_or_away_is_told_and_the_others_are_watched_on() {
    with_loopback("anydown", || {
        let place = Place::empty();
        for name in ["one", "two"] {
            ip(&format!("link add {name} type veth peer name {name}-peer"));
            ip(&format!("link set {name} up"));
        }
        let mut command = place.command(["watch", "any", "--format", "ndjson"]);
        let (child, mut said, _) = begin(command.stdout(Stdio::piped()));
        ip("link set one down");
        let mut line = String::new();
        said.read_line(&mut line).expect("it says so");
        let told = "neph watch: one went down or away; the others are watched on\n";
        assert_eq!(line, told);
        // What was down already is not told again.
        ip("link delete one");
        ip("link delete two");
        line.clear();
        said.read_line(&mut line).expect("it says so");
        assert_eq!(line, told.replace("one", "two"));
        exchange("127.0.0.1", 5);
        send("INT", child.id());
        let ran = Ran::from(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.status, 130);
        let lines = lines(&ran.out);
        let down = of_kind(&lines, "interface_down");
        let names: Vec<&Value> = down.iter().map(|line| &line["interface"]).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(of_kind(&lines, "flow").len(), 1, "{}", ran.out);
    });
}
