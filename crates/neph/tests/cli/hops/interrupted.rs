//! Ctrl-C while captures are read: what was read is reported, or it is said that nothing can be.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::process::Stdio;

use neph_sys::process;
use serde_json::Value;

use super::last_clock_shifted;
use super::simulated::{PathModel, Simulation};
use crate::neph::{RunOutput, TestFolder, command, send_signal};

/// Captures of three points, of which one comes out of a pipe and stops in the middle; then ctrl-C.
fn interrupted_at(point: usize) -> RunOutput {
    let folder = TestFolder::empty();
    let path = PathModel {
        points: 3,
        ..PathModel::PLAIN
    };
    let (files, _) = Simulation::of(path, 1_000, 21).write(&folder, last_clock_shifted(3));
    let (_, file) = files[point].split_once('=').expect("NAME=FILE");
    let capture = fs::read(file).expect("a capture");
    fs::remove_file(file).expect("ours");
    let made = process::command("mkfifo").arg(file).status();
    assert!(made.expect("mkfifo runs").success());
    let mut child = command()
        .args(["hops", "--format", "ndjson", "--packets"])
        .args(&files)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("neph runs");
    // Opens once neph reads it; behind it more waits than a pipe holds, so that some was read.
    let mut pipe = OpenOptions::new().write(true).open(file).expect("a pipe");
    let (half, rest) = capture.split_at(capture.len() / 2);
    assert!(half.len() > 200_000, "more than a pipe holds");
    let mut out = child.stdout.take().expect("piped");
    let stdout = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).expect("text");
        text
    });
    pipe.write_all(half).expect("neph reads");
    send_signal("INT", child.id());
    // It looks at the flag with each packet, and goes.
    let _ = pipe.write_all(rest);
    drop(pipe);
    let ran = RunOutput::from(child.wait_with_output().expect("it ends"));
    RunOutput {
        out: stdout.join().expect("it has read"),
        ..ran
    }
}

#[test]
fn ctrl_c_in_a_later_capture_reports_only_the_data_read() {
    for (point, left_out) in [(1, "; 1 point behind it left out"), (2, "")] {
        let ran = interrupted_at(point);
        assert_eq!(ran.status, 130, "{}", ran.err);
        let printed = format!(
            "neph hops: interrupted while reading p{point}: the result covers what was read{left_out}\n"
        );
        assert_eq!(ran.err, printed);
        let lines: Vec<Value> = (ran.out.lines())
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let summary = lines.last().expect("a summary");
        assert_eq!(summary["kind"], "summary");
        let points = summary["points"].as_array().expect("points");
        assert_eq!(points.len(), point + 1, "{summary}");
        let read = points[point]["packets"].as_u64().expect("a count");
        assert!(read > 0 && read < 6_000, "of 6,000 packets: {read}");
        let of = |kind: &'static str| lines.iter().filter(move |line| line["kind"] == kind);
        assert!(of("packet").any(|line| !line["segments"][point - 1].is_null()));
        assert!(of("segment").count() > 0);
        assert!(of("segment").all(|line| line["lost"] == 0));
    }
}

#[test]
fn ctrl_c_in_the_first_capture_reports_that_there_is_no_result() {
    let ran = interrupted_at(0);
    assert_eq!(ran.status, 130, "{}", ran.err);
    assert_eq!(
        ran.err,
        "neph: interrupted while reading p0: no other point was read yet to compare it with\n"
    );
    assert_eq!(ran.out, "");
}
