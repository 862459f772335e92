//! What neph keeps of root's privileges: the state of each thread as the kernel has it, of each
//! command of the table, and that everything is measured all the same.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use neph_sys::clock;
use neph_sys::process;

use crate::labs::privileged;
use crate::neph::{
    RunOutput, TIMEOUT, TestFolder, command, eventually, run_ip, send_signal, start_and_read_line,
};
use crate::watches::with_loopback;

/// Bits of linux/capability.h.
const BIND: u64 = 1 << 10;
pub(crate) const ADMIN: u64 = 1 << 12;
pub(crate) const RAW: u64 = 1 << 13;
pub(crate) const LOCK: u64 = 1 << 14;
pub(crate) const NICE: u64 = 1 << 23;
pub(crate) const BPF: u64 = 1 << 39;

/// Who is nobody in particular.
pub(crate) const NOBODY: &str = "65534";

/// `/proc/PID/task/*/status` of each thread, by key.
pub(crate) fn threads(pid: u32) -> Vec<BTreeMap<String, String>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let read = tasks
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("status")));
    let status = |text: String| {
        let lines = text.lines().filter_map(|line| line.split_once(":\t"));
        let pairs = lines.map(|(key, value)| (key.to_owned(), value.trim().to_owned()));
        pairs.collect::<BTreeMap<_, _>>()
    };
    read.flatten().map(status).collect()
}

/// Fails unless every thread of the process has these capabilities and no others, in all sets.
pub(crate) fn assert_capabilities(pid: u32, capabilities: u64, message: &str) {
    let threads = threads(pid);
    assert!(!threads.is_empty(), "{message} ended");
    let wanted = format!("{capabilities:016x}");
    for thread in threads {
        for (key, value) in [
            ("CapEff", &wanted[..]),
            ("CapPrm", &wanted),
            ("CapBnd", &wanted),
            ("CapInh", "0000000000000000"),
            ("CapAmb", "0000000000000000"),
            ("NoNewPrivs", "1"),
            ("Seccomp", "2"),
        ] {
            assert_eq!(thread[key], value, "{key} of {message}: {thread:?}");
        }
    }
}

/// A process that ends with the test, also after a failure: who reads the output of this test would wait for
/// it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A reflector at a free port of loopback.
pub(crate) struct Reflector {
    child: Running,
    pub(crate) address: String,
    /// Its line about privileges.
    pub(crate) report: String,
}

impl Reflector {
    pub(crate) fn begin(mut neph: Command, extra_args: &[&str]) -> Self {
        neph.args(["reflect", "--listen", "127.0.0.1:0"])
            .args(extra_args);
        let (child, mut stderr, line) = start_and_read_line(&mut neph);
        let nth = line.split(' ').nth(2);
        let address = nth
            .unwrap_or_else(|| panic!("no address: {line}"))
            .to_owned();
        // A certificate may be shown before.
        let mut lines = std::io::BufRead::lines(&mut stderr).map_while(Result::ok);
        let report = lines.find(|line| line.contains("privileges:"));
        let report = report.expect("its privileges");
        Self {
            child: Running(child),
            address,
            report,
        }
    }

    pub(crate) fn end(mut self) -> i32 {
        send_signal("INT", self.child.0.id());
        self.child.0.wait().expect("it ends").code().unwrap_or(-1)
    }
}

/// neph as a user without any privilege.
pub(crate) fn unprivileged_neph() -> Command {
    let mut command = process::command("setpriv");
    command
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"])
        .arg(env!("CARGO_BIN_EXE_neph"))
        .env_remove("NEPH_WORKSPACE")
        .env("NO_COLOR", "1");
    command
}

/// Threads of a reflector that has connections, too.
pub(crate) fn with_connections(reflector: &Reflector, check: impl FnOnce(u32)) {
    let target = format!("tcp://{}", reflector.address);
    let arguments = ["ping", &target, "--no-icmp", "-i", "50ms"];
    let mut ping = command();
    ping.args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut ping = ping.spawn().expect("neph runs");
    let pid = reflector.child.0.id();
    // Main, one that accepts, one for UDP, one for the connection.
    eventually("it has a connection", TIMEOUT, || threads(pid).len() >= 4);
    check(pid);
    ping.kill().expect("ours");
    ping.wait().expect("it ends");
}

#[test]
fn a_reflector_started_by_root_keeps_no_privilege_in_any_thread() {
    if !privileged("a_reflector_started_by_root_keeps_no_privilege_in_any_thread") {
        return;
    }
    with_loopback("bare", || {
        let reflector = Reflector::begin(command(), &["--tls"]);
        let expected =
            "neph reflect: privileges: no capabilities, no_new_privs on, seccomp on, landlock";
        assert!(
            reflector.report.starts_with(expected),
            "{}",
            reflector.report
        );
        with_connections(&reflector, |pid| assert_capabilities(pid, 0, "reflect"));
        assert_eq!(reflector.end(), 0);
    });
}

/// Begins a command as root, and fails unless it keeps these capabilities.
fn assert_command_capabilities(arguments: &[&str], capabilities: u64, folder: &TestFolder) {
    check_restricted(arguments, folder, |pid| {
        assert_capabilities(pid, capabilities, arguments[0]);
    });
}

