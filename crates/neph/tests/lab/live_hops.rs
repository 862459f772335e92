//! `neph hops` at both ends of a link while packets pass: what the link is recorded to have done is
//! what the segment between is told to have done.

use std::path::Path;
use std::process::Stdio;

use neph_model::Span;
use neph_sys::process;
use serde_json::Value;

use crate::setup::{TwoSites, is_privileged, measure, median, neph};
use crate::undisturbed::measure_undisturbed;

/// Of the segment's row: packets of a protocol one way.
fn row<'a>(document: &'a Value, direction: &str, protocol: &str) -> &'a Value {
    let rows = document["segments"].as_array().expect("rows");
    let row = rows
        .iter()
        .find(|row| row["direction"] == direction && row["protocol"] == protocol);
    row.unwrap_or_else(|| panic!("{direction} of {protocol} in {document:#}"))
}

fn number(value: &Value) -> i64 {
    value.as_i64().expect("a whole number")
}

/// Records both ends while this passes, and returns what neph reports.
fn hops_document(lab: &TwoSites, traffic: impl FnOnce()) -> Value {
    let points = [("near", "client"), ("far", "server")]
        .map(|(name, site)| format!("{name}=iface:path@{}", lab.namespace(site)));
    let arguments = ["hops", &points[0], &points[1], "--format", "json"];
    let mut command = neph(Path::new("/nowhere"), &arguments);
    let mut child = command
        .args(["--proto", "icmp", "--proto", "tcp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("neph runs");
    let mut printed = std::io::BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut printed, &mut line).expect("text");
    assert!(line.contains("recording near"), "{line}");
    traffic();
    let pid = child.id().to_string();
    let sent = process::command("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(
        output.status.code(),
        Some(130),
        "by ctrl-C, with the summary"
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn ping(lab: &TwoSites, count: &str) {
    let output = process::command("nsenter")
        .arg(format!("--net=/run/netns/{}", lab.namespace("client")))
        .args(["ping", "-q", "-c", count, "-i", "0.01", "10.79.0.2"])
        .output();
    output.expect("ping runs");
}

#[test]
fn the_segment_between_two_live_points_is_the_link() {
    if !is_privileged("the_segment_between_two_live_points") {
        return;
    }
    let link = "delay = \"3ms\"\na_to_b = { delay = \"7ms\" }";
    let (document, recorded) = measure_undisturbed(|| {
        let lab = TwoSites::up("hops_live", link);
        let reflector = lab.reflector(Span::ZERO);
        let document = hops_document(&lab, || {
            ping(&lab, "200");
            let messages = measure(lab.flow("tcp", Span::from_millis(10), 100));
            assert_eq!(messages.len(), 100);
        });
        drop(reflector);
        (document, lab.delays(80))
    });
    for (direction, recorded) in ["forward", "reverse"].iter().zip(recorded) {
        let link = median(recorded);
        for (protocol, minimum) in [("icmp", 200), ("tcp", 100)] {
            let row = row(&document, direction, protocol);
            let (n, p50) = (number(&row["n"]), number(&row["p50_ns"]));
            println!("{direction}, {protocol}: {n} packets, p50 {p50} ns; the link {link} ns");
            assert_eq!(number(&row["lost"]), 0, "{document:#}");
            assert!(n >= minimum, "{document:#}");
            // What the kernel takes between the stamps of a veth and the link's own.
            assert!((p50 - link).abs() < 100_000, "{p50} ns for {link} ns");
            assert_eq!(number(&row["bound_ns"]), 0, "one kernel, one clock");
        }
    }
}

#[test]
fn packets_lost_on_a_link_are_lost_in_its_segment() {
    if !is_privileged("packets_lost_on_a_link_are_lost_in_its_segment") {
        return;
    }
    let lab = TwoSites::up("hops_lossy", "delay = \"1ms\"\na_to_b = { loss = \"10%\" }");
    let document = hops_document(&lab, || ping(&lab, "200"));
    let recorded = lab
        .delays(80)
        .map(|delays| i64::try_from(delays.len()).expect("few"));
    let forward = row(&document, "forward", "icmp");
    println!("arrived {}, lost {}", forward["n"], forward["lost"]);
    assert_eq!(number(&forward["n"]), recorded[0]);
    let lost = 200 - recorded[0];
    assert!(lost > 0, "10 % of 200");
    // Whether the last ones were lost or only late is not known when the capture ends.
    let undecided = lost - number(&forward["lost"]);
    assert!((0..=2).contains(&undecided), "{forward:#}");
    assert_eq!(number(&row(&document, "reverse", "icmp")["lost"]), 0);
}
