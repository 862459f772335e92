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
use crate::points::{CaptureFiles, Frame, frames, record_captures, reported_packets};
use crate::setup::{TwoSites, is_privileged};

const SECOND: i64 = 1_000_000_000;
/// What is sent in each direction: the number of chunks, and the bytes of a chunk.
const CHUNKS: usize = 60;
const CHUNK: usize = 60_000;

/// A host behind each site.
struct Hosts {
    names: [String; 2],
    spaces: [NetNs; 2],
}

fn run_ip(line: &str) {
    let status = process::command("ip").args(line.split(' ')).status();
    assert!(status.expect("the ip program").success(), "ip {line}");
}

impl Hosts {
    fn behind(lab: &TwoSites) -> Self {
        let names = ["a", "b"].map(|end| format!("hops-off-{}-{end}", std::process::id()));
        let spaces = [0, 1].map(|at| NetNs::create(&names[at]).expect("a namespace"));
        let hosts = Self { names, spaces };
        for (at, site) in ["client", "server"].iter().enumerate() {
            let (host, router) = (&hosts.names[at], lab.namespace(site));
            let (net, other) = (11 + at, 12 - at);
            run_ip(&format!(
                "-n {host} link add hop0 type veth peer name host netns {router}"
            ));
            run_ip(&format!("-n {host} address add 10.79.{net}.2/24 dev hop0"));
            run_ip(&format!(
                "-n {router} address add 10.79.{net}.1/24 dev host"
            ));
            run_ip(&format!("-n {host} link set hop0 up"));
            run_ip(&format!("-n {router} link set host up"));
            run_ip(&format!("-n {host} route add default via 10.79.{net}.1"));
            run_ip(&format!(
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

    fn in_namespace<T: Send>(
        &self,
        at: usize,
        work: impl FnOnce() -> std::io::Result<T> + Send,
    ) -> T {
        let result = with_namespace(&self.spaces[at], work);
        result.expect("entered").expect("a socket")
    }

    /// A connection from the first to the second, on which both send at once.
    fn transfer(&self) {
        let address = SocketAddr::from(([10, 79, 12, 2], 7_979));
        let listener = self.in_namespace(1, || TcpListener::bind(address));
        let client = self.in_namespace(0, || TcpStream::connect(address));
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
type DataEnd = (u8, u32);

/// When a frame passed that ended there, and how long it was; only of what passed once.
fn passages_by_end(frames: &[Frame]) -> HashMap<DataEnd, (i64, u32)> {
    let (mut passages, mut repeated) = (HashMap::new(), HashSet::new());
    for frame in frames {
        let Some((begin, end)) = frame.tcp_byte_range() else {
            continue;
        };
        let key = (frame.ip[14], end);
        let length = end.wrapping_sub(begin);
        if passages.insert(key, (frame.at, length)).is_some() {
            repeated.insert(key);
        }
    }
    passages.retain(|end, _| !repeated.contains(end));
    passages
}

/// Packets over TCP with data that are reported: both stamps, delay and bound, and whether it was joined.
fn joined_packets(files: [&str; 2]) -> Vec<([i64; 2], i64, i64, bool)> {
    let lines = reported_packets(files, &[]).into_iter();
    let number = |value: &Value| value.as_i64().expect("a number");
    let mut packets = Vec::new();
    for line in lines.filter(|line| line["protocol"] == "tcp") {
        let segment = &line["segments"][0];
        if !segment.is_null() {
            let timestamps = [0, 1].map(|point| number(&line["timestamps_unix_ns"][point]));
            let (delay, bound) = (number(&segment["ns"]), number(&segment["bound_ns"]));
            packets.push((
                timestamps,
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
    if !is_privileged("large_packets_of_both_ends") {
        return;
    }
    let lab = TwoSites::up("hops_offload", "delay = \"2ms\"");
    let hosts = Hosts::behind(&lab);
    let interfaces = [0, 1].map(|at| format!("hop0@{}", hosts.names[at]));
    let [near_end, far_end] = record_captures(&interfaces, || hosts.transfer());
    drop(hosts);
    drop(lab);
    let shifted_capture = shifted(far_end.clone(), 3 * SECOND, 40);
    let files = CaptureFiles::of("hops-offload", [("a", &near_end), ("b", &shifted_capture)]);
    let packets = joined_packets(files.paths.each_ref().map(String::as_str));
    drop(files);
    let original_times: HashMap<i64, i64> = frames(&shifted_capture)
        .iter()
        .zip(frames(&far_end))
        .map(|(shifted_capture, frame)| (shifted_capture.at, frame.at))
        .collect();
    let (near_end, far_end) = (
        passages_by_end(&frames(&near_end)),
        passages_by_end(&frames(&far_end)),
    );
    // Bytes that end a packet at both points: by their stamps.
    let common_ends = near_end.iter().filter_map(|(key, (at, length))| {
        let (other, cut) = far_end.get(key)?;
        Some(((*at, *other), length != cut))
    });
    let is_cut_by_times: HashMap<(i64, i64), bool> = common_ends.collect();
    let (mut matched, mut joined, mut close) = (0, 0, 0);
    for (timestamps, delay, bound, is_joined) in packets {
        let stamps = (timestamps[0], original_times[&timestamps[1]]);
        let error = delay - (stamps.1 - stamps.0).abs();
        assert!(error.abs() <= bound + 40, "{error}, at most {bound}");
        if let Some(is_cut) = is_cut_by_times.get(&stamps) {
            matched += 1;
            joined += usize::from(is_joined);
            close += usize::from(error.abs() <= 5_000);
            assert!(!is_cut || is_joined, "of another length behind the link");
        } else {
            assert!(
                !is_joined,
                "its last byte passed both points, once: {stamps:?}"
            );
        }
    }
    println!(
        "{matched} of {} packets with data, {joined} of them joined, {close} within 5 us",
        is_cut_by_times.len()
    );
    let cut = is_cut_by_times.values().filter(|is_cut| **is_cut).count();
    assert!(cut > CHUNKS, "large ones were sent by both ends");
    assert!(
        matched * 100 >= is_cut_by_times.len() * 99,
        "nearly all are reported, except retransmissions"
    );
}
