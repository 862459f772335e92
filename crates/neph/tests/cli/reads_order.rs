//! `neph read` of several captures, given in whatever order.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::neph::{RunOutput, TestFolder};
use crate::reads::{ACK, Capture, SYN};

/// Bytes of a pcap file's header, and of a segment of `Capture` without payload.
const HEADER: usize = 24;
const SEGMENT: usize = 16 + 40;

/// A connection in two captures: its handshake in `a.pcap`, what it asks in `b.pcap`. And both in one.
fn halves() -> TestFolder {
    let folder = TestFolder::empty();
    let capture_bytes = Capture::slow_server().0;
    let (first, rest) = capture_bytes.split_at(HEADER + 3 * SEGMENT);
    fs::write(folder.path("whole.pcap"), &capture_bytes).expect("a file");
    fs::write(folder.path("a.pcap"), first).expect("a file");
    fs::write(
        folder.path("b.pcap"),
        [&capture_bytes[..HEADER], rest].concat(),
    )
    .expect("a file");
    fs::write(folder.path("none.pcap"), &capture_bytes[..HEADER]).expect("a file");
    folder
}

fn flows(ran: &RunOutput) -> Value {
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    document["flows"].clone()
}

fn read(folder: &TestFolder, files: &[&str]) -> RunOutput {
    folder.neph([&["read", "--format", "json"], files].concat())
}

#[test]
fn captures_that_follow_each_other_are_read_in_the_order_of_time() {
    let folder = halves();
    let whole_flows = flows(&read(&folder, &["whole.pcap"]));
    let right = read(&folder, &["a.pcap", "b.pcap"]);
    assert_eq!(
        (flows(&right), right.err.as_str()),
        (whole_flows.clone(), "")
    );
    for files in [
        &["b.pcap", "a.pcap"][..],
        &["b.pcap", "none.pcap", "a.pcap"],
    ] {
        let ran = read(&folder, files);
        assert_eq!(
            (ran.status, flows(&ran)),
            (0, whole_flows.clone()),
            "{}",
            ran.err
        );
        let expected = "in the order of their first packets, a.pcap sooner than it was given";
        assert!(ran.err.contains(expected), "{}", ran.err);
        assert!(!ran.err.contains("twice"), "{}", ran.err);
    }
}

#[test]
fn an_older_capture_from_a_pipe_has_an_order_warning_only() {
    let folder = halves();
    let mut command = folder.command(["read", "b.pcap", "-"]);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().expect("neph runs");
    let older = fs::read(folder.path("a.pcap")).expect("a capture");
    let mut into = child.stdin.take().expect("piped");
    into.write_all(&older).expect("read");
    drop(into);
    let ran = RunOutput::from(child.wait_with_output().expect("it ends"));
    let is_reported =
        ran.err.contains("- is older than b.pcap") && ran.err.contains("give - first");
    assert!(ran.status == 0 && is_reported, "{}", ran.err);
    assert!(!ran.err.contains("twice"), "{}", ran.err);
}

#[test]
fn overlapping_captures_are_reported_as_several_points() {
    let folder = halves();
    let mut within = Capture::new();
    within.segment((35, true), SYN, (1, 0), 0);
    within.segment((36, true), ACK, (2, 0), 0);
    fs::write(folder.path("within.pcap"), &within.0).expect("a file");
    for files in [
        ["whole.pcap", "whole.pcap"],
        ["whole.pcap", "within.pcap"],
        ["within.pcap", "whole.pcap"],
    ] {
        let ran = read(&folder, &files);
        let is_reported = ran
            .err
            .contains("begins before whole.pcap ends: packets in both count twice");
        assert!(ran.status == 0 && is_reported, "{}", ran.err);
        assert!(ran.err.contains("neph hops"), "{}", ran.err);
    }
}
