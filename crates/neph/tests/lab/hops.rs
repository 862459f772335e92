//! `neph hops` over a link of the lab whose record says when each packet came and left.
//!
//! Between a capture and the record lies what no stamp tells: a packet is captured at a site before the
//! link's end has it, and behind the link after it left. So no delay may be shorter than the record's.

#![expect(clippy::print_stdout, reason = "a test tells what it measured")]

use std::collections::HashMap;

use neph_lab::{Identity, Record, Verdict};
use neph_model::Span;

use crate::clocks::{Capture, shifted};
use crate::points::{CaptureFiles, frames, reported_packets};
use crate::setup::{TwoSites, is_privileged, measure};

const SECOND: i64 = 1_000_000_000;
const LINK: &str = "delay = \"2ms\"\nloss = \"2%\"";

/// A packet as it was reported, or recorded.
#[derive(Debug, Clone, Copy)]
struct Crossing {
    /// When it came to the first point it passed, nanoseconds since 1970.
    at: i64,
    /// What the link took; `None` if it was lost.
    delay: Option<i64>,
    bound: i64,
}

/// Packets of one direction, by what they are and how many alike came before. Not by their order: what
/// two processors send at the same time may be stamped in one order and come to the link in the other.
type Crossings = HashMap<(Identity, usize), Crossing>;

fn number_identical_packets(mut crossed: Vec<(Identity, Crossing)>) -> Crossings {
    crossed.sort_by_key(|(_, crossing)| crossing.at);
    let mut identical: HashMap<Identity, usize> = HashMap::new();
    let numbered = crossed.into_iter().map(|(identity, crossing)| {
        let nth = identical.entry(identity).or_default();
        *nth += 1;
        ((identity, *nth), crossing)
    });
    numbered.collect()
}

/// Two captures.
type Points<'a> = [(&'a str, &'a [u8]); 2];

/// What `neph hops` reports of each packet, forward and reverse.
fn reported_crossings(points: Points<'_>, extra_options: &[&str]) -> [Crossings; 2] {
    let identities = points.map(|(_, capture)| -> HashMap<i64, Identity> {
        let frames = frames(capture);
        let passed = frames.iter().map(|frame| (frame.at, frame.identity()));
        passed.collect()
    });
    let files = CaptureFiles::of("hops-files", points);
    let mut crossed = [Vec::new(), Vec::new()];
    for line in reported_packets(files.paths.each_ref().map(String::as_str), extra_options) {
        let direction = usize::from(line["direction"] == "reverse");
        let segment = &line["segments"][0];
        let at = line["timestamps_unix_ns"][direction].as_i64();
        let crossing = Crossing {
            at: at.expect("it passed the point where it began"),
            delay: segment["ns"].as_i64(),
            bound: segment["bound_ns"].as_i64().unwrap_or(0),
        };
        let is_lost = line["lost_in"] == 0;
        assert!(!is_lost || crossing.delay.is_none(), "{line}");
        crossed[direction].push((identities[direction][&crossing.at], crossing, is_lost));
    }
    crossed.map(|direction| {
        let last = direction
            .iter()
            .map(|(_, crossing, _)| crossing.at)
            .max()
            .expect("packets");
        for (_, crossing, is_lost) in &direction {
            // Whether the last ones are lost or only late is not known.
            assert!(
                crossing.delay.is_some() || *is_lost || crossing.at + SECOND > last,
                "{crossing:?}"
            );
        }
        number_identical_packets(
            direction
                .into_iter()
                .map(|(identity, crossing, _)| (identity, crossing))
                .collect(),
        )
    })
}

/// The same by the link's record.
fn recorded(lab: TwoSites) -> [Crossings; 2] {
    let mut crossed = [Vec::new(), Vec::new()];
    for record in lab.records() {
        let Record::Packet {
            passage,
            verdict,
            left,
            ..
        } = record
        else {
            continue;
        };
        if !matches!(passage.identity.protocol, 1 | 6 | 17) {
            continue;
        }
        let is_delivered = verdict == Verdict::Delivered;
        let crossing = Crossing {
            at: passage.arrival,
            delay: is_delivered.then_some(left - passage.arrival),
            bound: 0,
        };
        crossed[usize::from(passage.direction)].push((passage.identity, crossing));
    }
    crossed.map(number_identical_packets)
}

