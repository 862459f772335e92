//! `neph hops` held against a path whose every delay is known, and what it refuses.

mod figures;
mod simulated;

use std::collections::HashSet;

use serde_json::Value;

use crate::neph::{Place, Ran, neph};
use simulated::{Path, SECOND, START, Simulated};

fn lines(ran: &Ran) -> Vec<Value> {
    let lines = ran.out.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn run(files: &[String], more: &[&str]) -> Ran {
    let files = files.iter().map(String::as_str);
    neph(
        ["hops"]
            .into_iter()
            .chain(files)
            .chain(more.iter().copied()),
    )
}

/// How far what was told is off the truth.
#[derive(Debug, Default)]
struct Off {
    /// Delays of packets in segments that were told.
    n: usize,
    /// Of these, off by more than 5 us.
    far: usize,
    /// In nanoseconds.
    worst: i64,
    bound: i64,
}

/// The last point's clock is 3 s ahead and 40 ppm fast.
fn shows(points: usize) -> impl Fn(usize, i64) -> i64 + Copy {
    move |point, at| {
        if point + 1 == points {
            at + 3 * SECOND + (at - START) / 1_000_000 * 40
        } else {
            at
        }
    }
}

/// Runs neph over a simulated path and holds every packet against it.
fn hold(path: Path, rounds: u32, more: &[&str]) -> Off {
    let place = Place::empty();
    let mut simulated = Simulated::of(path, rounds, 0x5eed_0000 + rounds as u64);
    let clocks = shows(path.points);
    let (files, stamps) = simulated.write(&place, clocks);
    let all: Vec<&str> = ["--format", "ndjson", "--packets"]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    let ran = run(&files, &all);
    assert_eq!(ran.status, 0, "{path:?}: {}", ran.err);
    let mut off = Off::default();
    let mut seen = HashSet::new();
    let lines = lines(&ran);
    for line in lines.iter().filter(|line| line["kind"] == "packet") {
        let marks = line["marks_unix_ns"].as_array().expect("marks");
        let first = marks.iter().enumerate().find(|(_, mark)| !mark.is_null());
        let (point, mark) = first.expect("one mark at least");
        let number = stamps[&(point, mark.as_i64().expect("a stamp"))];
        assert!(seen.insert(number), "told twice: {line}");
        let truth = &simulated.truths[number];
        let way = if truth.is_back { "back" } else { "there" };
        assert_eq!(
            (&line["way"], &line["protocol"]),
            (&way.into(), &truth.protocol.into())
        );
        assert_eq!(
            line["lost_in"].as_u64(),
            truth.lost_in.map(|at| at as u64),
            "{line}"
        );
        for (point, mark) in marks.iter().enumerate() {
            let shown = truth.at[point].map(|at| clocks(point, at));
            assert_eq!(mark.as_i64(), shown, "point {point}: {line}");
        }
        for (segment, told) in line["segments"]
            .as_array()
            .expect("segments")
            .iter()
            .enumerate()
        {
            let Some((a, b)) = truth.at[segment].zip(truth.at[segment + 1]) else {
                assert!(told.is_null(), "{line}");
                continue;
            };
            let by = told["ns"].as_i64().expect("a delay") - (b - a).abs();
            let bound = told["bound_ns"].as_i64().expect("a bound");
            assert!(
                by.abs() <= bound,
                "segment {segment} is {by} off, {bound} at most: {line}"
            );
            off.n += 1;
            off.far += usize::from(by.abs() > 5_000);
            off.worst = off.worst.max(by.abs());
            off.bound = off.bound.max(bound);
        }
    }
    let lost = |lines: &[Value]| -> u64 {
        let of = lines.iter().filter(|line| line["kind"] == "segment");
        of.map(|line| line["lost"].as_u64().expect("a count")).sum()
    };
    assert_eq!(seen.len(), simulated.truths.len(), "{path:?}");
    let truly = simulated
        .truths
        .iter()
        .filter(|truth| truth.lost_in.is_some());
    assert_eq!(lost(&lines), truly.count() as u64);
    let copies = lines.iter().filter(|line| line["kind"] == "segment");
    let copies: u64 = copies
        .map(|line| line["copies"].as_u64().expect("a count"))
        .sum();
    assert_eq!(copies, simulated.copies());
    println!("{path:?}: {off:?}");
    assert!(off.n > 0 && off.far * 1_000 <= off.n, "{off:?}");
    off
}

#[test]
fn two_clocks_three_seconds_and_forty_ppm_apart_leave_every_delay_right() {
    let off = hold(Path::PLAIN, 2_000, &[]);
    assert_eq!(off.n, 12_000);
}

#[test]
fn five_points_of_which_the_last_has_another_clock_and_loss_in_each_segment() {
    let path = Path {
        points: 5,
        lost: 10,
        ..Path::PLAIN
    };
    let off = hold(path, 1_500, &[]);
    assert!(off.n > 30_000);
}
