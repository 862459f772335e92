//! `neph flows` over a link with four paths and known reshuffles, compared with what the link
//! recorded: path changes, classes, shares, inflation, unfairness.

#![expect(
    clippy::print_stdout,
    reason = "a test tells what it measured and what it skipped"
)]

use std::collections::BTreeMap;
use std::path::Path;

use neph_lab::{FlowKey, FlowTruth};
use neph_model::Span;
use neph_sys::process;
use serde_json::Value;

use crate::setup::{PORT, TwoSites, is_privileged};

const FLOWS: u64 = 192;
const INTERVAL: i64 = 200_000_000;
const SECONDS: i64 = 50;
/// How exactly a change is dated while the machine is in time; in the median it is one message. While the
/// machine itself is late, nothing is reported of paths, and a change in that time is dated when it is
/// over: a few are dated later than this.
const DATING_TOLERANCE: i64 = 10 * INTERVAL;
/// How long the link leaves flows on their paths: by then the next change is there.
const MAX_DATING_DELAY: i64 = 12_000_000_000 - DATING_TOLERANCE;
/// Messages that a path must have before and after a change for it to be expected.
const MIN_PATH_MESSAGES: u64 = 4;

/// Four forward paths and one reverse path: round trips in microseconds.
const PATHS: [i64; 4] = [20_000, 22_000, 24_500, 28_000];
const LINK: &str = "
delay = \"10ms\"
[[link.path]]
name = \"first\"
weight = 35
[[link.path]]
name = \"second\"
weight = 28
a_to_b = { delay = \"12ms\" }
[[link.path]]
name = \"third\"
weight = 22
a_to_b = { delay = \"14.5ms\" }
[[link.path]]
name = \"fourth\"
weight = 15
a_to_b = { delay = \"18ms\" }
[[link.schedule]]
at = \"11s\"
every = \"12s\"
reshuffle = true
";

/// The forward packets of each source port, as the link recorded them.
fn by_port(flows: &BTreeMap<FlowKey, FlowTruth>) -> BTreeMap<u16, &FlowTruth> {
    let keys = flows.iter().filter(|(key, _)| {
        key.direction == 0 && key.protocol == 17 && key.destination_port == PORT
    });
    keys.map(|(key, truth)| (key.source_port, truth)).collect()
}

/// A change that the link made: port, moment, from and to which path.
#[derive(Debug)]
struct LinkChange {
    port: u16,
    at: i64,
    paths: (u8, u8),
    /// Whether it can be expected: the flow sent enough before and after.
    is_expected: bool,
}

fn changes_made(truth: &BTreeMap<u16, &FlowTruth>) -> Vec<LinkChange> {
    let of_flow = |(port, flow): (&u16, &&FlowTruth)| {
        let changes: Vec<LinkChange> = flow
            .segments
            .windows(2)
            .map(|pair| LinkChange {
                port: *port,
                at: pair[1].first_arrival,
                paths: (pair[0].path, pair[1].path),
                is_expected: pair[0].packets >= MIN_PATH_MESSAGES
                    && pair[1].packets >= MIN_PATH_MESSAGES,
            })
            .collect();
        changes
    };
    truth.iter().flat_map(of_flow).collect()
}

fn is_near_path(nanos: &Value, path: u8) -> bool {
    let expected = PATHS[usize::from(path)] * 1000;
    // What hosts and the link's own lateness add, and what is taken away as common to all flows
    // while everything is late; paths are 2 ms apart.
    (-400_000..400_000).contains(&(nanos.as_i64().expect("nanoseconds") - expected))
}

/// Whether it is this change, dated at most `late` nanoseconds after it and [`DATING_TOLERANCE`] before.
fn is_found(change: &Value, true_change: &LinkChange, late: i64) -> bool {
    let at = change["at_unix_ns"].as_i64().expect("a moment");
    change["source_port"] == true_change.port
        && (true_change.at - DATING_TOLERANCE..=true_change.at + late).contains(&at)
        && is_near_path(&change["before_ns"], true_change.paths.0)
        && is_near_path(&change["after_ns"], true_change.paths.1)
}

/// How many of those that can be expected were found, dated at most `late` nanoseconds after them.
fn count_found(changes: &[Value], link_changes: &[&LinkChange], late: i64) -> usize {
    let is_reported = |true_change: &&&LinkChange| {
        changes
            .iter()
            .any(|change| is_found(change, true_change, late))
    };
    link_changes.iter().filter(is_reported).count()
}

/// Whether the link made it at all: this flow was on that path by then, and on the one that is said to
/// be the one before at some time before. What the machine itself adds may hide a change for longer than
/// [`DATING_TOLERANCE`], or until the next one: few are, since nearly all must be reported exactly.
fn was_made_by_the_link(change: &Value, true_changes: &[LinkChange]) -> bool {
    let at = change["at_unix_ns"].as_i64().expect("a moment");
    let of_flow = true_changes
        .iter()
        .filter(|true_change| change["source_port"] == true_change.port);
    let earlier_changes: Vec<&LinkChange> = of_flow
        .filter(|true_change| true_change.at <= at + DATING_TOLERANCE)
        .collect();
    earlier_changes
        .iter()
        .rposition(|true_change| is_near_path(&change["after_ns"], true_change.paths.1))
        .is_some_and(|last| {
            let is_ambiguous = earlier_changes
                .get(last + 1)
                .is_some_and(|next| next.at + DATING_TOLERANCE < at);
            let mut before = earlier_changes[..=last].iter();
            !is_ambiguous
                && before.any(|true_change| is_near_path(&change["before_ns"], true_change.paths.0))
        })
}

fn measure(lab: &TwoSites, workspace: &Path) -> Value {
    let seconds = format!("{SECONDS}s");
    let output = process::command(env!("CARGO_BIN_EXE_neph"))
        .args(["flows", &format!("udp://10.79.0.2:{PORT}"), "--site"])
        .arg(lab.namespace("client"))
        .args(["-n", &FLOWS.to_string(), "-i", "200ms", "-w", &seconds])
        .args(["--advise", "--format", "json", "--save", "flows"])
        .env("NEPH_WORKSPACE", workspace)
        .output()
        .expect("neph runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// Measured once more where neph itself says that its sender was late, three times at most: of levels
/// that are 2 ms apart it promises nothing then. Beside two builders that was so in 4 runs of 9, and
/// changes were reported wrongly in 2 of these, in none of the others.
fn measure_without_late_sender() -> (tempfile::TempDir, Value, BTreeMap<FlowKey, FlowTruth>) {
    let mut attempts = 1;
    loop {
        let workspace = tempfile::tempdir().expect("a folder");
        let lab = TwoSites::up("flows", LINK);
        let reflector = lab.reflector(Span::ZERO);
        lab.cue();
        let result = measure(&lab, workspace.path());
        drop(reflector);
        let flows = lab.flows();
        let warnings = result["warnings"].as_array().expect("warnings");
        match warnings
            .iter()
            .find(|warning| warning["warning"] == "sender_late")
        {
            Some(late) if attempts < 3 => println!("measured once more: {late}"),
            _ => return (workspace, result, flows),
        }
        attempts += 1;
    }
}

/// The changes that a detector finds in the kept messages.
fn detected(workspace: &Path, detector: &str) -> Vec<Value> {
    let output = process::command(env!("CARGO_BIN_EXE_neph"))
        .args(["export", "flows", "--changes", detector])
        .args(["--format", "jsonl", "--output", "-"])
        .env("NEPH_WORKSPACE", workspace)
        .output()
        .expect("neph runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(serde_json::from_str);
    lines.map(|line| line.expect("a JSON object")).collect()
}

#[test]
fn changes_classes_and_unfairness_match_the_record_of_the_link() {
    if !is_privileged("changes_classes_and_unfairness_match_the_record_of_the_link") {
        return;
    }
    let (workspace, document, flows) = measure_without_late_sender();
    let truth = by_port(&flows);
    assert_eq!(truth.len() as u64, FLOWS);
    let true_changes = changes_made(&truth);
    assert_changes_match_the_link(&document, &true_changes);
    assert_stored_messages_give_the_same_changes(&document, workspace.path(), &true_changes);
    assert_classes_match_the_link(&document["pairs"][0], &truth);
    assert_unfairness_matches_the_link(&document["pairs"][0], &truth);
    assert_eq!(
        document["pairs"][0]["advice"]["given"], true,
        "{}",
        document["pairs"][0]["advice"]
    );
}

/// Precision 1; at least 99 of 100 found before the link's next change, 95 of 100 dated exactly.
fn assert_changes_match_the_link(document: &Value, true_changes: &[LinkChange]) {
    let changes = document["changes"].as_array().expect("changes");
    let mut forward = 0;
    let mut wrong = Vec::new();
    for change in changes {
        if !was_made_by_the_link(change, true_changes) {
            let port = &change["source_port"];
            let own_changes: Vec<String> = true_changes
                .iter()
                .filter(|true_change| *port == true_change.port)
                .map(|true_change| format!("{} {:?}", true_change.at, true_change.paths))
                .collect();
            wrong.push(format!("{change}\n the link: {own_changes:?}"));
        }
        forward += u64::from(change["evidence"]["direction"] == "forward");
    }
    assert!(
        wrong.is_empty(),
        "{} changes that the link did not make:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // While everything is late, the direction cannot be detected.
    let total = changes.len() as u64;
    assert!(forward * 100 >= total * 95, "{forward} of {total} there");
    let link_changes: Vec<&LinkChange> = true_changes
        .iter()
        .filter(|true_change| true_change.is_expected)
        .collect();
    let reported = count_found(changes, &link_changes, MAX_DATING_DELAY);
    let dated = count_found(changes, &link_changes, DATING_TOLERANCE);
    let total = link_changes.len();
    println!(
        "{} changes reported; of {total} asked for, {reported} found, {dated} dated exactly",
        changes.len()
    );
    assert!(total > 300, "the link reshuffled: {total}");
    assert!(reported * 100 >= total * 99, "{reported} of {total} found");
    assert!(
        dated * 100 >= total * 95,
        "{dated} of {total} dated exactly"
    );
}

/// The guard finds in the stored messages what it reported live; the others find most of it.
fn assert_stored_messages_give_the_same_changes(
    document: &Value,
    workspace: &Path,
    true_changes: &[LinkChange],
) {
    let sorted = |changes: &[Value]| {
        let keys = ["source_port", "before_ns", "after_ns"];
        let values_of = |change: &Value| keys.map(|key| change[key].as_i64().expect("a number"));
        let mut entries: Vec<[i64; 3]> = changes.iter().map(values_of).collect();
        entries.sort_unstable();
        entries
    };
    let link_changes = true_changes
        .iter()
        .filter(|true_change| true_change.is_expected);
    let link_changes: Vec<&LinkChange> = link_changes.collect();
    for detector in ["guard", "rule", "change-points"] {
        let changes = detected(workspace, detector);
        if detector == "guard" {
            let live = document["changes"].as_array().expect("changes");
            assert_eq!(sorted(&changes), sorted(live));
        }
        let found_count = count_found(&changes, &link_changes, DATING_TOLERANCE);
        println!(
            "{detector}: {} found, {found_count} of {}",
            changes.len(),
            link_changes.len()
        );
        assert!(
            found_count * 10 >= link_changes.len() * 9,
            "{detector}: {found_count}"
        );
    }
}

/// As many classes as paths, each with its share of the flows' time.
fn assert_classes_match_the_link(pair: &Value, truth: &BTreeMap<u16, &FlowTruth>) {
    let classes = pair["classes"].as_array().expect("classes");
    assert_eq!(classes.len(), PATHS.len(), "{classes:?}");
    let mut packets = [0_u64; PATHS.len()];
    for segment in truth.values().flat_map(|flow| &flow.segments) {
        packets[usize::from(segment.path)] += segment.packets;
    }
    let total: u64 = packets.iter().sum();
    for ((path, packets), class) in (0..).zip(packets).zip(classes) {
        assert!(is_near_path(&class["base_ns"], path), "{class}");
        let share = real(packets) / real(total);
        let reported = class["share_of_time"].as_f64().expect("a share");
        println!("class {path}: {reported:.4} of time, the link {share:.4}");
        assert!(
            (reported - share).abs() < 0.01,
            "{path}: {reported} and {share}"
        );
    }
    let ratio = pair["inflation"]["ratio"].as_f64().expect("a ratio");
    let expected = 28.0 / 20.0;
    assert!(
        (ratio / expected - 1.0).abs() < 0.01,
        "{ratio} and {expected}"
    );
}

/// Quantiles over flows, bin by bin, of each flow's median round trip.
fn assert_unfairness_matches_the_link(pair: &Value, truth: &BTreeMap<u16, &FlowTruth>) {
    let bins = pair["bins"].as_array().expect("bins");
    let width = pair["bin_ns"].as_i64().expect("a width");
    for bin in bins {
        let from = bin["from_unix_ns"].as_i64().expect("a moment");
        let mut medians: Vec<f64> = truth
            .values()
            .filter_map(|flow| median_in(flow, (from, from + width)))
            .collect();
        medians.sort_by(f64::total_cmp);
        assert_eq!(bin["flows"], medians.len());
        for (name, p) in [("p50_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99)] {
            let sorted = neph_stats::Sorted::check(&medians).expect("sorted");
            let expected = neph_stats::rough_quantile(sorted, p).expect("flows");
            let reported = bin["latency"][name].as_f64().expect("nanoseconds");
            println!("bin {from} {name}: {reported:.0}, the link {expected:.0}");
            assert!(
                (reported / expected - 1.0).abs() < 0.01,
                "{name}: {reported} and {expected}"
            );
        }
    }
}

/// The median of the flow's round trips in a bin, had hosts and link taken no time of their own.
fn median_in(flow: &FlowTruth, (from, until): (i64, i64)) -> Option<f64> {
    let mut round_trips: Vec<i64> = Vec::new();
    for segment in &flow.segments {
        let mut at = segment.first_arrival;
        while at <= segment.last_arrival {
            if (from..until).contains(&at) {
                round_trips.push(PATHS[usize::from(segment.path)] * 1000);
            }
            at += INTERVAL;
        }
    }
    round_trips.sort_unstable();
    let (low, high) = (
        round_trips.get((round_trips.len().max(1) - 1) / 2)?,
        round_trips.get(round_trips.len() / 2)?,
    );
    #[expect(clippy::cast_precision_loss, reason = "a test's statistics")]
    let median = low.midpoint(*high) as f64;
    Some(median)
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn real(count: u64) -> f64 {
    count as f64
}
