//! Tests that the evaluation during a recording has the result of the whole captures.

use std::fs;
use std::path::{Path, PathBuf};

use neph_capture::path::alarms::subjects;
use neph_capture::path::offsets::Offsets;
use neph_capture::path::passages::Passages;
use neph_model::alarm::{Quantile, Rule};
use neph_model::{ClockReading, PacketSample};
use neph_sys::clock::{RawNanos, WallNanos};
use neph_wire::capture::{RAW_IP, pcap_header, pcap_record};

use super::*;

const MILLI: i64 = 1_000_000;

/// Stores what it receives.
#[derive(Debug, Default)]
struct Received(Vec<SegmentChange>, Vec<(Direction, i64)>);

impl AlarmListener for Received {
    fn hear(&mut self, found: SegmentChange) {
        self.0.push(found);
    }

    fn crossed(&mut self, _: &str, direction: Direction, delay: i64) {
        self.1.push((direction, delay));
    }
}

/// A limit of a subject's median over a second, in milliseconds.
struct Median(&'static str, i64);

/// These rules for segments of these points.
fn rules(points: &[&str], medians: &[Median]) -> Rules {
    let points: Vec<String> = points.iter().map(ToString::to_string).collect();
    let subjects = subjects(&points);
    let rules = medians.iter().map(|Median(subject, limit)| {
        let subject_entry = subjects.iter().find(|(name, _)| name == subject);
        let limit = Span::from_nanos(*limit * MILLI);
        Rule {
            text: format!("{subject} > {limit:?} p50"),
            subject: subject_entry.expect("a segment").1,
            limit,
            clear_limit: limit,
            quantile: Quantile::from_name("p50").expect("a quantile"),
            hold_duration: Span::from_secs(1),
        }
    });
    Rules::of(rules.collect())
}

/// An evaluation of these points, `iface:` or `ssh:`, with names.
fn evaluator_of(points: &[&str], rules: &Rules) -> (LiveEvaluator<Received>, FinalEvaluation) {
    let points: Vec<Point> = points
        .iter()
        .map(|text| {
            let point = Point::parse(text, &|name| Ok(name.to_owned())).expect("a good one");
            point.expect("a live one")
        })
        .collect();
    let spec = LiveEvaluationSpec {
        points: &points,
        rules,
        mappings: &[],
        listener: Received::default(),
        say: |_| {},
    };
    LiveEvaluator::of(spec, &Stop::new())
}

#[test]
fn only_segments_between_local_interfaces_are_evaluated() {
    let names = ["a", "b", "c"];
    let points = ["a=iface:lo", "b=iface:lo", "c=ssh:host/eth0"];
    let (evaluator, left) = evaluator_of(&points, &rules(&names, &[Median("segment", 2)]));
    assert_eq!(
        (evaluator.standings.len(), left.segments),
        (2, vec!["b - c".to_owned()])
    );
    let (evaluator, left) = evaluator_of(&points, &rules(&names, &[Median("a - b", 2)]));
    assert_eq!((evaluator.standings.len(), left.segments.len()), (2, 0));
    assert_eq!(left.rules.len(), 0);
}

#[test]
fn a_limit_above_the_longest_wait_is_not_evaluated_live() {
    let medians = [
        Median("segment", 2),
        Median("segment", 10_000),
        Median("b - c", 20_000),
    ];
    let points = ["a=iface:lo", "b=iface:lo", "c=ssh:host/eth0"];
    let of_three = rules(&["a", "b", "c"], &medians);
    let (short, left) = evaluator_of(&points, &of_three);
    assert_eq!(left.rules, [of_three.rules()[1].text.as_str()]);
    assert_eq!(left.segments, ["b - c"]);
    assert_eq!(short.standings.len(), 2);
    assert_eq!(short.waiting.longest_nanos, 1_004 * MILLI);
    let of_two = rules(&["a", "b"], &[Median("segment", 9_999)]);
    let (long, left) = evaluator_of(&points[..2], &of_two);
    assert!(left.rules.is_empty());
    assert_eq!(long.waiting.longest_nanos, 10_000 * MILLI);
}

#[test]
fn no_segment_after_a_remote_first_point_is_evaluated() {
    let points = ["a=ssh:host/eth0", "b=iface:lo", "c=iface:lo"];
    let rules = rules(&["a", "b", "c"], &[Median("segment", 2)]);
    let (evaluator, left) = evaluator_of(&points, &rules);
    assert!(evaluator.standings.is_empty());
    assert_eq!(left.segments, ["a - b", "b - c"]);
}

/// Datagrams in one direction each 100 ms from 1 s on, delayed by `later` at this point.
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
fn a_window_of_slow_packets_raises_one_alarm() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = rules(&["a", "b"], &[Median("segment", 2)]);
    let (mut evaluator, _) = evaluator_of(&["a=iface:lo", "b=iface:lo"], &rules);
    let tails = [("a.pcap", 0), ("b.pcap", 5 * MILLI)].map(|(name, later)| {
        let path = folder.path().join(name);
        capture(&path, |_| later);
        Source::Capture(Tail::of(path))
    });
    let mut tails = Vec::from(tails);
    let mut windows = Windows::begin(1_000 * MILLI, evaluator.waiting);
    let mut alarmed = Vec::new();
    while let Some(window) = windows.next(9_000 * MILLI) {
        evaluator.look(&window, &mut tails).expect("captures");
        alarmed.push(
            evaluator
                .listener
                .0
                .iter()
                .any(|found| found.change.is_raised),
        );
    }
    // A second is complete when a later packet is known: in the first window.
    assert_eq!(alarmed, [true; 3]);
    assert_eq!(evaluator.began, Some(1_000 * MILLI));
    assert_eq!(evaluator.listener.0.len(), 1);
}

