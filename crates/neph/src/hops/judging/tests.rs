//! What is judged while points record, and that it is what the whole captures say.

use std::fs;
use std::path::Path;

use clap::Parser;
use neph_sys::clock::{RawNanos, WallNanos};
use neph_wire::capture::{RAW_IP, pcap_header, pcap_record};

use super::*;
use crate::hops::alarms::Found;
use neph_capture::path::offsets::Offsets;
use neph_capture::path::passages::Passages;

const MILLI: i64 = 1_000_000;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(line: &str) -> Args {
    Line::try_parse_from(line.split(' ')).expect("options").args
}

/// Of a command line of live points.
fn judge(line: &str) -> (Judge, Left) {
    let args = args(line);
    let points = args.points.iter();
    let points = points.map(|text| {
        Point::parse(text, &neph_lab::namespace)
            .expect("a good one")
            .expect("a live one")
    });
    let points: Vec<Point> = points.collect();
    Judge::of(&args, &points, (&Stop::new(), &Stop::new())).expect("a good rule")
}

#[test]
fn segments_between_interfaces_here_are_judged_and_others_left() {
    let line = "neph a=iface:lo b=iface:lo c=ssh:host/eth0 --alarm";
    let rule = |subject: &str| format!("{line}={subject}>2ms\u{a0}p99");
    let (any, left) = judge(&rule("segment"));
    assert_eq!(
        (any.standings.len(), left.segments),
        (2, vec!["b - c".to_owned()])
    );
    let (one, left) = judge(&rule("a\u{a0}-\u{a0}b"));
    assert_eq!((one.standings.len(), left.segments.len()), (2, 0));
    assert_eq!(left.rules.len(), 0);
}

#[test]
fn a_limit_as_long_as_any_packet_is_waited_for_is_left_and_makes_none_wait() {
    let line = "neph a=iface:lo b=iface:lo c=ssh:host/eth0";
    let (short, left) = judge(&format!(
        "{line} --alarm=segment>2ms\u{a0}p99 --alarm=segment>10s\u{a0}p50 --alarm=b\u{a0}-\u{a0}c>20s\u{a0}p50"
    ));
    assert_eq!(left.rules, ["segment>10s\u{a0}p50"]);
    assert_eq!(left.segments, ["b - c"]);
    assert_eq!(short.standings.len(), 2);
    assert_eq!(short.longest, 1_004 * MILLI);
    let (long, left) = judge("neph a=iface:lo b=iface:lo --alarm=segment>9999ms\u{a0}p50");
    assert!(left.rules.is_empty());
    assert_eq!(long.longest, 10_000 * MILLI);
}

#[test]
fn behind_a_point_elsewhere_no_segment_has_the_first_points_clock_yet() {
    let line = "neph a=ssh:host/eth0 b=iface:lo c=iface:lo --alarm=segment>2ms\u{a0}p99";
    let (judge, left) = judge(line);
    assert!(judge.standings.is_empty());
    assert_eq!(left.segments, ["a - b", "b - c"]);
}

/// Datagrams one way each 100 ms from a second on, in a point that each of them passes so much later.
fn capture(path: &Path, later: impl Fn(u8) -> i64) {
    let mut bytes = pcap_header(RAW_IP, 64).to_vec();
    for number in 10..=250_u8 {
        let mut packet = vec![0x45, 0, 0, 28, 0, number, 0x40, 0, 64, 17, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9, 0, 8, 0, 0]);
        let at = i64::from(number) * 100 * MILLI + later(number);
        bytes.extend(pcap_record(at, 28, 28));
        bytes.extend(packet);
    }
    fs::write(path, bytes).expect("a file");
}

#[test]
fn a_window_of_slow_packets_raises_it_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let line =
        "neph a=iface:lo b=iface:lo --alarm=segment\u{a0}>\u{a0}2ms\u{a0}p50\u{a0}for\u{a0}1s";
    let (mut judge, _) = judge(line);
    let tails = [("a.pcap", 0), ("b.pcap", 5 * MILLI)].map(|(name, later)| {
        let path = folder.path().join(name);
        capture(&path, |_| later);
        Tail::of(path)
    });
    let mut tails = Vec::from(tails);
    let mut windows = Windows::begin(1_000 * MILLI, judge.longest);
    let mut alarmed = Vec::new();
    while let Some(window) = windows.next(9_000 * MILLI) {
        judge.look(&window, &mut tails).expect("captures");
        alarmed.push(judge.told.is_alarmed());
    }
    // Of the second after the first packet it is known when another one came: in the first window.
    assert_eq!(alarmed, [true; 3]);
    assert_eq!(judge.began, Some(1_000 * MILLI));
    assert_eq!(judge.told.found().len(), 1);
}

/// What the whole of these captures by one clock says.
fn whole(args: &Args, names: [&str; 3], paths: &[PathBuf]) -> Vec<Found> {
    let mut hops = Hops::at(names.len());
    for (point, path) in paths.iter().enumerate() {
        let mut tail = Tail::of(path.clone());
        let read = tail.read(&(0..i64::MAX), 0, |at, record| {
            let packet = dissect(record.link, record.bytes, record.length);
            hops.see(point, at, &packet.expect("a datagram"));
            ControlFlow::Continue(())
        });
        read.expect("a capture");
    }
    let names = names.map(str::to_owned);
    let rules = Rules::parse(&args.alarms, &names).expect("a good rule");
    let clocks = vec![Offsets::Same, Offsets::Same];
    let passages = Passages::of(names.into(), hops.end(&[true; 2]), clocks);
    rules.judge(&passages).found
}

/// Before they come to the second segment, packets take longer than is waited for.
#[test]
fn windows_say_what_the_whole_captures_say_of_a_segment_behind_one_that_is_too_slow() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "neph a=iface:lo b=iface:lo c=iface:lo \
                --alarm=b\u{a0}-\u{a0}c\u{a0}>\u{a0}2ms\u{a0}p50\u{a0}for\u{a0}1s";
    let (mut judge, _) = judge(line);
    let slow = 1_500 * MILLI;
    assert!(judge.longest < slow);
    let last = |number| {
        let is_slow = (80..=120).contains(&number) || (160..=200).contains(&number);
        slow + if is_slow { 5 * MILLI } else { MILLI }
    };
    let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
    capture(&paths[0], |_| 0);
    capture(&paths[1], |_| slow);
    capture(&paths[2], last);
    let mut tails: Vec<Tail> = paths.iter().cloned().map(Tail::of).collect();
    let mut windows = Windows::begin(1_000 * MILLI, judge.longest);
    while let Some(window) = windows.next(40_000 * MILLI) {
        judge.look(&window, &mut tails).expect("captures");
    }
    let told = |found: &[Found]| {
        let each = found.iter();
        each.map(|one| {
            let place = (&one.segment, one.way);
            format!("{place:?} {} {:?}", one.at.unix_nanos(), one.change)
        })
        .collect::<Vec<_>>()
    };
    let whole = whole(&args(line), ["a", "b", "c"], &paths);
    assert_eq!(whole.len(), 4, "raised twice, and over twice");
    assert_eq!(told(judge.told.found()), told(&whole));
}

#[test]
fn a_clock_that_runs_otherwise_is_not_set_and_one_that_jumps_is() {
    let at = |raw: i64, wall: i64| Pair {
        raw: RawNanos(raw * MILLI),
        wall: WallNanos(wall * MILLI),
        doubt: 0,
    };
    assert!(!is_set(at(0, 5_000), at(100, 5_110)));
    assert!(is_set(at(0, 5_000), at(100, 4_800)));
    assert!(is_set(at(0, 5_000), at(100, 9_000)));
}
