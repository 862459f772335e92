//! A peer that stands still, works slowly, or is held back by its CPU quota: what it spends is never
//! reported as network, over no transport, and the cause is named.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_sys::clock;
use neph_sys::process;
use serde_json::Value;

use crate::guests::has_machines;
use crate::labs::{LabGuard, is_root};
use crate::neph::{TIMEOUT, command, eventually, neph, send_signal, start_and_read_line};

/// Every transport, with TLS where it has any, over connections that last and for one message.
const TRANSPORTS: [(&str, &[&str]); 8] = [
    ("ws", &[]),
    ("wss", &["--insecure"]),
    ("http", &[]),
    ("https", &["--insecure"]),
    ("tcp", &[]),
    ("udp", &[]),
    ("http", &["--new-connection"]),
    ("tcp", &["--new-connection"]),
];

/// `neph reflect`, as a process of its own.
struct Peer {
    child: Child,
    port: String,
}

impl Peer {
    fn begin(flags: &[&str]) -> Self {
        let mut reflect = command();
        reflect.args(["reflect", "--listen", "127.0.0.1:0", "--tls"]);
        reflect.args(flags).stdout(Stdio::null());
        let (child, _stderr, line) = start_and_read_line(&mut reflect);
        let address = line
            .split_whitespace()
            .find(|word| word.starts_with("127.0.0.1:"));
        let port = address.and_then(|address| address.split(':').nth(1));
        let port = port.expect("it says where it listens").to_owned();
        // Its lines are never read: they fit into the pipe.
        Self { child, port }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One flow's summary, with the causes.
    fn ping(&self, (scheme, more): (&str, &[&str]), timing: [&str; 4]) -> Value {
        let target = format!("{scheme}://127.0.0.1:{}", self.port);
        let some = ["ping", &target, "--no-icmp", "-q", "--format", "json"];
        let ran = neph(some.into_iter().chain(timing).chain(more.iter().copied()));
        assert_eq!(ran.status, 0, "{target}: {}", ran.err);
        serde_json::from_str(&ran.out).expect("one document")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        send_signal("CONT", self.pid());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Stops processes for a while, again and again, until it is dropped.
struct PeriodicStop {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PeriodicStop {
    fn begin(pids: Vec<u32>, stop_time: Duration, run_time: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let thread_is_over = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            while !thread_is_over.load(Ordering::Relaxed) {
                clock::nap(run_time);
                signal(&pids, "STOP");
                for pid in &pids {
                    eventually("it stands still", TIMEOUT, || is_stopped(*pid));
                }
                clock::nap(stop_time);
                signal(&pids, "CONT");
            }
        });
        Self {
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for PeriodicStop {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_some_and(|ended| ended.is_ok()) || thread::panicking());
    }
}

fn signal(pids: &[u32], name: &str) {
    for pid in pids {
        send_signal(name, *pid);
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default();
    state.trim_start().starts_with(['T', 't'])
}

/// The network of a flow took less than this at the most, its shares add up, and all
/// retransmissions were spurious.
fn assert_not_network(message: &str, summary: &Value, limit: Duration) {
    let flow = &summary["flows"][0];
    let limit = limit.as_secs_f64() * 1e9;
    let network = flow["network_ns"]["max"].as_f64();
    assert!(network.is_none_or(|max| max < limit), "{message}: {flow:#}");
    assert!(flow["network_and_peer_ns"].is_null(), "{message}: {flow:#}");
    let stages = flow["stages"].as_array().expect("a list");
    let share: f64 = stages
        .iter()
        .map(|stage| stage["share"].as_f64().expect("a share"))
        .sum();
    assert!((share - 1.0).abs() < 1e-9, "{message}: {share} {flow:#}");
    for stage in stages.iter().filter(|stage| stage["stage"] == "network") {
        let max = stage["ns"]["max"].as_f64();
        assert!(max.is_some_and(|max| max < limit), "{message}: {stage:#}");
    }
    assert_eq!(
        flow["spurious_retransmissions"], flow["retransmissions"],
        "{message}: {flow:#}"
    );
}

fn diagnosed_rules(summary: &Value) -> Vec<&str> {
    let causes = summary["diagnoses"].as_array().expect("a list");
    let rules = causes.iter().filter_map(|cause| cause["rule"].as_str());
    // Of this machine and the hour, or of what was asked for.
    let unrelated_rules = ["starved-client", "stalled-client", "connection-setup"];
    rules
        .filter(|rule| !unrelated_rules.contains(rule))
        .collect()
}

#[test]
fn a_stopped_peer_is_reported_as_stalled_and_not_as_network() {
    let peer = Peer::begin(&[]);
    let pid = peer.pid();
    let (stop_time, run_time) = (Duration::from_millis(450), Duration::from_millis(150));
    for transport in TRANSPORTS {
        let message = format!("{transport:?}");
        let stopping = PeriodicStop::begin(vec![pid], stop_time, run_time);
        let summary = peer.ping(transport, ["-i", "10ms", "-c", "250"]);
        drop(stopping);
        assert_not_network(&message, &summary, stop_time / 4);
        assert_eq!(
            diagnosed_rules(&summary),
            ["stalled-peer"],
            "{message}: {summary:#}"
        );
        let cause = &summary["diagnoses"][0]["cause"];
        let program = cause.as_str().expect("a sentence");
        assert!(
            program.contains("the server application stalled"),
            "{message}: {program}"
        );
    }
}

#[test]
fn slow_server_processing_is_not_reported_as_network() {
    let peer = Peer::begin(&["--think", "30ms"]);
    for transport in TRANSPORTS {
        let message = format!("{transport:?}");
        let summary = peer.ping(transport, ["-i", "50ms", "-c", "30"]);
        assert_not_network(&message, &summary, Duration::from_millis(15));
        assert_eq!(
            diagnosed_rules(&summary),
            ["slow-server"],
            "{message}: {summary:#}"
        );
    }
}

/// A cgroup with a CPU quota that goes away; what is in it moves out first.
struct Quota {
    folder: PathBuf,
    cpu_hog: Child,
}

impl Quota {
    /// Half a second's period of which so much may be used, by a process and one that takes the most of
    /// it.
    fn of(pid: u32, quota: Duration) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup/cpu");
        if !is_root() || !root.join("cpu.cfs_quota_us").exists() {
            return None;
        }
        let folder = root.join(format!("neph-stalls-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let cpu_hog = process::command("sh")
            .args(["-c", "while :; do :; done"])
            .spawn();
        let group = Self {
            folder,
            cpu_hog: cpu_hog.expect("a shell"),
        };
        let write = |name: &str, text: String| {
            fs::write(group.folder.join(name), text).expect("our own cgroup");
        };
        write("cpu.cfs_period_us", "500000".to_owned());
        write("cpu.cfs_quota_us", quota.as_micros().to_string());
        for pid in [pid, group.cpu_hog.id()] {
            write("cgroup.procs", pid.to_string());
        }
        Some(group)
    }

    fn throttled(&self) -> u64 {
        let stat = fs::read_to_string(self.folder.join("cpu.stat")).expect("a cgroup's file");
        let line = stat
            .lines()
            .find_map(|line| line.strip_prefix("nr_throttled "));
        line.and_then(|number| number.parse().ok())
            .expect("a number")
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = self.cpu_hog.kill();
        let _ = self.cpu_hog.wait();
        let pids = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        for pid in pids.lines() {
            let _ = fs::write("/sys/fs/cgroup/cpu/cgroup.procs", pid);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

#[test]
fn a_peer_throttled_by_its_quota_is_stalled_and_not_network() {
    let test = "a_peer_throttled_by_its_quota_is_stalled_and_not_network";
    let peer = Peer::begin(&[]);
    let Some(quota) = Quota::of(peer.pid(), Duration::from_millis(150)) else {
        println!("SKIP {test}: needs root and the cgroup controller cpu (version 1)");
        return;
    };
    for transport in TRANSPORTS {
        let message = format!("{transport:?}");
        let before = quota.throttled();
        let summary = peer.ping(transport, ["-i", "20ms", "-c", "150"]);
        assert!(quota.throttled() - before >= 4, "{message}");
        assert_not_network(&message, &summary, Duration::from_millis(100));
        let names = diagnosed_rules(&summary);
        assert!(names.contains(&"stalled-peer"), "{message}: {summary:#}");
        for wrong in ["bufferbloat", "random-loss"] {
            assert!(!names.contains(&wrong), "{message}: {summary:#}");
        }
    }
}

const GUEST: &str = "version = 1\n\
    [[site]]\nname = \"client\"\naddress = \"10.87.0.1\"\n\
    [[site]]\nname = \"host\"\naddress = \"10.87.0.2\"\n\
    [[site]]\nname = \"vm\"\naddress = \"10.87.1.1\"\ninside = \"host\"\n\
    [[link]]\na = \"client\"\nb = \"host\"\ndelay = \"3ms\"\n\
    [[guest]]\nname = \"m\"\nkind = \"qemu\"\nsites = [\"vm\"]\nmemory = \"256MiB\"\nport = 9000\n";

/// The processes that a lab's guests run in.
fn machines(lab: &str) -> Vec<u32> {
    let folder = Path::new("/run/neph").join(lab);
    let processes = fs::read_dir("/proc").expect("proc").flatten();
    let pids = processes.filter_map(|process| {
        let path = process.path();
        let is_of_lab = fs::read_link(path.join("cwd")).is_ok_and(|at| at.starts_with(&folder));
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        let pid = process.file_name().to_str()?.parse().ok()?;
        (is_of_lab && name.starts_with("qemu")).then_some(pid)
    });
    pids.collect()
}

#[test]
fn a_guest_that_stands_still_behind_a_link_is_no_queue() {
    let test = "a_guest_that_stands_still_behind_a_link_is_no_queue";
    if !has_machines(test) {
        return;
    }
    let lab = LabGuard::up(GUEST, 's');
    let machines = machines(&lab.name);
    assert!(!machines.is_empty());
    let (stop_time, run_time) = (Duration::from_millis(900), Duration::from_millis(100));
    for target in [
        "icmp://10.87.1.1",
        "udp://10.87.1.1:9000",
        "tcp://10.87.1.1:9000",
    ] {
        let ping = [
            "ping", target, "-i", "20ms", "-c", "500", "-q", "--format", "json",
        ];
        let args = ["lab", "run", "client", "--lab", &lab.name, "--"];
        let args = args.into_iter().chain([env!("CARGO_BIN_EXE_neph")]);
        let stopping = PeriodicStop::begin(machines.clone(), stop_time, run_time);
        let ran = lab.folder.neph(args.chain(ping));
        drop(stopping);
        assert_eq!(ran.status, 0, "{target}: {}", ran.err);
        let summary: Value = serde_json::from_str(&ran.out).expect("one document");
        assert_eq!(
            diagnosed_rules(&summary),
            ["stalled-peer"],
            "{target}: {summary:#}"
        );
        let cause = summary["diagnoses"][0]["cause"]
            .as_str()
            .expect("a sentence");
        assert!(cause.contains("the peer's host"), "{target}: {cause}");
    }
}
