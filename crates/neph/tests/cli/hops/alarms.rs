//! Alarms on segments: a segment that is slow for three seconds, by the stamps of its end.

use std::fs::File;

use serde_json::Value;

use super::simulated::{PathModel, SECOND, START, Simulation};
use super::{lines, run};
use crate::neph::{RunOutput, TestFolder, command};

/// Packets there each 2 ms for so many rounds of 6 ms; from 3 s to 6 s all there take 8 ms more.
fn captures(folder: &TestFolder, rounds: u32) -> Vec<String> {
    let slow = START + 3 * SECOND..START + 6 * SECOND;
    let clock = |point: usize, at: i64| {
        let is_slow = point == 1 && slow.contains(&at);
        at + if is_slow { 8_000_000 } else { 0 }
    };
    Simulation::of(PathModel::PLAIN, rounds, 7)
        .write(folder, clock)
        .0
}

#[test]
fn a_segment_that_is_slow_for_some_seconds_raises_an_alarm_and_ends_it() {
    let folder = TestFolder::empty();
    let files = captures(&folder, 2_000);
    let other = "p0 - p1 reverse > 6ms p99";
    for rule in [
        "segment > 6ms p99 for 1s",
        "p0 - p1 forward > 6ms p99 for 1s",
    ] {
        let arguments = ["--clock", "same", "--alarm", rule, "--alarm", other];
        let ran = run(&files, &[&arguments[..], &["--format", "ndjson"]].concat());
        assert_eq!(ran.status, 3, "{}", ran.err);
        let lines = lines(&ran);
        let alarms: Vec<&Value> = lines
            .iter()
            .filter(|line| line["kind"] == "alarm")
            .collect();
        let [raised, over] = alarms[..] else {
            panic!("{alarms:?}");
        };
        for (alarm, state, second) in [(raised, "raised", 4), (over, "over", 7)] {
            assert_eq!(alarm["state"], state);
            assert_eq!(alarm["rule"], rule);
            let segment_direction = (alarm["segment"].as_str(), alarm["direction"].as_str());
            assert_eq!(segment_direction, (Some("p0 - p1"), Some("forward")));
            assert_eq!(alarm["since_ns"], second * SECOND);
        }
        assert_eq!(lines.last().expect("a summary")["kind"], "summary");
        let alarm_lines = ran.err.lines().filter(|line| line.contains(rule));
        assert_eq!(alarm_lines.count(), 2, "{}", ran.err);
        let document = run(&files, &[&arguments[..], &["--format", "json"]].concat());
        let document: Value = serde_json::from_str(&document.out).expect("JSON");
        assert_eq!(document["alarms"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn alarms_are_reported_although_the_output_cannot_be_written() {
    let folder = TestFolder::empty();
    let files = captures(&folder, 2_000);
    let rule = "segment > 6ms p99 for 1s";
    let full = File::options().write(true).open("/dev/full");
    let mut command = command();
    command.arg("hops").args(&files);
    command.args(["--clock", "same", "--alarm", rule]);
    let output = command.stdout(full.expect("a full disk")).output();
    let ran = RunOutput::from(output.expect("neph runs"));
    assert_eq!(ran.status, 3, "{}", ran.err);
    assert_eq!(ran.err.matches(rule).count(), 2, "{}", ran.err);
    assert!(ran.err.contains("write the output: "), "{}", ran.err);
}

#[test]
fn short_captures_raise_no_alarm_and_unknown_segments_fail() {
    let folder = TestFolder::empty();
    let files = captures(&folder, 20);
    let alarm = |rule: &str| run(&files, &["--clock", "same", "--alarm", rule]);
    let well = alarm("segment > 1s p50");
    assert_eq!((well.status, well.err.as_str()), (0, ""));
    let few = alarm("p0 - p1 > 1ns p99");
    assert_eq!(few.status, 0, "{}", few.err);
    assert!(few.err.contains("no segment has 299 delays"), "{}", few.err);
    let wrong = alarm("p0 - p2 > 2ms p99");
    assert_eq!((wrong.status, wrong.out.as_str()), (2, ""));
    assert!(wrong.err.contains("--alarm:1:1"), "{}", wrong.err);
    assert!(
        wrong.err.contains("did you mean 'p0 - p1'?"),
        "{}",
        wrong.err
    );
    let lone = run(&files, &["--webhook", "http://127.0.0.1:9/"]);
    assert_eq!(lone.status, 2, "{}", lone.err);
}