/// The result for the whole captures, with one clock.
fn evaluate_files(rules: &Rules, names: [&str; 3], paths: &[PathBuf]) -> Vec<SegmentChange> {
    let mut hops = Hops::with_points(names.len());
    for (point, path) in paths.iter().enumerate() {
        let mut tail = Tail::of(path.clone());
        let read = tail.read(&(0..i64::MAX), 0, |at, record| {
            let packet = dissect(record.link, record.bytes, record.length);
            hops.add_packet(point, at, &packet.expect("a datagram"));
            ControlFlow::Continue(())
        });
        read.expect("a capture");
    }
    let names = names.map(str::to_owned);
    let clocks = vec![Offsets::Same, Offsets::Same];
    let passages = Passages::of(names.into(), hops.end(&[true; 2]), clocks);
    rules.evaluate(&passages).changes
}

/// Packets take longer to the second segment than they are awaited.
#[test]
fn live_windows_and_complete_captures_agree_after_a_slow_segment() {
    let folder = tempfile::tempdir().expect("a folder");
    let points = ["a=iface:lo", "b=iface:lo", "c=iface:lo"];
    let rules = rules(&["a", "b", "c"], &[Median("b - c", 2)]);
    let (mut evaluator, _) = evaluator_of(&points, &rules);
    let slow = 1_500 * MILLI;
    assert!(evaluator.waiting.longest_nanos < slow);
    let last = |number| {
        let is_slow = (80..=120).contains(&number) || (160..=200).contains(&number);
        slow + if is_slow { 5 * MILLI } else { MILLI }
    };
    let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
    capture(&paths[0], |_| 0);
    capture(&paths[1], |_| slow);
    capture(&paths[2], last);
    let tails = paths.iter().cloned().map(Tail::of);
    let mut tails: Vec<Source> = tails.map(Source::Capture).collect();
    let mut windows = Windows::begin(1_000 * MILLI, evaluator.waiting);
    while let Some(window) = windows.next(40_000 * MILLI) {
        evaluator.look(&window, &mut tails).expect("captures");
    }
    let lines_of = |found: &[SegmentChange]| {
        let each = found.iter();
        each.map(|found| {
            let segment_direction = (&found.segment, found.direction);
            format!(
                "{segment_direction:?} {} {:?}",
                found.at.unix_nanos(),
                found.change
            )
        })
        .collect::<Vec<_>>()
    };
    let expected = evaluate_files(&rules, ["a", "b", "c"], &paths);
    assert_eq!(expected.len(), 4, "raised twice, and over twice");
    assert_eq!(lines_of(&evaluator.listener.0), lines_of(&expected));
}