/// Begins a command as root, has its threads checked when it is restricted, and ends it.
pub(crate) fn check_restricted(arguments: &[&str], folder: &TestFolder, check: impl Fn(u32)) {
    let mut neph = folder.command(arguments.iter().copied());
    neph.stdout(Stdio::null()).stderr(Stdio::null());
    // One that the user may write to.
    neph.env_remove("TMPDIR");
    let mut child = Running(neph.spawn().expect("neph runs"));
    let pid = child.0.id();
    eventually(&format!("{arguments:?} is restricted"), TIMEOUT, || {
        let ended = child.0.try_wait().expect("ours");
        assert!(ended.is_none(), "{arguments:?} ended: {ended:?}");
        threads(pid)
            .first()
            .is_some_and(|main| main["Seccomp"] == "2")
    });
    check(pid);
    // Threads that begin later inherit it.
    clock::nap(std::time::Duration::from_millis(300));
    check(pid);
}

#[test]
fn each_command_started_by_root_keeps_only_its_privileges() {
    if !privileged("each_command_started_by_root_keeps_only_its_privileges") {
        return;
    }
    with_loopback("table", || {
        let reflector = Reflector::begin(command(), &[]);
        let (at, folder) = (reflector.address.as_str(), TestFolder::empty());
        let (tcp, udp) = (format!("tcp://{at}"), format!("udp://{at}"));
        let csv = folder.text("out.csv");
        assert_command_capabilities(&["ping", &tcp, "-o", &csv], RAW | NICE, &folder);
        assert_command_capabilities(
            &["ping", &tcp, "--no-icmp", "-i", "500us"],
            RAW | NICE | ADMIN,
            &folder,
        );
        assert_command_capabilities(
            &["ping", &udp, "--source-port", "999"],
            RAW | NICE | BIND,
            &folder,
        );
        assert_command_capabilities(
            &["flows", &udp, "-n", "8", "--save", "x"],
            RAW | NICE | ADMIN | BPF,
            &folder,
        );
        assert_command_capabilities(&["clock", at], NICE, &folder);
        // It takes connections and answers nothing: it lasts.
        let silent_listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = silent_listener.local_addr().expect("bound").to_string();
        assert_command_capabilities(&["health", &address, "--timeout", "20s"], 0, &folder);
        assert_command_capabilities(&["watch", "lo"], RAW | NICE | ADMIN | BPF | LOCK, &folder);
        assert_command_capabilities(
            &["hops", "a=iface:lo", "b=iface:lo"],
            RAW | NICE | LOCK,
            &folder,
        );
        assert_command_capabilities(&["stress", "flow", at], 0, &folder);
        assert_command_capabilities(
            &["stress", "cpu", "--cores", "1", "--target", "5%"],
            0,
            &folder,
        );
        // Nobody answers: it lasts.
        run_ip("route add 192.0.2.0/24 dev lo");
        assert_command_capabilities(&["trace", "192.0.2.1"], RAW, &folder);
        assert_eq!(reflector.end(), 0);
    });
}

#[test]
fn every_kind_is_measured_with_reduced_privileges() {
    if !privileged("every_kind_is_measured_with_reduced_privileges") {
        return;
    }
    with_loopback("kinds", || {
        fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647").expect("its own");
        let reflector = Reflector::begin(command(), &["--tls", "--user", "nobody"]);
        let at = reflector.address.clone();
        let port = at.rsplit(':').next().expect("a port");
        let text = format!("ws://localhost:{port}");
        let url_of_scheme = |scheme: &str| format!("{scheme}://{at}");
        let targets = ["ws", "wss", "http", "https", "tcp", "udp", "syn"].map(url_of_scheme);
        let icmp = "icmp://127.0.0.1".to_owned();
        let as_nobody = ["--user", "nobody"];
        for (program, extra_args) in [
            (command as fn() -> Command, &[][..]),
            (command, &as_nobody),
            (unprivileged_neph, &[]),
        ] {
            for target in targets.iter().chain([&text, &icmp]) {
                let mut ping = program();
                ping.args(["ping", target, "-c", "3", "-i", "50ms", "-4"])
                    .args(extra_args);
                if target.starts_with("wss") || target.starts_with("https") {
                    ping.arg("--insecure");
                }
                assert_measurement(&mut ping, "3 replies");
            }
            for target in [url_of_scheme("udp"), url_of_scheme("tcp")] {
                let flows = ["flows", &target, "-n", "16", "-c", "3"];
                assert_measurement(program().args(flows).args(extra_args), "");
            }
            assert_measurement(
                program().args(["clock", &at, "-c", "20"]).args(extra_args),
                "",
            );
            let stress = ["stress", "flow", &at, "-w", "300ms"];
            assert_measurement(program().args(stress).args(extra_args), "");
        }
        for extra_args in [&[][..], &as_nobody] {
            let syn = ["flows", &url_of_scheme("syn"), "-n", "16", "-c", "3"];
            assert_measurement(command().args(syn).args(extra_args), "");
            let traced = [
                "flows",
                &url_of_scheme("udp"),
                "-n",
                "16",
                "-c",
                "3",
                "--trace",
            ];
            assert_measurement(command().args(traced).args(extra_args), "");
            assert_measurement(command().args(["trace", "127.0.0.1"]).args(extra_args), "");
        }
        assert_eq!(reflector.end(), 0);
    });
}

/// Runs it; it must end well, and say this.
fn assert_measurement(command: &mut Command, message: &str) {
    let ran: RunOutput = command.output().expect("it runs").into();
    assert_eq!(ran.status, 0, "{command:?}: {}{}", ran.out, ran.err);
    assert!(ran.out.contains(message), "{command:?}: {}", ran.out);
    assert!(
        !ran.err.contains("not implemented"),
        "{command:?}: {}",
        ran.err
    );
}
