//! Clocks that are set while their captures last, and captures that last too short to know a drift.

use neph_sys::deadline::Stopwatch;

use super::simulated::{Path, SECOND, START, Simulated};
use super::{lines, run};
use crate::neph::TestFolder;

#[test]
fn a_clock_step_spoils_only_the_packets_in_flight() {
    for jump in [2 * SECOND, -2 * SECOND] {
        let folder = TestFolder::empty();
        let mut simulated = Simulated::of(Path::PLAIN, 1_000, 11);
        // While a packet is behind the point.
        let mut truths = simulated.truths.iter().filter(|truth| !truth.is_back);
        let passed = truths.find_map(|truth| truth.at[1].filter(|at| *at > START + 3 * SECOND));
        let set = passed.expect("six seconds of them") + 1_000;
        let shows = |point: usize, at: i64| {
            if point == 1 && at >= set {
                at + jump
            } else {
                at
            }
        };
        let (files, stamps) = simulated.write(&folder, shows);
        let ran = run(&files, &["--format", "ndjson", "--packets"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let lines = lines(&ran);
        let (mut counts, mut silent) = (0, 0);
        for line in lines.iter().filter(|line| line["kind"] == "packet") {
            let mark = line["timestamps_unix_ns"][0].as_i64().expect("a stamp");
            let truth = &simulated.truths[stamps[&(0, mark)]];
            let (a, b) = truth.at[0].zip(truth.at[1]).expect("nothing is lost");
            let segment = &line["segments"][0];
            let Some(delay) = segment["ns"].as_i64() else {
                silent += 1;
                continue;
            };
            counts += 1;
            let off = delay - (b - a).abs();
            assert!(
                off.abs() <= segment["bound_ns"].as_i64().expect("a bound"),
                "{off}: {line}"
            );
        }
        assert!(
            counts > 5_900 && counts + silent == 6_000,
            "{counts} told, {silent} not"
        );
        assert_eq!(lines.last().expect("a summary")["clocks"][0]["steps"], 1);
        // Those that span the moment would have two seconds of it.
        let parts = lines.iter().filter(|line| line["kind"] == "round_trip");
        let means: Vec<i64> = parts.filter_map(|line| line["mean_ns"].as_i64()).collect();
        // The whole, the segment, and what is beyond: the peer answers after 50 us.
        let (beyond, _) = means.as_chunks::<3>();
        assert!(!beyond.is_empty());
        assert!(
            beyond.iter().all(|[.., beyond]| *beyond == 50_000),
            "{means:?}"
        );
    }
}

/// Each set by so much, so many seconds after the beginning.
type Sets = &'static [(i64, i64)];

#[test]
fn clock_steps_invalidate_only_packets_in_flight_at_the_step() {
    const DAY: i64 = 86_400;
    let worlds: [(Sets, Sets); 7] = [
        (&[(3, 30 * DAY)], &[]),
        (&[(3, -30 * DAY)], &[]),
        (&[], &[(3, 30 * DAY)]),
        (&[], &[(3, -30 * DAY)]),
        (&[(3, 90)], &[]),
        (&[(1, 40 * DAY), (3, -50 * DAY), (5, 7_200)], &[]),
        (&[(1, 40 * DAY), (4, -7_200)], &[(2, -3_600), (5, DAY)]),
    ];
    for sets in worlds {
        let folder = TestFolder::empty();
        let mut simulated = Simulated::of(Path::PLAIN, 1_000, 11);
        let shows = |point: usize, at: i64| {
            let of = [sets.0, sets.1].into_iter().nth(point).unwrap_or_default();
            let set = of.iter().filter(|(when, _)| at >= START + when * SECOND);
            at + set.map(|(_, by)| by * SECOND).sum::<i64>()
        };
        let (files, stamps) = simulated.write(&folder, shows);
        let began = Stopwatch::start();
        let ran = run(&files, &["--format", "ndjson", "--packets"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        // Work is by packets: it was 72 s for a clock that began in 1970.
        assert!(began.elapsed().as_secs() < 20, "{sets:?}");
        let lines = lines(&ran);
        let mut count = 0;
        for line in lines.iter().filter(|line| line["kind"] == "packet") {
            assert!(line["lost_in"].is_null(), "{sets:?}: {line}");
            let mark = line["timestamps_unix_ns"][0].as_i64().expect("a stamp");
            let truth = &simulated.truths[stamps[&(0, mark)]];
            let (a, b) = truth.at[0].zip(truth.at[1]).expect("nothing is lost");
            let segment = &line["segments"][0];
            let Some(delay) = segment["ns"].as_i64() else {
                continue;
            };
            count += 1;
            let (off, bound) = (delay - (b - a).abs(), &segment["bound_ns"]);
            let bound = bound.as_i64().expect("a bound");
            assert!(
                off.abs() <= bound && bound < 50_000_000,
                "{sets:?}: {off}: {line}"
            );
        }
        assert!(count > 5_800, "{sets:?}: {count}");
        let summary = lines.last().expect("a summary");
        let many = sets.0.len() + sets.1.len();
        assert_eq!(summary["clocks"][0]["steps"], many, "{sets:?}");
        assert_eq!(summary["warnings"], serde_json::json!([]), "{sets:?}");
    }
}

#[test]
fn one_clock_that_is_set_back_is_one_clock() {
    let folder = TestFolder::empty();
    let mut simulated = Simulated::of(Path::PLAIN, 1_000, 11);
    let set = START + 3 * SECOND;
    let shows = |_: usize, at: i64| if at >= set { at - 7_200 * SECOND } else { at };
    let (files, stamps) = simulated.write(&folder, shows);
    let ran = run(
        &files,
        &["--clock", "same", "--format", "ndjson", "--packets"],
    );
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    let mut silent = 0;
    for line in lines(&ran).iter().filter(|line| line["kind"] == "packet") {
        let mark = line["timestamps_unix_ns"][0].as_i64().expect("a stamp");
        let truth = &simulated.truths[stamps[&(0, mark)]];
        let (a, b) = truth.at[0].zip(truth.at[1]).expect("nothing is lost");
        match line["segments"][0]["ns"].as_i64() {
            Some(delay) => assert_eq!(delay, (b - a).abs(), "{line}"),
            None => silent += 1,
        }
    }
    assert!(silent < 20, "{silent}");
}

#[test]
fn captures_one_behind_the_other_are_no_clock_that_was_set() {
    let folder = TestFolder::empty();
    let mut simulated = Simulated::of(Path::PLAIN, 1_000, 11);
    let (files, _) = simulated.write(&folder, |_, at| at);
    // Both of the first point's halves, the later one first.
    let first_file = files[0]
        .split_once('=')
        .map_or(&*files[0], |(_, file)| file);
    let full_bytes = std::fs::read(first_file).expect("a capture");
    let place_of_half = {
        let (mut at, mut records) = (24, Vec::new());
        while at < full_bytes.len() {
            records.push(at);
            let length = full_bytes[at + 8..at + 12].try_into().expect("four bytes");
            at += 16 + u32::from_le_bytes(length) as usize;
        }
        records[records.len() / 2]
    };
    let (first, later) = full_bytes.split_at(place_of_half);
    let turned = [&first[..24], later, &first[24..]].concat();
    std::fs::write(first_file, turned).expect("a file");
    let ran = run(&files, &["--format", "ndjson"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let summary = lines(&ran).pop().expect("a summary");
    assert_eq!(summary["clocks"][0]["steps"], 0, "{summary}");
}

#[test]
fn a_clock_far_ahead_that_is_set_moves_no_packet_in_time() {
    for jump in [10 * SECOND, -10 * SECOND] {
        let folder = TestFolder::empty();
        let mut simulated = Simulated::of(Path::PLAIN, 1_000, 12);
        let set = START + 3 * SECOND;
        let shows = |point: usize, at: i64| {
            let ahead = if at >= set {
                3_600 * SECOND + jump
            } else {
                3_600 * SECOND
            };
            if point == 1 { at + ahead } else { at }
        };
        let (files, stamps) = simulated.write(&folder, shows);
        let ran = run(&files, &["--format", "ndjson", "--packets"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let began = simulated
            .truths
            .iter()
            .filter_map(|truth| truth.at[0])
            .min();
        let lines = lines(&ran);
        let (mut counts, mut around) = (0, 0);
        for line in lines.iter().filter(|line| line["kind"] == "packet") {
            let mark = line["timestamps_unix_ns"][0].as_i64().expect("a stamp");
            let truth = &simulated.truths[stamps[&(0, mark)]];
            let (a, b) = truth.at[0].zip(truth.at[1]).expect("nothing is lost");
            let since = a.min(b) - began.expect("a packet");
            let off = line["since_ns"].as_i64().expect("a time") - since;
            assert!(off.abs() <= (b - a).abs(), "off by {off}: {line}");
            counts += 1;
            around += usize::from(line["segments"][0].is_null() && truth.is_back);
        }
        assert_eq!(counts, 6_000);
        assert!(around > 0, "no packet back passed while the clock was set");
    }
}

#[test]
fn one_clock_that_cannot_have_been_is_doubted() {
    let folder = TestFolder::empty();
    let mut simulated = Simulated::of(Path::PLAIN, 200, 13);
    let ahead = |point: usize, at: i64| if point == 1 { at + SECOND } else { at };
    let (files, _) = simulated.write(&folder, ahead);
    let doubt = "leave out --clock same";
    let ran = run(&files, &["--clock", "same"]);
    assert!(ran.err.contains(doubt), "{}{}", ran.err, ran.out);
    let printed = ran.out.lines().find(|line| line.starts_with("In doubt: "));
    assert!(
        printed.is_some_and(|printed| printed.contains(doubt)),
        "{}",
        ran.out
    );
    assert!(!run(&files, &[]).err.contains(doubt));
    let (files, _) = simulated.write(&folder, |_, at| at);
    assert!(!run(&files, &["--clock", "same"]).err.contains(doubt));
}

#[test]
fn an_unknown_drift_is_null() {
    let folder = TestFolder::empty();
    let (files, _) = Simulated::of(Path::PLAIN, 3, 5).write(&folder, |_, at| at);
    let text = run(&files, &[]).out;
    assert!(text.contains(", drift not known.\n"), "{text}");
    let summary = lines(&run(&files, &["--format", "ndjson"])).pop();
    let clock = &summary.expect("a summary")["clocks"][0];
    assert_eq!(clock["is"], "fitted");
    assert!(
        clock["rate_ppm"].is_null() && clock["rate_bound_ppm"].is_null(),
        "{clock}"
    );
    // Over some seconds it is.
    let (files, _) = Simulated::of(Path::PLAIN, 1_000, 5).write(&folder, |_, at| at);
    let text = run(&files, &[]).out;
    assert!(
        text.contains(" ppm.\n") && !text.contains("not known"),
        "{text}"
    );
}
