//! A capture and the same with other times: both directions, and nothing between but the clocks.

use std::fs;

use super::missing_packets::{HEADER, next_record};
use super::run;
use super::simulated::{PathModel, Simulation};
use crate::neph::{TestFolder, neph};

/// As editcap -t 3 makes it.
fn shift_by_three_seconds(capture: &[u8]) -> Vec<u8> {
    let mut capture = capture.to_vec();
    let mut at = HEADER;
    while at < capture.len() {
        let seconds = capture[at..at + 4].try_into().expect("four bytes");
        let later = u32::from_le_bytes(seconds) + 3;
        capture[at..at + 4].copy_from_slice(&later.to_le_bytes());
        at = next_record(&capture, at);
    }
    capture
}

#[test]
fn two_captures_of_one_point_report_their_clock_offset_only() {
    let folder = TestFolder::empty();
    let (files, _) = Simulation::of(PathModel::PLAIN, 100, 5).write(&folder, |_, at| at);
    let capture = fs::read(files[0].rsplit('=').next().expect("a path")).expect("a capture");
    let names = ["a.pcap", "later.pcap"].map(|name| folder.path(name).display().to_string());
    fs::write(&names[0], &capture).expect("a file");
    fs::write(&names[1], shift_by_three_seconds(&capture)).expect("a file");

    let ran = neph(["clock", "--captures", &names[0], &names[1]]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(
        ran.out.contains("\nclocks at the end +3.0000"),
        "{}",
        ran.out
    );
    let expected = "of both directions show only the clock offset between the captures";
    assert!(ran.err.contains(expected), "{}", ran.err);

    let ran = run(&names, &[]);
    assert_eq!(
        (ran.status, ran.err.as_str()),
        (1, ""),
        "no delay: {}",
        ran.out
    );
    assert!(ran.out.contains("minus that of a: +3.0000"), "{}", ran.out);
    let expected = "their hosts' packets show only the clock offset between two points";
    assert!(ran.out.contains(expected), "{}", ran.out);
    assert!(!ran.out.contains("one direction only"), "{}", ran.out);
}
