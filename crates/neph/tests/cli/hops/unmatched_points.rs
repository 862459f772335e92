//! Segments that no packet passed whole, and points in another order than packets pass them.

use serde_json::Value;

use super::simulated::{PathModel, SECOND, Simulation};
use super::{last_clock_shifted, run};
use crate::neph::TestFolder;

/// Whom the first point calls otherwise, as no rule says.
const TRANSLATED: PathModel = PathModel {
    points: 3,
    nat: true,
    ..PathModel::PLAIN
};

#[test]
fn a_segment_without_packets_does_not_hide_the_others() {
    let folder = TestFolder::empty();
    let mut files = Vec::new();
    for (clock, clock_offset) in [(&["--clock", "same"][..], 0), (&[], 3 * SECOND)] {
        let clocks = |point, at| if point == 2 { at + clock_offset } else { at };
        (files, _) = Simulation::of(TRANSLATED, 100, 5).write(&folder, clocks);
        let ran = run(&files, &[clock, &["--format", "json"]].concat());
        assert_eq!(ran.status, 0, "{}", ran.err);
        let expected = "neph hops: p0 - p1 has no result: no packet of p0 is in p1; ";
        assert!(ran.err.starts_with(expected), "{}", ran.err);
        let rule = "(--nat 'p0:OUTER=INNER', where p0 sees OUTER what the others call INNER)";
        assert!(ran.err.contains(rule), "{}", ran.err);
        // The rule can be seen; a datagram with the number 0 is not known by it.
        let rule =
            "; 599 packets are there with other addresses, as by --nat 'p0:192.0.2.77=192.0.2.2'\n";
        assert!(ran.err.ends_with(rule), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        let document: Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(
            document["summary"]["segments_without_packets"],
            serde_json::json!(["p0 - p1"])
        );
        let segments = document["segments"].as_array().expect("a list");
        assert_eq!(segments.len(), 6, "both ways of three protocols");
        for line in segments {
            assert_eq!(
                (&line["segment"], &line["n"]),
                (&"p1 - p2".into(), &100.into())
            );
            assert!(line["p50_ns"].as_i64() > Some(0), "{line}");
        }
        let text = run(&files, clock).out;
        let expected = "No packet of p0 is in p1: p0 - p1 has no result.";
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("p0 and p1 have the same clock"), "{text}");
    }
    // With the rule all is told.
    let ran = run(&files, &["--nat", "p0:192.0.2.77=192.0.2.2"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    assert!(!ran.out.contains("has no result"), "{}", ran.out);
}

#[test]
fn a_nat_before_the_last_point_is_reported_as_its_rule() {
    let folder = TestFolder::empty();
    let (mut files, _) = Simulation::of(TRANSLATED, 100, 5).write(&folder, |_, at| at);
    files.reverse();
    let clock = ["--clock", "same"];
    let ran = run(&files, &clock);
    let rule = "(--nat 'p0:OUTER=INNER', where p0 sees OUTER what the others call INNER)";
    assert!(ran.err.contains(rule), "{}", ran.err);
    let ran = run(
        &files,
        &["--clock", "same", "--nat", "p0:192.0.2.77=192.0.2.2"],
    );
    assert!(!ran.out.contains("has no result"), "{}", ran.out);
}

#[test]
fn the_path_order_of_misordered_points_is_reported() {
    let folder = TestFolder::empty();
    let path = PathModel {
        points: 4,
        ..PathModel::PLAIN
    };
    for (is_same_clock, clock) in [(true, &["--clock", "same"][..]), (false, &[])] {
        let clocks = |point, at| {
            if is_same_clock {
                at
            } else {
                last_clock_shifted(4)(point, at)
            }
        };
        let (files, _) = Simulation::of(path, 100, 7).write(&folder, clocks);
        let order_of = |order: &[usize]| {
            let files: Vec<String> = order.iter().map(|point| files[*point].clone()).collect();
            let ran = run(&files, &[clock, &["--format", "ndjson"]].concat());
            let suggestion = ran.err.split_once("pass these points in the order ");
            let order = suggestion.and_then(|(_, order)| order.split_once(", or in reverse"));
            order.map(|(order, _)| order.to_owned())
        };
        assert_eq!(order_of(&[0, 1, 2, 3]), None);
        assert_eq!(
            order_of(&[3, 2, 1, 0]),
            None,
            "in order, from the other end"
        );
        assert_eq!(order_of(&[0, 3]), None);
        assert_eq!(order_of(&[0, 2, 1, 3]).as_deref(), Some("p0, p1, p2, p3"));
        assert_eq!(order_of(&[3, 1, 2, 0]).as_deref(), Some("p3, p2, p1, p0"));
        assert_eq!(order_of(&[0, 3, 2]).as_deref(), Some("p0, p2, p3"));
    }
    let (files, _) = Simulation::of(path, 100, 7).write(&folder, last_clock_shifted(4));
    let order = [files[0].clone(), files[3].clone(), files[1].clone()];
    let ran = run(&order, &["--format", "ndjson"]);
    let summary = ran.out.lines().last().expect("a summary");
    let summary: Value = serde_json::from_str(summary).expect("JSON");
    assert_eq!(summary["order"], serde_json::json!(["p0", "p1", "p3"]));
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    // Whoever reads the summary alone has to see it too.
    let doubt = "packets pass these points in the order p0, p1, p3, or in reverse: give them in this order; the results below are not usable";
    assert_eq!(ran.err, format!("neph hops: {doubt}\n"));
    assert_eq!(summary["warnings"], serde_json::json!([doubt]));
    let text = run(&order, &[]).out;
    assert!(text.contains(&format!("\nIn doubt: {doubt}.\n")), "{text}");
}

#[test]
fn points_given_from_the_server_side_are_reported_in_reverse() {
    let folder = TestFolder::empty();
    let path = PathModel {
        points: 3,
        ..PathModel::PLAIN
    };
    for (is_same_clock, clock) in [(true, &["--clock", "same"][..]), (false, &[])] {
        let clocks = |point, at| {
            if is_same_clock {
                at
            } else {
                last_clock_shifted(3)(point, at)
            }
        };
        let (files, _) = Simulation::of(path, 100, 7).write(&folder, clocks);
        for order in [&[2, 1, 0][..], &[2, 0]] {
            let given: Vec<String> = order.iter().map(|point| files[*point].clone()).collect();
            let ran = run(&given, &[clock, &["--format", "ndjson"]].concat());
            let summary = ran.out.lines().last().expect("a summary");
            let summary: Value = serde_json::from_str(summary).expect("JSON");
            let names: Vec<String> = order.iter().rev().map(|at| format!("p{at}")).collect();
            assert_eq!(summary["order"], serde_json::json!(names), "{}", ran.err);
            let doubt = format!(
                "nearly all flows are started from the end of p0: give the points from there ({}); a round \
                 trip here is the time from an answer to the next question",
                names.join(", ")
            );
            assert_eq!(
                summary["warnings"],
                serde_json::json!([doubt]),
                "{}",
                ran.err
            );
            assert!(ran.err.contains(&doubt), "{}", ran.err);
        }
        let ran = run(&files, &[clock, &["--format", "ndjson"]].concat());
        assert!(!ran.err.contains("started from"), "{}", ran.err);
    }
}