/// Samples of a capture by a clock that is `ahead`, with an error bound of 300 us.
fn samples(path: &Path, kernel: &str, ahead: i64) -> PacketSample {
    let mut pcap = super::super::Sampling::of(path.to_owned());
    PacketSample {
        kernel: kernel.to_owned(),
        clock: Some(ClockReading {
            at: Wall::from_unix_nanos(0),
            offset: Span::from_nanos(ahead),
            bound: Span::from_micros(300),
        }),
        pcap: pcap.sample().expect("a capture").expect("packets"),
    }
}

/// Datagrams in both directions each 100 ms, with these delays to the second point.
fn both_directions(path: &Path, ahead: i64, [forward, back]: [i64; 2]) {
    let mut bytes = pcap_header(RAW_IP, 64).to_vec();
    for number in 10..=250_u8 {
        let is_there = number % 2 == 0;
        let (hosts, later) = if is_there {
            ([1, 2], forward)
        } else {
            ([2, 1], -back)
        };
        let mut packet = vec![0x45, 0, 0, 28, 0, number, 0x40, 0, 64, 17, 0, 0];
        packet.extend([
            10, 0, 0, hosts[0], 10, 0, 0, hosts[1], 0, 9, 0, 9, 0, 8, 0, 0,
        ]);
        let at = i64::from(number) * 100 * MILLI + ahead + later;
        bytes.extend(pcap_record(at, 28, 28));
        bytes.extend(packet);
    }
    fs::write(path, bytes).expect("a file");
}

/// The result for two points at agents with these forward and reverse delays, where the second
/// clock offset is wrong by `wrong`. All in microseconds.
fn heard_of_agents(delay: [i64; 2], wrong: i64) -> (Received, FinalEvaluation) {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = rules(&["a", "b"], &[Median("a - b", 2)]);
    let points = ["a=agent:ams/eth0", "b=agent:lju/eth0"];
    let (mut evaluator, left) = evaluator_of(&points, &rules);
    assert_eq!(
        evaluator.waiting.readable_after_nanos,
        WindowDelays::READABLE_AT_AGENTS_NANOS
    );
    assert_eq!(evaluator.sampled(), [0, 1]);
    let mut sources = [0, 1].map(|point| Source::Samples(Samples::of(point)));
    let delay = delay.map(|micros| micros * 1_000);
    for (point, ahead, delay) in [(0, 0, [0, 0]), (1, 7_000 * MILLI, delay)] {
        let path = folder.path().join(point.to_string());
        both_directions(&path, ahead, delay);
        let read = ahead + if point == 1 { wrong * 1_000 } else { 0 };
        let sample = samples(&path, ["one", "two"][point], read);
        evaluator.take(LivePackets::Sample(point, sample), &mut sources);
    }
    let mut windows = Windows::begin(1_000 * MILLI, evaluator.waiting);
    while let Some(window) = windows.next(40_000 * MILLI) {
        evaluator.look(&window, &mut sources).expect("samples");
    }
    (evaluator.listener, left)
}

