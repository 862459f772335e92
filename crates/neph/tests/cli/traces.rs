//! Routes by flow: what is reported, in which form, and with which exit status.

use std::fs;
use std::process::Stdio;

use neph_sys::process;

use crate::labs::privileged;
use crate::neph::{RunOutput, TIMEOUT, command, eventually, neph, run_ip, send_signal};

#[test]
fn this_host_is_one_hop_away_in_every_format() {
    let trace = |format: &str| {
        let args = [
            "trace",
            "127.0.0.1",
            "--flows",
            "2",
            "--no-raw",
            "--format",
            format,
        ];
        let ran = neph(args);
        assert_eq!(ran.status, 0, "{}", ran.err);
        ran.out
    };
    let text = trace("text");
    assert!(
        text.contains("127.0.0.1 port 33434 with UDP: 2 flows"),
        "{text}"
    );
    assert!(
        text.contains(", 1 path\n") && text.contains("6/6"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&trace("json")).expect("JSON");
    assert_eq!(json["flows"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["flows"][0]["end"]["kind"], "reached");
    assert_eq!(json["diamond"]["paths"][0]["addresses"][0], "127.0.0.1");
    assert_eq!(
        json["diamond"]["paths"][0]["hash"],
        json["flows"][1]["hash"]
    );
    assert!(json["enough_flows"].is_null());
    let ndjson = trace("ndjson");
    let lines: Vec<serde_json::Value> = ndjson
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let types: Vec<_> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    assert_eq!(types, ["flow", "flow", "diamond"]);
    let csv = trace("csv");
    assert!(csv.starts_with("source_port,path,ttl,address,"), "{csv}");
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn multipath_detection_traces_as_many_flows_as_it_needs() {
    let ran = neph(["trace", "127.0.0.1", "--no-raw", "--hop-rate", "500"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.contains(": 8 flows "), "{}", ran.out);
    assert!(ran.out.contains("with 99 % confidence"), "{}", ran.out);
    let args = ["--confidence", "95%", "--hop-rate", "500", "--no-raw"];
    let ran = neph(["trace", "127.0.0.1"].into_iter().chain(args));
    assert!(ran.out.contains(": 6 flows "), "{}", ran.out);
}

#[test]
fn invalid_trace_arguments_are_refused() {
    for (args, part) in [
        (
            &["ws://h"][..],
            "routes are traced with udp://, syn:// or icmp://",
        ),
        (
            &["syn://h"],
            "the port is missing; write it as syn://host:port",
        ),
        (
            &["127.0.0.1", "--source-port", "9-3"],
            "9 is behind 3; write 3-9",
        ),
        (
            &["127.0.0.1", "--confidence", "2"],
            "write a share from 0.5 to 0.9999",
        ),
        (&["127.0.0.1", "--site", "no-such-place"], "no-such-place"),
        (
            &["127.0.0.1", "--flows", "2", "--source-port", "9"],
            "cannot be used with",
        ),
    ] {
        let ran = neph(["trace"].into_iter().chain(args.iter().copied()));
        assert_eq!(
            (ran.status, ran.out.as_str()),
            (2, ""),
            "{args:?}: {}",
            ran.err
        );
        assert!(ran.err.contains(part), "{}", ran.err);
    }
}

/// A namespace from which a silent neighbour is all that can be seen; gone when dropped.
struct SilentNamespace(String);

impl SilentNamespace {
    fn up() -> Self {
        let nobody = Self(format!("neph-nobody-{}", std::process::id()));
        let name = nobody.0.as_str();
        for line in [
            format!("netns add {name}"),
            format!("-n {name} link add one type veth peer name two"),
            format!("-n {name} address add 10.94.0.1/24 dev one"),
            format!("-n {name} link set one up"),
            format!("-n {name} link set two up"),
            format!("-n {name} neigh add 10.94.0.2 lladdr 02:00:00:00:00:02 dev one"),
        ] {
            run_ip(&line);
        }
        nobody
    }
}

impl Drop for SilentNamespace {
    fn drop(&mut self) {
        let _ = process::command("ip")
            .args(["netns", "del", &self.0])
            .status();
    }
}

/// Whether a process would not die of ctrl-C: `SigCgt` is a mask of signals, the second is INT.
fn catches_interrupts(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 0b10 != 0)
}

#[test]
fn a_trace_exits_with_1_without_answers_and_130_on_ctrl_c() {
    if !privileged("a_trace_exits_with_1_without_answers_and_130_on_ctrl_c") {
        return;
    }
    let nobody = SilentNamespace::up();
    let args = ["trace", "10.94.0.2", "--site", &nobody.0, "--flows", "2"];
    let ran = neph(args.into_iter().chain(["--timeout", "50ms"]));
    assert_eq!(ran.status, 1, "{} {}", ran.out, ran.err);
    assert!(ran.out.contains("2 flows: no answer"), "{}", ran.out);
    let mut patient = command();
    patient.args(args.into_iter().chain(["--timeout", "1min"]));
    let child = patient.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().expect("neph runs");
    eventually("neph minds ctrl-C", TIMEOUT, || {
        catches_interrupts(child.id())
    });
    send_signal("INT", child.id());
    let ran: RunOutput = child.wait_with_output().expect("it ends").into();
    assert_eq!(ran.status, 130);
    // The signal may come before the first probe; whatever is known then is shown.
    assert!(ran.out.contains("trace to 10.94.0.2"), "{}", ran.out);
    let output = neph(["trace", "192.0.2.1", "--site", &nobody.0]);
    assert_eq!(output.status, 1);
    assert!(
        output.err.contains("trace the route to 192.0.2.1:33434"),
        "{}",
        output.err
    );
}
