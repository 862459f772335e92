//! What was not seen again, by the reason why it cannot be told whether it was lost.

use std::fs;

use super::simulated::{Path, Simulated};
use super::{lines, run};
use crate::cut::unfinished_zstd;
use crate::neph::{Place, neph};

/// Bytes before the first packet of a capture.
const HEADER: usize = 24;

/// Where the packet that begins here ends.
fn next(capture: &[u8], at: usize) -> usize {
    let kept = capture[at + 8..at + 12].try_into().expect("four bytes");
    at + 16 + usize::try_from(u32::from_le_bytes(kept)).expect("short")
}

/// Others talk to the same server: host 9 in the place of host 1.
fn of_others(capture: &[u8]) -> Vec<u8> {
    let mut capture = capture.to_vec();
    let mut at = HEADER;
    while at < capture.len() {
        let end = next(&capture, at);
        for host in [at + 16 + 15, at + 16 + 19] {
            if capture[host] == 1 {
                capture[host] = 9;
            }
        }
        at = end;
    }
    capture
}

#[test]
fn a_packed_capture_that_was_cut_off_is_used_up_to_there() {
    let place = Place::empty();
    let (files, _) = Simulated::of(Path::PLAIN, 100, 5).write(&place, |_, at| at);
    let whole = run(&files, &["--clock", "same", "--format", "ndjson"]);
    let paths = files.iter().map(|file| file.rsplit('=').next());
    let paths: Vec<&str> = paths.map(|path| path.expect("a path")).collect();
    for file in &paths {
        let capture = fs::read(file).expect("a capture");
        fs::write(file, unfinished_zstd(&capture)).expect("a file");
    }
    let ran = run(&files, &["--clock", "same", "--format", "ndjson"]);
    assert_eq!((ran.status, &ran.out), (0, &whole.out), "{}", ran.err);
    let told = "is packed and cut off";
    assert_eq!(ran.err.matches(told).count(), files.len(), "{}", ran.err);
    let ran = neph(["clock", "--captures", paths[0], paths[1]]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(ran.err.matches(told).count(), 2, "{}", ran.err);
}

#[test]
fn packets_that_were_not_seen_again_are_told_apart_by_the_reason() {
    let path = Path {
        points: 3,
        ..Path::PLAIN
    };
    let place = Place::empty();
    let mut simulated = Simulated::of(path, 100, 21);
    let (files, _) = simulated.write(&place, |_, at| at);
    // Host 9 is at the first two points alone.
    for point in ["p0.pcap", "p1.pcap"] {
        let file = place.path(point);
        let mut capture = fs::read(&file).expect("a capture");
        let others = of_others(&capture);
        capture.extend(&others[HEADER..]);
        fs::write(&file, capture).expect("a file");
    }
    // The last point's capture is over half way.
    let file = place.path("p2.pcap");
    let capture = fs::read(&file).expect("a capture");
    let mut passed: Vec<i64> = simulated.truths.iter().filter_map(|of| of.at[2]).collect();
    passed.sort_unstable();
    let kept = passed.len() / 2;
    let end = (0..kept).fold(HEADER, |at, _| next(&capture, at));
    fs::write(&file, &capture[..end]).expect("a file");
    let ran = run(&files, &["--format", "ndjson", "--clock", "same"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let lines = lines(&ran);
    let told = &lines.last().expect("a summary")["end_unknown"];
    let there = || simulated.truths.iter().filter(|truth| !truth.is_back);
    let is_later = |at: Option<i64>| at.is_some_and(|at| at > passed[kept - 1]);
    let later = there().filter(|truth| is_later(truth.at[2])).count();
    assert!(later > 100, "{later}");
    assert_eq!(told["never_passed"], there().count(), "{told}");
    assert_eq!(told["not_captured"], later, "{told}");
    assert_eq!(told["clocks"], 0, "{told}");
    let lost = lines.iter().filter(|line| line["kind"] == "segment");
    assert!(lost.clone().count() > 0);
    assert!(lost.clone().all(|line| line["lost"] == 0));
    let text = run(&files, &["--clock", "same"]);
    for said in [
        format!("{} packets not seen again, of hosts", there().count()),
        format!("{later} packets not seen again, when the next point's"),
    ] {
        assert!(text.out.contains(&said), "{said}: {}", text.out);
    }
}

#[test]
fn a_file_that_cannot_be_used_is_refused_with_what_to_do() {
    let place = Place::empty();
    let (files, _) = Simulated::of(Path::PLAIN, 3, 5).write(&place, |_, at| at);
    let mut broken = fs::read(place.path("p0.pcap")).expect("a capture");
    let whole = broken.len();
    broken.extend([0xff; 16]);
    fs::write(place.path("broken.pcap"), broken).expect("a file");
    fs::write(place.path("text.pcap"), "hello, world").expect("a file");
    for (file, remedy) in [
        ("none.pcap", "give a capture's path".to_owned()),
        ("text.pcap", "as tcpdump -w writes them".to_owned()),
        ("broken.pcap", format!("head -c {whole}")),
    ] {
        let wrong = place.path(file).display().to_string();
        let ran = run(&[files[0].clone(), wrong], &[]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains(&remedy), "{}", ran.err);
    }
}