/// How many numbers are within the limit, how many there are, and their median.
fn count_within(mut numbers: Vec<i64>, limit: i64) -> (usize, usize, i64) {
    numbers.sort_unstable();
    let within = numbers.partition_point(|number| *number <= limit);
    (within, numbers.len(), numbers[numbers.len() / 2])
}

#[test]
fn delays_and_losses_of_all_packets_match_the_record_of_the_links() {
    if !is_privileged("delays_and_losses_of_all_packets_match_the_record_of_the_links") {
        return;
    }
    let lab = TwoSites::up("hops_record", LINK);
    let reflector = lab.reflector(Span::ZERO);
    let captures = Capture::at_both_ends(
        &lab,
        "delays_and_losses_of_all_packets_match_the_record_of_the_links",
    );
    let Some(captures) = captures else {
        return;
    };
    for scheme in ["icmp", "udp", "tcp"] {
        measure(lab.flow(scheme, Span::from_millis(10), 300));
    }
    drop(reflector);
    let ([first, second], until) = Capture::end_both(captures);
    let shifted_capture = shifted(second.clone(), 3 * SECOND, 40);
    let one_clock = reported_crossings([("a", &first), ("b", &second)], &["--clock", "same"]);
    let fitted = reported_crossings([("a", &first), ("c", &shifted_capture)], &[]);
    let record = recorded(lab);
    for (direction, name) in ["forward", "reverse"].iter().enumerate() {
        let both_runs = [&one_clock[direction], &fitted[direction]];
        assert_matches_the_record(name, both_runs, &record[direction], until);
    }
}

/// One direction, by one clock and by fitted ones, against the record until a moment.
fn assert_matches_the_record(
    name: &str,
    both_runs: [&Crossings; 2],
    record: &Crossings,
    until: i64,
) {
    for crossings in both_runs {
        let unmatched = crossings
            .iter()
            .filter(|(packet, _)| !record.contains_key(packet));
        let unmatched: Vec<_> = unmatched.collect();
        assert!(unmatched.is_empty(), "{name}: {unmatched:?}");
    }
    let (mut n, mut lost) = (0, 0);
    let (mut excesses, mut clock_differences) = (Vec::new(), Vec::new());
    for (packet, record) in record.iter().filter(|(_, crossing)| crossing.at < until) {
        let [crossed, fitted] = both_runs.map(|crossings| {
            let crossing = crossings.get(packet);
            crossing.unwrap_or_else(|| panic!("{name}: nothing is told of {record:?}"))
        });
        n += 1;
        lost += usize::from(record.delay.is_none());
        assert_eq!(
            crossed.delay.is_some(),
            record.delay.is_some(),
            "{crossed:?} {record:?}"
        );
        assert_eq!(fitted.delay.is_some(), record.delay.is_some(), "{fitted:?}");
        let (Some(delay), Some(fit), Some(truth)) = (crossed.delay, fitted.delay, record.delay)
        else {
            continue;
        };
        assert!(
            delay >= truth,
            "captured outside of the link: {crossed:?} {record:?}"
        );
        excesses.push(delay - truth);
        clock_differences.push((fit - delay).abs());
        // Shifted by the time since the file's first packet: at most a step of 40 ns is lost.
        assert!(
            (fit - delay).abs() <= fitted.bound + 40,
            "{crossed:?} {fitted:?}"
        );
    }
    let (within, _, median) = count_within(excesses, 50_000);
    println!(
        "{name}: {n} packets, {lost} lost; beyond the record {median} ns, {within} within 50 us"
    );
    let (within, n, median) = count_within(clock_differences, 5_000);
    println!("{name}: fitted against one clock {median} ns, {within} of {n} within 5 us");
}
