//! `neph read` of several captures, given in whatever order.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::neph::{Ran, TestFolder};
use crate::reads::{ACK, Capture, SYN};

/// Bytes of a pcap file's header, and of a segment of `Capture` without payload.
const HEADER: usize = 24;
const SEGMENT: usize = 16 + 40;

/// A connection in two captures: its handshake in `a.pcap`, what it asks in `b.pcap`. And both in one.
fn halves() -> TestFolder {
    let place = TestFolder::empty();
    let whole = Capture::thinking().0;
    let (first, rest) = whole.split_at(HEADER + 3 * SEGMENT);
    fs::write(place.path("whole.pcap"), &whole).expect("a file");
    fs::write(place.path("a.pcap"), first).expect("a file");
    fs::write(place.path("b.pcap"), [&whole[..HEADER], rest].concat()).expect("a file");
    fs::write(place.path("none.pcap"), &whole[..HEADER]).expect("a file");
    place
}

fn flows(ran: &Ran) -> Value {
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    document["flows"].clone()
}

fn read(place: &TestFolder, files: &[&str]) -> Ran {
    place.neph([&["read", "--format", "json"], files].concat())
}

#[test]
fn captures_that_follow_each_other_are_read_in_the_order_of_time() {
    let place = halves();
    let whole = flows(&read(&place, &["whole.pcap"]));
    let right = read(&place, &["a.pcap", "b.pcap"]);
    assert_eq!((flows(&right), right.err.as_str()), (whole.clone(), ""));
    for files in [
        &["b.pcap", "a.pcap"][..],
        &["b.pcap", "none.pcap", "a.pcap"],
    ] {
        let ran = read(&place, files);
        assert_eq!((ran.status, flows(&ran)), (0, whole.clone()), "{}", ran.err);
        let reported = "in the order of their first packets, a.pcap sooner than it was given";
        assert!(ran.err.contains(reported), "{}", ran.err);
        assert!(!ran.err.contains("twice"), "{}", ran.err);
    }
}

#[test]
fn an_older_capture_that_comes_from_a_pipe_is_told_and_not_to_count_twice() {
    let place = halves();
    let mut command = place.command(["read", "b.pcap", "-"]);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().expect("neph runs");
    let older = fs::read(place.path("a.pcap")).expect("a capture");
    let mut into = child.stdin.take().expect("piped");
    into.write_all(&older).expect("read");
    drop(into);
    let ran = Ran::from(child.wait_with_output().expect("it ends"));
    let is_reported =
        ran.err.contains("- is older than b.pcap") && ran.err.contains("give - first");
    assert!(ran.status == 0 && is_reported, "{}", ran.err);
    assert!(!ran.err.contains("twice"), "{}", ran.err);
}

#[test]
fn captures_that_overlap_are_told_to_be_those_of_several_points() {
    let place = halves();
    let mut within = Capture::new();
    within.segment((35, true), SYN, (1, 0), 0);
    within.segment((36, true), ACK, (2, 0), 0);
    fs::write(place.path("within.pcap"), &within.0).expect("a file");
    for files in [
        ["whole.pcap", "whole.pcap"],
        ["whole.pcap", "within.pcap"],
        ["within.pcap", "whole.pcap"],
    ] {
        let ran = read(&place, &files);
        let is_reported = ran
            .err
            .contains("begins before whole.pcap ends: packets in both count twice");
        assert!(ran.status == 0 && is_reported, "{}", ran.err);
        assert!(ran.err.contains("neph hops"), "{}", ran.err);
    }
}
