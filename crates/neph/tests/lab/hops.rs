//! `neph hops` over a link of the lab whose record says when each packet came and left.
//!
//! Between a capture and the record lies what no stamp tells: a packet is captured at a site before the
//! link's end has it, and behind the link after it left. So no delay may be shorter than the record's.

#![expect(clippy::print_stdout, reason = "a test tells what it measured")]

use neph_lab::{Record, Verdict};
use neph_model::Span;

use crate::clocks::{Capture, shifted};
use crate::points::{Files, told_packets};
use crate::stage::{TwoSites, measure, privileged};

const SECOND: i64 = 1_000_000_000;
const LINK: &str = "delay = \"2ms\"\nloss = \"2%\"";

/// A packet as it was told, or recorded.
#[derive(Debug, Clone, Copy)]
struct Crossed {
    /// When it came to the first point it passed, nanoseconds since 1970.
    at: i64,
    /// What the link took; `None` if it was lost.
    delay: Option<i64>,
    bound: i64,
}

/// What `neph hops` says of each packet there and back, in the order of their coming.
fn told(files: [&str; 2], more: &[&str]) -> [Vec<Crossed>; 2] {
    let mut crossed = [Vec::new(), Vec::new()];
    for line in told_packets(files, more) {
        let is_back = line["way"] == "back";
        let segment = &line["segments"][0];
        let of = Crossed {
            at: line["marks_unix_ns"][usize::from(is_back)]
                .as_i64()
                .expect("it passed the point where it began"),
            delay: segment["ns"].as_i64(),
            bound: segment["bound_ns"].as_i64().unwrap_or(0),
        };
        let is_lost = line["lost_in"] == 0;
        assert!(!is_lost || of.delay.is_none(), "{line}");
        crossed[usize::from(is_back)].push((of, is_lost));
    }
    crossed.map(|mut way: Vec<(Crossed, bool)>| {
        way.sort_by_key(|(of, _)| of.at);
        let last = way.last().expect("packets").0.at;
        for (of, is_lost) in &way {
            // Of the last ones nobody can say that they would not have come.
            assert!(
                of.delay.is_some() || *is_lost || of.at + SECOND > last,
                "{of:?}"
            );
        }
        way.into_iter().map(|(of, _)| of).collect()
    })
}

/// The same by the link's record.
fn recorded(lab: TwoSites) -> [Vec<Crossed>; 2] {
    let mut crossed = [Vec::new(), Vec::new()];
    for record in lab.records() {
        let Record::Packet {
            passing,
            verdict,
            left,
            ..
        } = record
        else {
            continue;
        };
        if !matches!(passing.identity.protocol, 1 | 6 | 17) {
            continue;
        }
        let is_delivered = verdict == Verdict::Delivered;
        crossed[usize::from(passing.direction)].push(Crossed {
            at: passing.arrival,
            delay: is_delivered.then_some(left - passing.arrival),
            bound: 0,
        });
    }
    for way in &mut crossed {
        way.sort_by_key(|of| of.at);
    }
    crossed
}

/// The share of numbers that is at most so large, and the number in the middle.
fn spread(mut numbers: Vec<i64>, most: i64) -> (usize, usize, i64) {
    numbers.sort_unstable();
    let within = numbers.partition_point(|number| *number <= most);
    (within, numbers.len(), numbers[numbers.len() / 2])
}

#[test]
fn every_packet_takes_what_the_links_record_says_and_the_lost_ones_are_those_it_lost() {
    if !privileged("every_packet_takes_what_the_links_record_says") {
        return;
    }
    let lab = TwoSites::up("hops_record", LINK);
    let reflector = lab.reflector(Span::ZERO);
    let Some([here, there]) = Capture::both(&lab, "every_packet_takes_what_the_links_record_says")
    else {
        return;
    };
    for scheme in ["icmp", "udp", "tcp"] {
        measure(lab.flow(scheme, Span::from_millis(10), 300));
    }
    drop(reflector);
    let (here, there) = (here.end(), there.end());
    let moved = shifted(there.clone(), 3 * SECOND, 40);
    let files = Files::of("hops-files", [("a", &here), ("b", &there), ("c", &moved)]);
    let [here, there, moved] = &files.paths;
    let one_clock = told([here, there], &["--clock", "same"]);
    let fitted = told([here, moved], &[]);
    drop(files);
    let record = recorded(lab);
    for (way, name) in ["there", "back"].iter().enumerate() {
        hold(name, (&one_clock[way], &fitted[way]), &record[way]);
    }
}

/// One direction, by one clock and by fitted ones, against the record.
fn hold(name: &str, (one, fitted): (&[Crossed], &[Crossed]), record: &[Crossed]) {
    assert_eq!(
        (one.len(), fitted.len()),
        (record.len(), record.len()),
        "{name}"
    );
    let (mut beyond, mut by_clock) = (Vec::new(), Vec::new());
    for ((one, fitted), record) in one.iter().zip(fitted).zip(record) {
        assert_eq!(
            one.delay.is_some(),
            record.delay.is_some(),
            "{one:?} {record:?}"
        );
        assert_eq!(fitted.delay.is_some(), record.delay.is_some(), "{fitted:?}");
        let (Some(delay), Some(fit), Some(truth)) = (one.delay, fitted.delay, record.delay) else {
            continue;
        };
        assert!(
            delay >= truth,
            "captured outside of the link: {one:?} {record:?}"
        );
        beyond.push(delay - truth);
        by_clock.push((fit - delay).abs());
        // Shifted by the time since the file's first packet: at most a step of 40 ns is lost.
        assert!(
            (fit - delay).abs() <= fitted.bound + 40,
            "{one:?} {fitted:?}"
        );
    }
    let lost = record.iter().filter(|of| of.delay.is_none()).count();
    let (within, n, median) = spread(beyond, 50_000);
    println!(
        "{name}: {n} packets, {lost} lost; beyond the record {median} ns, {within} within 50 us"
    );
    let (within, n, median) = spread(by_clock, 5_000);
    println!("{name}: fitted against one clock {median} ns, {within} of {n} within 5 us");
}
