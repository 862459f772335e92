//! What tshark says of a capture and what we say, segment by segment.
//!
//! `NEPH_FLOWS=100000 cargo test --release -p neph-capture --test tshark` compares so many flows.

mod passed;
mod spurious;
mod traffic;
mod windows;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};

use neph_capture::{
    Event, FlowName, Half, Limits, Listener, Method, Sample, Side, Table, read_capture,
};
use neph_model::Wall;
use neph_wire::dissect::dissect;
use passed::PassedSegments;
use traffic::{TrafficSpec, Truth, pcap_header, pcap_packet, traffic};

/// The results for one segment: a round trip in nanoseconds, and events.
#[derive(Debug, Default, Clone, PartialEq)]
struct SegmentResult {
    round_trip: Option<i64>,
    events: Vec<&'static str>,
}

const FIELDS: [(&str, &str); 9] = [
    ("tcp.analysis.retransmission", "retransmission"),
    ("tcp.analysis.fast_retransmission", "fast"),
    ("tcp.analysis.spurious_retransmission", "spurious"),
    ("tcp.analysis.out_of_order", "out of order"),
    ("tcp.analysis.duplicate_ack", "duplicate ack"),
    ("tcp.analysis.zero_window", "zero window"),
    ("tcp.analysis.lost_segment", "gap"),
    ("tcp.analysis.keep_alive", "keep alive"),
    ("tcp.analysis.zero_window_probe", "probe"),
];

fn event_name(event: Event) -> Option<&'static str> {
    match event {
        Event::Retransmission => Some("retransmission"),
        Event::FastRetransmission => Some("fast"),
        Event::SpuriousRetransmission => Some("spurious"),
        Event::OutOfOrder => Some("out of order"),
        Event::RepeatedAcknowledgement => Some("duplicate ack"),
        Event::ZeroWindow => Some("zero window"),
        Event::Gap => Some("gap"),
        Event::KeepAlive => Some("keep alive"),
        Event::WindowProbe => Some("probe"),
        Event::AcknowledgedUnseen | Event::Reset => None,
    }
}

/// Of the segment that is looked at.
#[derive(Default)]
struct SegmentReport {
    report: SegmentResult,
    halves: [u64; 2],
}

impl Listener for SegmentReport {
    fn sample(&mut self, _: &FlowName, sample: &Sample) {
        self.halves[sample.half as usize] += 1;
        if sample.method == Method::Acknowledgement {
            self.report.round_trip = Some(sample.round_trip.nanos());
        }
    }
    fn event(&mut self, _: &FlowName, _: Wall, _: Side, event: Event) {
        self.report.events.extend(event_name(event));
    }
}

fn neph_reports(capture: &mut impl Read) -> Vec<SegmentResult> {
    let (mut table, mut listener) = (Table::new(Limits::default()), SegmentReport::default());
    let mut reports = Vec::new();
    read_capture(capture, |record| {
        let at = Wall::from_unix_nanos(record.at.expect("pcap has times"));
        if let Some(packet) = dissect(record.link, record.bytes, record.length) {
            table.add_packet(at, &packet, &mut listener);
            table.flush(&mut listener);
        }
        let mut report = std::mem::take(&mut listener.report);
        report.events.sort_unstable();
        reports.push(report);
        ControlFlow::Continue(())
    });
    assert!(
        listener.halves[Half::Client as usize] > 0 && listener.halves[Half::Server as usize] > 0
    );
    reports
}

fn tshark_reports(capture: &Path) -> Option<Vec<SegmentResult>> {
    let fields: Vec<&str> = FIELDS.iter().map(|(field, _)| *field).collect();
    let lines = run_tshark(capture, &[&["tcp.analysis.ack_rtt"], &fields[..]].concat())?;
    Some(lines.iter().map(|line| parse_line(line)).collect())
}

