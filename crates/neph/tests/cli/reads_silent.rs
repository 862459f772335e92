//! `neph read -` where nothing comes for a while.

use std::io::Write;
use std::process::Stdio;

use crate::neph::{RunOutput, TIMEOUT, TestFolder, command, eventually, send_signal};
use crate::reads::Capture;

/// SIGINT among the signals that a process has a handler for (`SigCgt` of proc(5)).
fn handles_sigint(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let caught_signals = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught_signals = caught_signals.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught_signals.is_some_and(|mask| mask & 1 << 1 != 0)
}

#[test]
fn ctrl_c_on_a_silent_pipe_prints_the_result_so_far() {
    let capture = Capture::slow_server().0;
    // Before the first byte, and within the last record.
    for (bytes, flows) in [(&capture[..0], 0), (&capture[..capture.len() - 1], 1)] {
        let mut child = command()
            .args(["read", "-", "--format", "json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("neph runs");
        let mut into = child.stdin.take().expect("piped");
        into.write_all(bytes).expect("room in the pipe");
        eventually("it hears ctrl-C", TIMEOUT, || handles_sigint(child.id()));
        send_signal("INT", child.id());
        eventually("it ends", TIMEOUT, || {
            child.try_wait().expect("asked").is_some()
        });
        let ran = RunOutput::from(child.wait_with_output().expect("ended"));
        assert_eq!(ran.status, 130, "{}", ran.err);
        assert_eq!(
            ran.err,
            "neph read: interrupted while reading -: the result covers what was read\n"
        );
        let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
        let printed_flows = document["flows"].as_array().expect("flows").len();
        assert_eq!(printed_flows, flows, "{}", ran.out);
        drop(into);
    }
}

#[test]
fn ctrl_c_reports_how_many_captures_are_left_out() {
    let folder = TestFolder::empty();
    std::fs::write(folder.path("later.pcap"), Capture::slow_server().0).expect("a file");
    let mut child = folder
        .command(["read", "-", "later.pcap"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("neph runs");
    let into = child.stdin.take().expect("piped");
    eventually("it hears ctrl-C", TIMEOUT, || handles_sigint(child.id()));
    send_signal("INT", child.id());
    let ran = RunOutput::from(child.wait_with_output().expect("ended"));
    assert_eq!((ran.status, ran.out.as_str()), (130, ""), "{}", ran.err);
    assert_eq!(
        ran.err,
        "neph read: interrupted while reading -: the result covers what was read; 1 capture behind it left out\n"
    );
    drop(into);
}
