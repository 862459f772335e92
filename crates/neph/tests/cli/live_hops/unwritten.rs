//! Alarms of live points whose lines cannot be written.

use std::fs::File;
use std::io::{Read, pipe};
use std::process::Stdio;

use super::{Wire, hops};
use crate::neph::{Place, SOON, begin, eventually};

/// What `neph hops` says whose first alarm cannot be written to `out`, and its status.
fn cut_off(place: &Place, wire: &Wire, out: impl Into<Stdio>) -> (String, i32) {
    let [a, b] = &wire.names;
    let points = [format!("near=iface:near@{a}"), format!("far=iface:far@{b}")];
    let rule = "segment > 1ns p50 for 1s";
    let options = ["-w", "60s", "--format", "ndjson", "--alarm", rule];
    let arguments = [&points.each_ref().map(String::as_str)[..], &options].concat();
    let mut command = hops(place, "exit 1", &arguments);
    let (mut child, mut said, line) = begin(command.stdout(out));
    // This process holds the output no longer.
    drop(command);
    assert!(line.starts_with("neph hops: recording "), "{line}");
    eventually("it ends at its first alarm", SOON, || {
        wire.exchange(5);
        child.try_wait().expect("a child").is_some()
    });
    let mut text = String::new();
    said.read_to_string(&mut text).expect("text");
    let status = child.wait().expect("it ended").code();
    (text, status.expect("it was not killed"))
}

#[test]
fn a_full_disk_ends_the_recording_with_a_sentence_and_its_captures_stay() {
    let Some(wire) = Wire::up("full") else {
        return;
    };
    let place = Place::empty();
    let full = File::options().write(true).open("/dev/full");
    let (text, status) = cut_off(&place, &wire, full.expect("a full disk"));
    assert_eq!(status, 3, "{text}");
    let sentence =
        "neph hops: write the output: No space left on device (os error 28); the recording ends";
    assert_eq!(text.matches(sentence).count(), 1, "{text}");
    assert_eq!(text.matches("write the output").count(), 1, "{text}");
    assert!(text.contains("ALARM: segment > 1ns p50 for 1s"), "{text}");
    let (_, again) = text.split_once("the captures stay: neph ").expect(&text);
    let ran = place.neph(again.lines().next().expect("a command").split(' '));
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
}

#[test]
fn a_reader_that_went_away_ends_the_recording_without_a_word_about_it() {
    let Some(wire) = Wire::up("gone") else {
        return;
    };
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    let (text, status) = cut_off(&Place::empty(), &wire, writer);
    assert_eq!(status, 3, "{text}");
    assert!(text.contains("ALARM: segment > 1ns p50 for 1s"), "{text}");
    assert!(!text.contains("write the output"), "{text}");
    assert!(!text.contains("roken pipe"), "{text}");
}
