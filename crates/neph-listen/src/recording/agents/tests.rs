//! Captures of two agents with different clocks, and of two agents with one kernel.

use std::fs;
use std::sync::atomic::AtomicBool;

use neph_capture::reading::snaplen::DEFAULT_SNAPLEN;
use neph_model::{ByteSize, Stop, Wall};
use neph_wire::capture::{ETHERNET, pcap_header, pcap_record};

use super::super::RecordingOptions;
use super::super::point_text::Point;
use super::super::started_capture::KERNEL;
use super::*;
use crate::{CaptureFile, PacketFilter};

const SECOND: i64 = 1_000_000_000;

fn options() -> RecordingOptions {
    RecordingOptions {
        duration: None,
        count: None,
        save: None,
        limit: ByteSize(1 << 20),
        packet_filter: PacketFilter::default(),
        snaplen: DEFAULT_SNAPLEN,
        ring: ByteSize(2 << 20),
    }
}

/// Without a receiver of samples.
const fn shared<'a>(
    options: &'a RecordingOptions,
    is_over: &'a AtomicBool,
    stop: &'a Stop,
) -> SharedState<'a> {
    SharedState {
        options,
        is_over,
        stop,
        live: None,
    }
}

fn at(seconds: i64) -> Wall {
    Wall::from_unix_nanos(seconds * SECOND)
}

/// A capture with a packet at each of `seconds`, by a clock that is `clock_offset_s` seconds ahead.
fn captured(kernel: &str, seconds: &[i64], clock_offset_s: i64) -> (Captured, Vec<u8>) {
    let mut bytes = pcap_header(ETHERNET, 64).to_vec();
    for second in seconds {
        bytes.extend(pcap_record((second + clock_offset_s) * SECOND, 60, 1500));
        bytes.extend([7; 60]);
    }
    let captured = Captured {
        kernel: kernel.to_owned(),
        packets: seconds.len() as u64,
        listened: Some([at(clock_offset_s), at(99 + clock_offset_s)]),
        clock: vec![ClockReading {
            at: at(clock_offset_s),
            offset: Span::from_secs(clock_offset_s),
            bound: Span::from_micros(300),
        }],
        ..Captured::default()
    };
    (captured, bytes)
}

/// Records these captures, each at the agent with this letter.
fn record_captures(captures: &[(&str, (Captured, Vec<u8>))]) -> Vec<(PointRecording, Vec<u8>)> {
    let folder = tempfile::tempdir().expect("a folder");
    let no_namespaces = |_: &str| Err(String::new());
    let names = captures
        .iter()
        .map(|(agent, _)| format!("agent:{agent}/eth0"));
    let points: Vec<Point> = names
        .map(|text| {
            Point::parse(&text, &no_namespaces)
                .expect("a point")
                .expect("live")
        })
        .collect();
    let tally = |_| Tally::new(u64::MAX, u64::MAX);
    let tallies: Vec<Tally> = captures.iter().map(tally).collect();
    let (options, is_over, stop) = (options(), AtomicBool::new(false), Stop::new());
    let shared = shared(&options, &is_over, &stop);
    let started = points.iter().zip(&tallies).map(|(point, tally)| {
        let path = folder.path().join(&point.name);
        StartedCapture {
            point,
            file: CaptureFile::create(&path).expect("a new file"),
            path,
            tally,
        }
    });
    let mut agent_points = AgentPoints::of(started.enumerate().collect(), shared);
    assert_eq!(agent_points.captures().len(), captures.len());
    for (index, (_, (captured, bytes))) in captures.iter().enumerate() {
        let received_path = folder.path().join("came");
        fs::write(&received_path, bytes).expect("writable");
        agent_points.ended(index, Ok((captured.clone(), &received_path)));
    }
    let outcomes = agent_points.finish().into_iter();
    let each = outcomes.map(|(_, outcome)| {
        assert_eq!(outcome.fault, None);
        let bytes = fs::read(&outcome.recorded.file).expect("it is there");
        (outcome.recorded, bytes)
    });
    each.collect()
}

#[test]
fn a_capture_of_a_fast_clock_is_converted_to_local_time() {
    let recordings = record_captures(&[("a", captured("k", &[10, 11], 7))]);
    let (recorded, bytes) = &recordings[0];
    assert_eq!(*bytes, captured("k", &[10, 11], 0).1);
    assert_eq!(recorded.listened, Some([at(0), at(99)]));
    assert_eq!((recorded.packets, recorded.lost), (2, Some(0)));
    assert_eq!(recorded.clock[0].at, at(0));
    assert_eq!(recorded.clock[0].offset, Span::ZERO);
    assert_eq!(recorded.clock[0].bound, Span::from_micros(300));
}

#[test]
fn captures_of_one_kernel_are_shifted_by_one_offset() {
    let (mut other, bytes) = captured("k", &[10], 7);
    other.clock[0].offset = Span::from_secs(8);
    let recordings = record_captures(&[("a", captured("k", &[10], 7)), ("b", (other, bytes))]);
    assert_eq!(recordings[0].1, recordings[1].1);
    assert_eq!(recordings[1].0.clock[0].offset, Span::from_secs(1));
    let boot_id = fs::read_to_string(KERNEL).expect("every kernel has one");
    let recordings = record_captures(&[("a", captured(boot_id.trim(), &[10], 7))]);
    assert_eq!(
        recordings[0].1,
        captured("", &[10], 7).1,
        "its clock is ours"
    );
}

#[test]
fn an_invalid_or_missing_capture_is_a_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let no_namespaces = |_: &str| Err(String::new());
    let point = Point::parse("agent:a/eth0", &no_namespaces).expect("a point");
    let (point, tally) = (point.expect("live"), Tally::new(u64::MAX, u64::MAX));
    let (options, is_over, stop) = (options(), AtomicBool::new(false), Stop::new());
    let shared = shared(&options, &is_over, &stop);
    for bytes in [b"Welcome to db1!\n".as_slice(), b"\xa1\xb2\xc3\xd4", &[]] {
        let path = folder.path().join("own");
        let started = StartedCapture {
            point: &point,
            file: CaptureFile::create(&path).expect("a new file"),
            path: path.clone(),
            tally: &tally,
        };
        let mut agent_points = AgentPoints::of(vec![(0, started)], shared);
        let received_path = folder.path().join("came");
        fs::write(&received_path, bytes).expect("writable");
        let (captured, _) = captured("k", &[], 7);
        if !bytes.is_empty() {
            agent_points.ended(0, Ok((captured, &received_path)));
        }
        let outcomes = agent_points.finish();
        let is_fault = outcomes[0].1.fault.is_some();
        assert_eq!(is_fault, bytes.len() != 4, "{bytes:?}");
        assert!(outcomes[0].1.recorded.packets == 0 && tally.has_ended());
        fs::remove_file(path).expect("it is there");
    }
}