/// These fields of each packet, with bars between them; `None` where tshark is not installed.
#[expect(clippy::disallowed_methods, reason = "this crate may not use neph-sys")]
fn run_tshark(capture: &Path, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(capture);
    command.args(["-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let lines = BufReader::new(child.stdout.take()?).lines();
    let output_lines = lines.map(|line| line.expect("text")).collect();
    assert!(child.wait().expect("ended").success(), "tshark refused");
    Some(output_lines)
}

fn parse_line(line: &str) -> SegmentResult {
    let mut fields = line.split('|');
    let seconds = fields.next().unwrap_or_default();
    let round_trip = (!seconds.is_empty()).then(|| nanos(seconds));
    let marked = FIELDS
        .iter()
        .zip(fields)
        .filter(|(_, field)| !field.is_empty());
    let mut events: Vec<_> = marked.map(|((_, event), _)| *event).collect();
    // What is fast or spurious is a retransmission too, there.
    if events
        .iter()
        .any(|event| ["fast", "spurious"].contains(event))
    {
        events.retain(|event| *event != "retransmission");
    }
    events.sort_unstable();
    SegmentResult { round_trip, events }
}

fn nanos(seconds: &str) -> i64 {
    let (integer, part) = seconds.split_once('.').expect("a fraction");
    let part = format!("{part:0<9}");
    integer.parse::<i64>().expect("a number") * 1_000_000_000
        + part.parse::<i64>().expect("a number")
}

/// Writes a capture into `path`; tells what its packets really are.
fn write(path: &Path, spec: TrafficSpec) -> Vec<Truth> {
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    let mut truths = Vec::new();
    pcap_header(&mut file).expect("written");
    traffic(spec, |captured| {
        pcap_packet(&captured, &mut file).expect("written");
        truths.push(captured.truth);
    });
    file.flush().expect("written");
    truths
}

#[test]
fn every_round_trip_and_mark_is_that_of_tshark_or_is_right() {
    let flows = std::env::var("NEPH_FLOWS").map_or(300, |flows| flows.parse().expect("a number"));
    let seed = std::env::var("NEPH_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let folder = std::env::temp_dir().join(format!("neph-tshark-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("traffic.pcap");
    let truths = write(
        &path,
        TrafficSpec {
            flows,
            requests: 6,
            spacing_nanos: 20_000_000,
            seed,
            is_clean: false,
        },
    );
    let theirs = tshark_reports(&path);
    let ours = neph_reports(&mut File::open(&path).expect("written"));
    if std::env::var_os("NEPH_KEEP").is_none() {
        std::fs::remove_dir_all(&folder).expect("removed");
    }
    let Some(theirs) = theirs else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "tshark");
        println!("SKIP: tshark is not installed");
        return;
    };
    assert_eq!((ours.len(), theirs.len()), (truths.len(), truths.len()));
    let (mut passed_segments, mut counts, mut explained) =
        (PassedSegments::default(), Counts::new(), Counts::new());
    let mut unexplained = Vec::new();
    for (index, truth) in truths.iter().enumerate() {
        let (ours, theirs) = (&ours[index], &theirs[index]);
        passed_segments.add(truth, theirs);
        let events = theirs.events.iter().copied();
        for event in events.chain(theirs.round_trip.map(|_| "round trip")) {
            *counts.entry(event).or_default() += 1;
        }
        for (difference, reason) in differences(ours, theirs, truth, &passed_segments) {
            match reason {
                Some(reason) => *explained.entry(reason).or_default() += 1,
                None => unexplained.push((index + 1, difference)),
            }
        }
    }
    println!("{} segments, {counts:?}", truths.len());
    println!("differences that are explained: {explained:#?}");
    let late = explained.get(LATE).copied().unwrap_or(0);
    assert!(late * 10_000 <= truths.len() as u64, "{late} by time alone");
    let some = &unexplained[..unexplained.len().min(200)];
    assert!(
        unexplained.is_empty(),
        "{} not explained: {some:?}",
        unexplained.len()
    );
}

type Counts = BTreeMap<&'static str, u64>;

/// Neph is wrong: only time could tell, and what was overtaken came late or what was sent again soon.
const LATE: &str = "only time could tell, and misled";

/// Events of one side that the other side does not report.
fn only_in<'s>(side: &'s SegmentResult, other: &SegmentResult) -> Vec<&'s str> {
    let events = side.events.iter().copied();
    events
        .filter(|event| !other.events.contains(event))
        .collect()
}

/// What differs, and why that is right or at least known (docs/passive.md).
fn differences(
    ours: &SegmentResult,
    theirs: &SegmentResult,
    truth: &Truth,
    past: &PassedSegments,
) -> Vec<(String, Option<&'static str>)> {
    let mut differences = Vec::new();
    if ours.round_trip != theirs.round_trip {
        let reason = match (ours.round_trip, theirs.round_trip) {
            (None, Some(_)) if past.answers_retransmission(truth) => Some("Karn"),
            (None, Some(_)) if past.answers_late_data(truth) => Some("waited for what was lost"),
            (None, Some(_)) if past.answers_a_probe(truth) => Some("to a window probe"),
            (Some(ours), Some(theirs)) if ours < theirs && past.answers_retransmission(truth) => {
                Some("behind a window probe")
            }
            (Some(_), None) if truth.ack == Some(1) && past.is_syn_retransmitted(truth) => {
                Some("SYN-ACK behind a second SYN")
            }
            _ => None,
        };
        let difference = format!("{:?}, theirs {:?}", ours.round_trip, theirs.round_trip);
        differences.push((difference, reason));
    }
    if ours.events != theirs.events {
        let reason = match (&only_in(ours, theirs)[..], &only_in(theirs, ours)[..]) {
            (["spurious"], ["retransmission" | "out of order" | "fast"])
                if past.is_acknowledged(truth) =>
            {
                Some("was acknowledged")
            }
            (["retransmission"], ["out of order"]) if truth.is_repeated => Some("was sent again"),
            (["retransmission"], []) if past.old_highest == truth.range.0 + 1 => {
                Some("takes a probe's byte along")
            }
            (["out of order"], ["retransmission"]) if !truth.is_repeated => Some("was overtaken"),
            (["zero window"], []) if theirs.events.contains(&"probe") => {
                Some("probe without window")
            }
            (["retransmission"], ["fast"]) if past.was_requested_needlessly(truth) => {
                Some("asked for before it was on its way")
            }
            (["retransmission"], ["fast"]) if past.is_requested_by_new_packet(truth) => {
                Some("asked for longer ago")
            }
            (["retransmission"], []) if truth.is_repeated && past.old_highest > truth.range.0 => {
                Some("was sent again, and tshark is silent")
            }
            (["out of order"], []) if !truth.is_repeated && past.old_highest > truth.range.0 => {
                Some("was overtaken, and tshark is silent")
            }
            ([], ["gap"]) if past.old_highest >= truth.range.0 => Some("a probe's byte was taken"),
            (["retransmission"], ["out of order"])
            | (["out of order"], ["retransmission" | "fast"]) => Some(LATE),
            ([], ["duplicate ack"]) if past.has_lower_ack(truth) => Some("was overtaken by more"),
            ([], ["duplicate ack"]) if !past.awaits(truth) => Some("nothing on its way"),
            _ => None,
        };
        let difference = format!("{:?}, theirs {:?}", ours.events, theirs.events);
        differences.push((difference, reason));
    }
    differences
}
