//! `neph hops` where the hosts' interfaces leave cutting segments to the kernel: a capture at the
//! sender sees 64 KB in one piece, one behind the link what it became.
//!
//! Hosts stand behind the two sites of a lab, since its own links take offload off. Both ends send.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use neph_sys::clock;
use neph_sys::netns::{NetNs, remove, with_namespace};
use neph_sys::process;
use serde_json::Value;

use crate::clocks::shifted;
use crate::points::{Files, Frame, frames, recorded, told_packets};
use crate::stage::{TwoSites, privileged};

const SECOND: i64 = 1_000_000_000;
/// What is sent each way: so many times so many bytes.
const CHUNKS: usize = 60;
const CHUNK: usize = 60_000;

/// A host behind each site.
struct Hosts {
    names: [String; 2],
    spaces: [NetNs; 2],
}

fn ip(line: &str) {
    let done = process::command("ip").args(line.split(' ')).status();
    assert!(done.expect("the ip program").success(), "ip {line}");
}

impl Hosts {
    fn behind(lab: &TwoSites) -> Self {
        let names = ["a", "b"].map(|end| format!("hops-off-{}-{end}", std::process::id()));
        let spaces = [0, 1].map(|at| NetNs::create(&names[at]).expect("a namespace"));
        let hosts = Self { names, spaces };
        for (at, site) in ["client", "server"].iter().enumerate() {
            let (host, router) = (&hosts.names[at], lab.namespace(site));
            let (net, other) = (11 + at, 12 - at);
            ip(&format!(
                "-n {host} link add hop0 type veth peer name host netns {router}"
            ));
            ip(&format!("-n {host} address add 10.79.{net}.2/24 dev hop0"));
            ip(&format!(
                "-n {router} address add 10.79.{net}.1/24 dev host"
            ));
            ip(&format!("-n {host} link set hop0 up"));
            ip(&format!("-n {router} link set host up"));
            ip(&format!("-n {host} route add default via 10.79.{net}.1"));
            ip(&format!(
                "-n {router} route add 10.79.{other}.0/24 via 10.79.0.{} dev path onlink",
                2 - at
            ));
            let forward = process::command("nsenter")
                .arg(format!("--net=/run/netns/{router}"))
                .args(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
                .status();
            assert!(forward.expect("nsenter runs").success());
        }
        hosts
    }

    fn inside<T: Send>(&self, at: usize, work: impl FnOnce() -> std::io::Result<T> + Send) -> T {
        let done = with_namespace(&self.spaces[at], work);
        done.expect("entered").expect("a socket")
    }

    /// A connection from the first to the second, on which both send at once.
    fn transfer(&self) {
        let address = SocketAddr::from(([10, 79, 12, 2], 7_979));
        let listener = self.inside(1, || TcpListener::bind(address));
        let client = self.inside(0, || TcpStream::connect(address));
        let (answering, _) = listener.accept().expect("it comes");
        let ends = [client, answering];
        thread::scope(|scope| {
            for end in &ends {
                scope.spawn(move || send(end));
                scope.spawn(move || receive(end));
            }
        });
    }
}

fn send(mut stream: &TcpStream) {
    for _ in 0..CHUNKS {
        stream.write_all(&vec![5; CHUNK]).expect("it is read");
        clock::nap(Duration::from_millis(10));
    }
}

fn receive(mut stream: &TcpStream) {
    let (mut rest, mut bytes) = (CHUNKS * CHUNK, vec![0; 65_536]);
    while rest > 0 {
        rest -= stream.read(&mut bytes).expect("it comes");
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // Whoever made it is root.
            let _ = remove(name);
        }
    }
}

/// Where bytes end: who sent them, and the number behind the last.
type LineEnd = (u8, u32);

/// When a frame passed that ended there, and how long it was; only of what passed once.
fn ends(frames: &[Frame]) -> HashMap<LineEnd, (i64, u32)> {
    let (mut ends, mut second) = (HashMap::new(), HashSet::new());
    for frame in frames {
        let Some((begin, end)) = frame.numbers() else {
            continue;
        };
        let key = (frame.ip[14], end);
        let length = end.wrapping_sub(begin);
        if ends.insert(key, (frame.at, length)).is_some() {
            second.insert(key);
        }
    }
    ends.retain(|end, _| !second.contains(end));
    ends
}

/// Packets over TCP with data that are reported: both stamps, delay and bound, and whether it was joined.
fn joined_packets(files: [&str; 2]) -> Vec<([i64; 2], i64, i64, bool)> {
    let lines = told_packets(files, &[]).into_iter();
    let number = |value: &Value| value.as_i64().expect("a number");
    let mut packets = Vec::new();
    for line in lines.filter(|line| line["protocol"] == "tcp") {
        let segment = &line["segments"][0];
        if !segment.is_null() {
            let marks = [0, 1].map(|point| number(&line["timestamps_unix_ns"][point]));
            let (delay, bound) = (number(&segment["ns"]), number(&segment["bound_ns"]));
            packets.push((
                marks,
                delay,
                bound,
                !line["first_to_last_part_ns"].is_null(),
            ));
        }
    }
    packets
}

#[test]
fn large_packets_of_both_ends_take_as_long_as_their_last_byte_within_the_bound() {
    if !privileged("large_packets_of_both_ends") {
        return;
    }
    let lab = TwoSites::up("hops_offload", "delay = \"2ms\"");
    let hosts = Hosts::behind(&lab);
    let interfaces = [0, 1].map(|at| format!("hop0@{}", hosts.names[at]));
    let [near_end, far_end] = recorded(&interfaces, || hosts.transfer());
    drop(hosts);
    drop(lab);
    let moved = shifted(far_end.clone(), 3 * SECOND, 40);
    let files = Files::of("hops-offload", [("a", &near_end), ("b", &moved)]);
    let packets = joined_packets(files.paths.each_ref().map(String::as_str));
    drop(files);
    let was: HashMap<i64, i64> = frames(&moved)
        .iter()
        .zip(frames(&far_end))
        .map(|(moved, frame)| (moved.at, frame.at))
        .collect();
    let (near_end, far_end) = (ends(&frames(&near_end)), ends(&frames(&far_end)));
    // Bytes that end a packet at both points: by their stamps.
    let nears = near_end.iter().filter_map(|(key, (at, length))| {
        let (other, cut) = far_end.get(key)?;
        Some(((*at, *other), length != cut))
    });
    let pair: HashMap<(i64, i64), bool> = nears.collect();
    let (mut right, mut joined, mut close) = (0, 0, 0);
    for (marks, delay, bound, is_joined) in packets {
        let stamps = (marks[0], was[&marks[1]]);
        let off = delay - (stamps.1 - stamps.0).abs();
        assert!(off.abs() <= bound + 40, "{off}, at most {bound}");
        if let Some(is_cut) = pair.get(&stamps) {
            right += 1;
            joined += usize::from(is_joined);
            close += usize::from(off.abs() <= 5_000);
            assert!(!is_cut || is_joined, "of another length behind the link");
        } else {
            assert!(
                !is_joined,
                "its last byte passed both points, once: {stamps:?}"
            );
        }
    }
    println!(
        "{right} of {} packets with data, {joined} of them joined, {close} within 5 us",
        pair.len()
    );
    let cut = pair.values().filter(|is_cut| **is_cut).count();
    assert!(cut > CHUNKS, "large ones were sent by both ends");
    assert!(
        right * 100 >= pair.len() * 99,
        "nearly all are told, but for what was sent again"
    );
}
