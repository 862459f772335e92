//! Clocks that are set while their captures last, and captures that last too short to know a drift.

use super::simulated::{Path, SECOND, START, Simulated};
use super::{lines, run};
use crate::neph::Place;

#[test]
fn a_clock_that_is_set_on_the_way_spoils_only_what_passes_meanwhile() {
    for jump in [2 * SECOND, -2 * SECOND] {
        let place = Place::empty();
        let mut simulated = Simulated::of(Path::PLAIN, 1_000, 11);
        // While a packet is behind the point.
        let mut there = simulated.truths.iter().filter(|truth| !truth.is_back);
        let passed = there.find_map(|truth| truth.at[1].filter(|at| *at > START + 3 * SECOND));
        let set = passed.expect("six seconds of them") + 1_000;
        let shows = |point: usize, at: i64| {
            if point == 1 && at >= set {
                at + jump
            } else {
                at
            }
        };
        let (files, stamps) = simulated.write(&place, shows);
        let ran = run(&files, &["--format", "ndjson", "--packets"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let lines = lines(&ran);
        let (mut told, mut silent) = (0, 0);
        for line in lines.iter().filter(|line| line["kind"] == "packet") {
            let mark = line["marks_unix_ns"][0].as_i64().expect("a stamp");
            let truth = &simulated.truths[stamps[&(0, mark)]];
            let (a, b) = truth.at[0].zip(truth.at[1]).expect("nothing is lost");
            let segment = &line["segments"][0];
            let Some(delay) = segment["ns"].as_i64() else {
                silent += 1;
                continue;
            };
            told += 1;
            let off = delay - (b - a).abs();
            assert!(
                off.abs() <= segment["bound_ns"].as_i64().expect("a bound"),
                "{off}: {line}"
            );
        }
        assert!(
            told > 5_900 && told + silent == 6_000,
            "{told} told, {silent} not"
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

#[test]
fn a_clock_far_ahead_that_is_set_moves_no_packet_in_time() {
    for jump in [10 * SECOND, -10 * SECOND] {
        let place = Place::empty();
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
        let (files, stamps) = simulated.write(&place, shows);
        let ran = run(&files, &["--format", "ndjson", "--packets"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let began = simulated
            .truths
            .iter()
            .filter_map(|truth| truth.at[0])
            .min();
        let lines = lines(&ran);
        let (mut told, mut around) = (0, 0);
        for line in lines.iter().filter(|line| line["kind"] == "packet") {
            let mark = line["marks_unix_ns"][0].as_i64().expect("a stamp");
            let truth = &simulated.truths[stamps[&(0, mark)]];
            let (a, b) = truth.at[0].zip(truth.at[1]).expect("nothing is lost");
            let since = a.min(b) - began.expect("a packet");
            let off = line["since_ns"].as_i64().expect("a time") - since;
            assert!(off.abs() <= (b - a).abs(), "off by {off}: {line}");
            told += 1;
            around += usize::from(line["segments"][0].is_null() && truth.is_back);
        }
        assert_eq!(told, 6_000);
        assert!(around > 0, "no packet back passed while the clock was set");
    }
}

#[test]
fn one_clock_that_cannot_have_been_is_doubted() {
    let place = Place::empty();
    let mut simulated = Simulated::of(Path::PLAIN, 200, 13);
    let ahead = |point: usize, at: i64| if point == 1 { at + SECOND } else { at };
    let (files, _) = simulated.write(&place, ahead);
    let doubt = "leave out --clock same";
    let ran = run(&files, &["--clock", "same"]);
    assert!(ran.err.contains(doubt), "{}{}", ran.err, ran.out);
    let said = ran.out.lines().find(|line| line.starts_with("In doubt: "));
    assert!(said.is_some_and(|said| said.contains(doubt)), "{}", ran.out);
    assert!(!run(&files, &[]).err.contains(doubt));
    let (files, _) = simulated.write(&place, |_, at| at);
    assert!(!run(&files, &["--clock", "same"]).err.contains(doubt));
}

#[test]
fn a_drift_of_which_nothing_is_known_is_no_number() {
    let place = Place::empty();
    let (files, _) = Simulated::of(Path::PLAIN, 3, 5).write(&place, |_, at| at);
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
    let (files, _) = Simulated::of(Path::PLAIN, 1_000, 5).write(&place, |_, at| at);
    let text = run(&files, &[]).out;
    assert!(
        text.contains(" ppm.\n") && !text.contains("not known"),
        "{text}"
    );
}
