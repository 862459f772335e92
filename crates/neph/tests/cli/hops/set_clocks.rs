//! Clocks that are set while their captures last, and captures that last too short to know a drift.

use neph_sys::deadline::Stopwatch;

use super::simulated::{PathModel, SECOND, START, Simulation};
use super::{lines, run};
use crate::neph::TestFolder;

#[test]
fn a_clock_step_spoils_only_the_packets_in_flight() {
    for jump in [2 * SECOND, -2 * SECOND] {
        let folder = TestFolder::empty();
        let mut simulated = Simulation::of(PathModel::PLAIN, 1_000, 11);
        // While a packet is behind the point.
        let mut truths = simulated.truths.iter().filter(|truth| !truth.is_reverse);
        let passed =
            truths.find_map(|truth| truth.passed_at[1].filter(|at| *at > START + 3 * SECOND));
        let set = passed.expect("six seconds of them") + 1_000;
        let clock = |point: usize, at: i64| {
            if point == 1 && at >= set {
                at + jump
            } else {
                at
            }
        };
        let (files, stamps) = simulated.write(&folder, clock);
        let ran = run(&files, &["--format", "ndjson", "--packets"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let lines = lines(&ran);
        let (mut counts, mut without_delay) = (0, 0);
        for line in lines.iter().filter(|line| line["kind"] == "packet") {
            let mark = line["timestamps_unix_ns"][0].as_i64().expect("a stamp");
            let truth = &simulated.truths[stamps[&(0, mark)]];
            let (a, b) = truth.passed_at[0]
                .zip(truth.passed_at[1])
                .expect("nothing is lost");
            let segment = &line["segments"][0];
            let Some(delay) = segment["ns"].as_i64() else {
                without_delay += 1;
                continue;
            };
            counts += 1;
            let error = delay - (b - a).abs();
            assert!(
                error.abs() <= segment["bound_ns"].as_i64().expect("a bound"),
                "{error}: {line}"
            );
        }
        assert!(
            counts > 5_900 && counts + without_delay == 6_000,
            "{counts} told, {without_delay} not"
        );
        assert_eq!(lines.last().expect("a summary")["clocks"][0]["steps"], 1);
        // Those that span the moment would have two seconds of it.
        let parts = lines.iter().filter(|line| line["kind"] == "round_trip");
        let means: Vec<i64> = parts.filter_map(|line| line["mean_ns"].as_i64()).collect();
        // The whole, the segment, and what is beyond: the peer answers after 50 us.
        let (beyond_points, _) = means.as_chunks::<3>();
        assert!(!beyond_points.is_empty());
        assert!(
            beyond_points.iter().all(|[.., mean]| *mean == 50_000),
            "{means:?}"
        );
    }
}

/// Each set by so much, so many seconds after the beginning.
type ClockSteps = &'static [(i64, i64)];

#[test]
fn clock_steps_invalidate_only_packets_in_flight_at_the_step() {
    const DAY: i64 = 86_400;
    let worlds: [(ClockSteps, ClockSteps); 7] = [
        (&[(3, 30 * DAY)], &[]),
        (&[(3, -30 * DAY)], &[]),
        (&[], &[(3, 30 * DAY)]),
        (&[], &[(3, -30 * DAY)]),
        (&[(3, 90)], &[]),
        (&[(1, 40 * DAY), (3, -50 * DAY), (5, 7_200)], &[]),
        (&[(1, 40 * DAY), (4, -7_200)], &[(2, -3_600), (5, DAY)]),
    ];
    for clock_steps in worlds {
        let folder = TestFolder::empty();
        let mut simulated = Simulation::of(PathModel::PLAIN, 1_000, 11);
        let clock = |point: usize, at: i64| {
            let of = [clock_steps.0, clock_steps.1]
                .into_iter()
                .nth(point)
                .unwrap_or_default();
            let set = of.iter().filter(|(when, _)| at >= START + when * SECOND);
            at + set.map(|(_, by)| by * SECOND).sum::<i64>()
        };
        let (files, stamps) = simulated.write(&folder, clock);
        let stopwatch = Stopwatch::start();
        let ran = run(&files, &["--format", "ndjson", "--packets"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        // Work is by packets: it was 72 s for a clock that began in 1970.
        assert!(stopwatch.elapsed().as_secs() < 20, "{clock_steps:?}");
        let lines = lines(&ran);
        let mut count = 0;
        for line in lines.iter().filter(|line| line["kind"] == "packet") {
            assert!(line["lost_in"].is_null(), "{clock_steps:?}: {line}");
            let mark = line["timestamps_unix_ns"][0].as_i64().expect("a stamp");
            let truth = &simulated.truths[stamps[&(0, mark)]];
            let (a, b) = truth.passed_at[0]
                .zip(truth.passed_at[1])
                .expect("nothing is lost");
            let segment = &line["segments"][0];
            let Some(delay) = segment["ns"].as_i64() else {
                continue;
            };
            count += 1;
            let (error, bound) = (delay - (b - a).abs(), &segment["bound_ns"]);
            let bound = bound.as_i64().expect("a bound");
            assert!(
                error.abs() <= bound && bound < 50_000_000,
                "{clock_steps:?}: {error}: {line}"
            );
        }
        assert!(count > 5_800, "{clock_steps:?}: {count}");
        let summary = lines.last().expect("a summary");
        let step_count = clock_steps.0.len() + clock_steps.1.len();
        assert_eq!(summary["clocks"][0]["steps"], step_count, "{clock_steps:?}");
        assert_eq!(
            summary["warnings"],
            serde_json::json!([]),
            "{clock_steps:?}"
        );
    }
}

#[test]
fn one_clock_that_is_set_back_is_one_clock() {
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(PathModel::PLAIN, 1_000, 11);
    let set = START + 3 * SECOND;
    let clock = |_: usize, at: i64| if at >= set { at - 7_200 * SECOND } else { at };
    let (files, stamps) = simulated.write(&folder, clock);
    let ran = run(
        &files,
        &["--clock", "same", "--format", "ndjson", "--packets"],
    );
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    let mut without_delay = 0;
    for line in lines(&ran).iter().filter(|line| line["kind"] == "packet") {
        let mark = line["timestamps_unix_ns"][0].as_i64().expect("a stamp");
        let truth = &simulated.truths[stamps[&(0, mark)]];
        let (a, b) = truth.passed_at[0]
            .zip(truth.passed_at[1])
            .expect("nothing is lost");
        match line["segments"][0]["ns"].as_i64() {
            Some(delay) => assert_eq!(delay, (b - a).abs(), "{line}"),
            None => without_delay += 1,
        }
    }
    assert!(without_delay < 20, "{without_delay}");
}

#[test]
fn captures_one_behind_the_other_are_no_clock_that_was_set() {
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(PathModel::PLAIN, 1_000, 11);
    let (files, _) = simulated.write(&folder, |_, at| at);
    // Both of the first point's halves, the later one first.
    let first_file = files[0]
        .split_once('=')
        .map_or(&*files[0], |(_, file)| file);
    let full_bytes = std::fs::read(first_file).expect("a capture");
    let middle = {
        let (mut at, mut records) = (24, Vec::new());
        while at < full_bytes.len() {
            records.push(at);
            let length = full_bytes[at + 8..at + 12].try_into().expect("four bytes");
            at += 16 + u32::from_le_bytes(length) as usize;
        }
        records[records.len() / 2]
    };
    let (first, later) = full_bytes.split_at(middle);
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
        let mut simulated = Simulation::of(PathModel::PLAIN, 1_000, 12);
        let set = START + 3 * SECOND;
        let clock = |point: usize, at: i64| {
            let offset = if at >= set {
                3_600 * SECOND + jump
            } else {
                3_600 * SECOND
            };
            if point == 1 { at + offset } else { at }
        };
        let (files, stamps) = simulated.write(&folder, clock);
        let ran = run(&files, &["--format", "ndjson", "--packets"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let first_time = simulated
            .truths
            .iter()
            .filter_map(|truth| truth.passed_at[0])
            .min();
        let lines = lines(&ran);
        let (mut counts, mut in_flight_at_step) = (0, 0);
        for line in lines.iter().filter(|line| line["kind"] == "packet") {
            let mark = line["timestamps_unix_ns"][0].as_i64().expect("a stamp");
            let truth = &simulated.truths[stamps[&(0, mark)]];
            let (a, b) = truth.passed_at[0]
                .zip(truth.passed_at[1])
                .expect("nothing is lost");
            let since = a.min(b) - first_time.expect("a packet");
            let error = line["since_ns"].as_i64().expect("a time") - since;
            assert!(error.abs() <= (b - a).abs(), "off by {error}: {line}");
            counts += 1;
            in_flight_at_step += usize::from(line["segments"][0].is_null() && truth.is_reverse);
        }
        assert_eq!(counts, 6_000);
        assert!(
            in_flight_at_step > 0,
            "no packet back passed while the clock was set"
        );
    }
}

#[test]
fn one_clock_that_cannot_have_been_is_doubted() {
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(PathModel::PLAIN, 200, 13);
    let clock = |point: usize, at: i64| if point == 1 { at + SECOND } else { at };
    let (files, _) = simulated.write(&folder, clock);
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
    let (files, _) = Simulation::of(PathModel::PLAIN, 3, 5).write(&folder, |_, at| at);
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
    let (files, _) = Simulation::of(PathModel::PLAIN, 1_000, 5).write(&folder, |_, at| at);
    let text = run(&files, &[]).out;
    assert!(
        text.contains(" ppm.\n") && !text.contains("not known"),
        "{text}"
    );
}