#[test]
fn agent_samples_raise_an_alarm_only_beyond_the_clock_error() {
    // Error bound of 300 us per clock: 2.7 ms are at least 2.1 ms, above the limit; 2.5 ms may be
    // less.
    let (received, left) = heard_of_agents([2_700, 500], 0);
    assert_eq!(received.0.len(), 1);
    assert!(received.0[0].change.is_raised && received.0[0].direction == Direction::Forward);
    assert_eq!(received.0[0].bound, 600_000);
    assert_eq!(left.sampled, ["a - b"]);
    assert!(left.segments.is_empty());
    assert!(heard_of_agents([2_500, 2_500], 0).0.0.is_empty());
}

#[test]
fn the_direction_is_known_despite_clock_errors_above_the_delay() {
    for wrong in [-280, 280] {
        let (received, _) = heard_of_agents([200, 200], wrong);
        let of = |direction| {
            received
                .1
                .iter()
                .filter(move |(of_direction, _)| *of_direction == direction)
        };
        assert!(of(Direction::Forward).count() > 5 && of(Direction::Reverse).count() > 5);
        assert!(of(Direction::Forward).all(|(_, delay)| *delay == (200 - wrong) * 1_000));
        assert!(of(Direction::Reverse).all(|(_, delay)| *delay == (200 + wrong) * 1_000));
    }
}

#[test]
fn a_segment_after_a_first_point_at_an_agent_is_evaluated() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = rules(&["a", "b", "c"], &[Median("b - c", 2)]);
    let points = ["a=agent:ams/eth0", "b=iface:lo", "c=iface:lo"];
    let (mut evaluator, _) = evaluator_of(&points, &rules);
    let mut sources = Vec::new();
    for (name, later) in [("a", 0), ("b", MILLI), ("c", 4 * MILLI)] {
        let path = folder.path().join(name);
        both_directions(&path, 0, [later; 2]);
        sources.push(Source::Capture(Tail::of(path)));
    }
    sources[0] = Source::Samples(Samples::of(0));
    let requested = evaluator.sampled();
    assert_eq!(requested, [0]);
    for point in requested {
        let sample = samples(&folder.path().join("a"), "one", 0);
        evaluator.take(LivePackets::Sample(point, sample), &mut sources);
    }
    let mut windows = Windows::begin(1_000 * MILLI, evaluator.waiting);
    while let Some(window) = windows.next(40_000 * MILLI) {
        evaluator.look(&window, &mut sources).expect("captures");
    }
    assert_eq!(
        evaluator.listener.0.len(),
        2,
        "each way: {:?}",
        evaluator.listener.0
    );
}

#[test]
fn only_agents_at_evaluated_segments_send_samples() {
    let of_first = rules(&["a", "b", "c"], &[Median("a - b", 2)]);
    let (first, _) = evaluator_of(&["a=iface:lo", "b=iface:lo", "c=agent:ams/eth0"], &of_first);
    assert!(first.sampled().is_empty());
    assert_eq!(
        first.waiting.readable_after_nanos,
        WindowDelays::READABLE_LOCALLY_NANOS
    );
    let behind = ["a=iface:lo", "b=ssh:host/eth0", "c=agent:ams/eth0"];
    let (behind, left) = evaluator_of(&behind, &rules(&["a", "b", "c"], &[Median("segment", 2)]));
    assert!(behind.sampled().is_empty());
    assert_eq!(left.segments, ["a - b", "b - c"]);
    let (second, _) = evaluator_of(
        &["a=iface:lo", "b=agent:lju/eth0", "c=agent:ams/eth0"],
        &of_first,
    );
    assert_eq!(second.sampled(), [1]);
}

#[test]
fn a_drifting_clock_is_no_step_and_a_jumping_one_is() {
    let at = |raw: i64, wall: i64| Pair {
        raw: RawNanos(raw * MILLI),
        wall: WallNanos(wall * MILLI),
        doubt: 0,
    };
    assert!(!is_set(at(0, 5_000), at(100, 5_110)));
    assert!(is_set(at(0, 5_000), at(100, 4_800)));
    assert!(is_set(at(0, 5_000), at(100, 9_000)));
}
