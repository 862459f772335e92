//! Segments that no packet passed whole, and points in another order than packets pass them.

use serde_json::Value;

use super::simulated::{Path, SECOND, Simulated};
use super::{run, shows};
use crate::neph::Place;

/// Whom the first point calls otherwise, as no rule says.
const TRANSLATED: Path = Path {
    points: 3,
    nat: true,
    ..Path::PLAIN
};

#[test]
fn a_segment_that_no_packet_passed_leaves_the_others_told() {
    let place = Place::empty();
    let mut files = Vec::new();
    for (clock, ahead) in [(&["--clock", "same"][..], 0), (&[], 3 * SECOND)] {
        let shows = |point, at| if point == 2 { at + ahead } else { at };
        (files, _) = Simulated::of(TRANSLATED, 100, 5).write(&place, shows);
        let ran = run(&files, &[clock, &["--format", "json"]].concat());
        assert_eq!(ran.status, 0, "{}", ran.err);
        let told = "neph hops: p0 - p1 is not told: no packet of p0 is in p1; ";
        assert!(ran.err.starts_with(told), "{}", ran.err);
        assert!(ran.err.contains("(--nat 'p0:OUTER=INNER'"), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        let document: Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(document["summary"]["unmet"], serde_json::json!(["p0 - p1"]));
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
        let told = "No packet of p0 is in p1: nothing is told of p0 - p1.";
        assert!(text.contains(told), "{text}");
        assert!(!text.contains("Clocks of p0 and p1"), "{text}");
    }
    // With the rule all is told.
    let ran = run(&files, &["--nat", "p0:192.0.2.77=192.0.2.2"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    assert!(!ran.out.contains("nothing is told of"), "{}", ran.out);
}
