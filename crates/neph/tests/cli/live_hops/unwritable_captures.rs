//! Live points whose captures, or whose alarms' lines, cannot be written.

use std::fs::{self, File};
use std::io::{Read, pipe};
use std::process::{Command, Stdio};

use neph_sys::process;

use super::{HEADER, Wire, datagrams, hops_command, start_recording};
use crate::neph::{TIMEOUT, TestFolder, eventually, start_and_read_line};

/// What `neph hops` says whose first alarm cannot be written to `out`, and its status.
fn cut_off(folder: &TestFolder, wire: &Wire, out: impl Into<Stdio>) -> (String, i32) {
    let points = wire.ends();
    let rule = "segment > 1ns p50 for 1s";
    let options = ["-w", "60s", "--format", "ndjson", "--alarm", rule];
    let arguments = [&points.each_ref().map(String::as_str)[..], &options].concat();
    let mut command = hops_command(folder, "exit 1", &arguments);
    let (mut child, mut printed, line) = start_and_read_line(command.stdout(out));
    // This process holds the output no longer.
    drop(command);
    assert!(line.starts_with("neph hops: recording "), "{line}");
    eventually("it ends at its first alarm", TIMEOUT, || {
        wire.exchange(5);
        child.try_wait().expect("a child").is_some()
    });
    let mut text = String::new();
    printed.read_to_string(&mut text).expect("text");
    let status = child.wait().expect("it ended").code();
    (text, status.expect("it was not killed"))
}

#[test]
fn a_full_disk_ends_the_recording_with_a_sentence_and_its_captures_stay() {
    let Some(wire) = Wire::up("full") else {
        return;
    };
    let folder = TestFolder::empty();
    let full = File::options().write(true).open("/dev/full");
    let (text, status) = cut_off(&folder, &wire, full.expect("a full disk"));
    assert_eq!(status, 3, "{text}");
    let sentence =
        "neph hops: write the output: No space left on device (os error 28); the recording ends";
    assert_eq!(text.matches(sentence).count(), 1, "{text}");
    assert_eq!(text.matches("write the output").count(), 1, "{text}");
    assert!(text.contains("ALARM: segment > 1ns p50 for 1s"), "{text}");
    let (_, second) = text.split_once("the captures stay: neph ").expect(&text);
    let ran = folder.neph(second.lines().next().expect("a command").split(' '));
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
}

#[test]
fn a_reader_that_went_away_ends_the_recording_without_a_word_about_it() {
    let Some(wire) = Wire::up("gone") else {
        return;
    };
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    let (text, status) = cut_off(&TestFolder::empty(), &wire, writer);
    assert_eq!(status, 3, "{text}");
    assert!(text.contains("ALARM: segment > 1ns p50 for 1s"), "{text}");
    assert!(!text.contains("write the output"), "{text}");
    assert!(!text.contains("roken pipe"), "{text}");
}

/// The same, where no file may be longer than 1,024 bytes.
fn with_short_files(command: &Command) -> Command {
    let mut limited = process::command("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    limited
}

#[test]
fn a_capture_without_disk_space_is_reported_with_its_remedy() {
    let Some(wire) = Wire::up("room") else {
        return;
    };
    let test_folder = TestFolder::empty();
    let points = wire.ends();
    let points = points.each_ref().map(String::as_str);
    let proto = ["--proto", "udp"];
    for (save, folder, other) in [
        (&[][..], test_folder.path(""), "TMPDIR, or --save FOLDER"),
        (&["--save", "kept"], "kept".into(), "--save"),
    ] {
        let command = hops_command(&test_folder, "exit 1", &[&points, save, &proto].concat());
        let (mut child, mut printed) = start_recording(with_short_files(&command));
        wire.exchange(5);
        let path = test_folder.path(&format!("neph-hops-{}-0", child.id()));
        let captures = if save.is_empty() {
            path
        } else {
            test_folder.path("kept")
        };
        eventually("the first packets are written", TIMEOUT, || {
            let written = |point| fs::metadata(captures.join(point));
            let files = ["near.pcap", "far.pcap"].map(written);
            files
                .iter()
                .all(|file| file.as_ref().is_ok_and(|file| file.len() > HEADER))
        });
        wire.exchange(100);
        let status = child.wait().expect("it ends").code();
        let mut text = String::new();
        printed.read_to_string(&mut text).expect("text");
        assert_eq!(status, Some(1), "{text}");
        let near_end = text
            .lines()
            .find_map(|line| line.strip_prefix("neph hops: near: "));
        let (packets, lost) = near_end.expect(&text).split_once(", ").expect(&text);
        assert!(!lost.starts_with('0'), "{text}");
        let (packets, _) = packets.split_once(" packets").expect(&text);
        if !save.is_empty() {
            assert_eq!(
                packets,
                datagrams(&test_folder, "kept", "near").to_string(),
                "{text}"
            );
        }
        let sentence = format!(
            "near: write in {}: File too large (os error 27); its capture ended with {packets} packets: \
             make room there, name another folder ({other}), or keep less of each packet (--snaplen)",
            folder.display()
        );
        assert!(text.contains(&sentence), "{sentence}: {text}");
    }
}
