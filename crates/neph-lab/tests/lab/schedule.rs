//! Several paths and changes in time, seen from the sites.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::time::Duration;

use neph_lab::{Lab, Record, Recording, ScheduleEvent, TruthFile, UpOptions, Verdict};
use neph_sys::deadline::{Deadline, Stopwatch};
use neph_sys::netns::with_namespace;

use crate::support::{lab_lock, lab_name, two_sites};

/// A socket at `site` that gives up after a second.
fn udp(lab: &Lab, site: &str) -> UdpSocket {
    let address = lab.addresses(site).expect("there")[0];
    let socket = with_namespace(&lab.namespace(site).expect("there"), || {
        UdpSocket::bind((address, 0))
    });
    let socket = socket.expect("enter").expect("bind");
    let second = Some(Duration::from_secs(1));
    socket.set_read_timeout(second).expect("timeout");
    socket
}

/// How long a datagram takes from one socket to the other.
fn transit_time(from: &UdpSocket, to: &UdpSocket) -> Duration {
    let target = to.local_addr().expect("address");
    let start = Stopwatch::start();
    from.send_to(b"there", target).expect("send");
    to.recv(&mut [0; 16]).expect("it arrives");
    start.elapsed()
}

fn millis(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1e3
}

#[test]
fn flows_take_one_of_two_paths_and_stay_there() {
    let Some(_lock) = lab_lock("flows_take_one_of_two_paths_and_stay_there") else {
        return;
    };
    let text = "[[link.path]]\ndelay = \"8ms\"\n[[link.path]]\ndelay = \"40ms\"";
    let folder = tempfile::tempdir().expect("a folder");
    let options = UpOptions {
        truth: Some(Recording {
            folder: folder.path().into(),
            every: NonZeroU32::MIN,
        }),
        ..UpOptions::with_name(lab_name('x'))
    };
    let lab = Lab::up(&two_sites(text), &options).expect("up");
    let to = udp(&lab, "s1");
    let mut taken: BTreeMap<u16, Vec<f64>> = BTreeMap::new();
    // Kept open, so that each has a port of its own.
    let sockets: Vec<UdpSocket> = (0..20).map(|_| udp(&lab, "s0")).collect();
    for from in &sockets {
        let port = from.local_addr().expect("address").port();
        let delays = (0..3).map(|_| millis(transit_time(from, &to)));
        taken.insert(port, delays.collect());
    }
    lab.down().expect("down");
    let mut paths: BTreeMap<u16, BTreeSet<u8>> = BTreeMap::new();
    for record in TruthFile::open(&folder.path().join("path0.truth")).expect("open") {
        if let Record::Packet {
            passage,
            handling,
            due,
            ..
        } = record.expect("fine")
            && taken.contains_key(&passage.identity.source_port)
        {
            let path = handling.path.expect("nothing is dropped");
            let expected = if path == 0 { 8_000 } else { 40_000 };
            let actual = (due - passage.arrival) / 1_000;
            assert!((actual - expected).abs() < 50, "{actual} us on path {path}");
            let of_port = paths.entry(passage.identity.source_port);
            of_port.or_default().insert(path);
        }
    }
    assert!(paths.len() == 20 && paths.values().all(|paths| paths.len() == 1));
    for (path, expected) in [(0, 8.0), (1, 40.0)] {
        let ports = taken.iter().filter(|(port, _)| paths[port].contains(&path));
        let mut delays: Vec<f64> = ports.flat_map(|(_, delays)| delays.clone()).collect();
        delays.sort_by(f64::total_cmp);
        assert!((9..=51).contains(&delays.len()), "{path}: {delays:?}");
        // The machine may stop for a while; not each time.
        assert!(
            (expected..expected + 10.0).contains(&delays[0]),
            "{path}: {delays:?}"
        );
    }
}

#[test]
fn schedule_times_count_from_each_cue() {
    let Some(_lock) = lab_lock("schedule_times_count_from_each_cue") else {
        return;
    };
    let text = "delay = \"1ms\"\n[[link.schedule]]\nat = \"300ms\"\nuntil = \"600ms\"\n\
                direction = \"a_to_b\"\ndelay = \"50ms\"";
    let folder = tempfile::tempdir().expect("a folder");
    let options = UpOptions {
        truth: Some(Recording {
            folder: folder.path().into(),
            every: NonZeroU32::MIN,
        }),
        ..UpOptions::with_name(lab_name('y'))
    };
    let lab = Lab::up(&two_sites(text), &options).expect("up");
    let (from, to) = (udp(&lab, "s0"), udp(&lab, "s1"));
    for _ in 0..2 {
        lab.cue();
        let start = Stopwatch::start();
        let mut waits = [Vec::new(), Vec::new()];
        while start.elapsed() < Duration::from_millis(800) {
            let sent = millis(start.elapsed());
            let delay = millis(transit_time(&from, &to));
            if (310.0..590.0).contains(&sent) {
                waits[1].push(delay);
            } else if !(290.0..610.0).contains(&sent) {
                waits[0].push(delay);
            }
            transit_time(&to, &from);
        }
        for (waits, expected) in waits.iter_mut().zip([1.0, 50.0]) {
            waits.sort_by(f64::total_cmp);
            // The machine may stop for a while; not each time. The record has the rest.
            assert!((expected..expected + 10.0).contains(&waits[0]), "{waits:?}");
        }
    }
    lab.down().expect("down");
    let records = TruthFile::open(&folder.path().join("path0.truth")).expect("open");
    assert_times_count_from_the_cue(records.map(|record| record.expect("fine")));
}

/// Every packet kept the delay of its moment, to the microseconds that two readings of two clocks
/// differ by, and the steps came about at theirs.
fn assert_times_count_from_the_cue(records: impl Iterator<Item = Record>) {
    let (mut cue, mut steps, mut slowed) = (0, Vec::new(), 0);
    for record in records {
        match record {
            Record::Cue { at } => cue = at,
            Record::Step {
                direction,
                number,
                event,
                at,
            } => {
                assert_eq!((direction, number), (0, 0));
                steps.push((event, (at - cue + 500_000) / 1_000_000));
            }
            Record::Packet {
                passage,
                verdict: Verdict::Delivered,
                due,
                ..
            } => {
                let since_cue = (passage.arrival - cue) / 1_000_000;
                let slow = passage.direction == 0 && (300..600).contains(&since_cue);
                let expected = if slow { 50_000 } else { 1_000 };
                let actual = (due - passage.arrival) / 1_000;
                let turning = [299, 300, 599, 600].contains(&since_cue);
                assert!(
                    turning || (actual - expected).abs() < 50,
                    "{actual} us at {since_cue} ms"
                );
                slowed += u32::from(slow);
            }
            _ => {}
        }
    }
    let turns = [(ScheduleEvent::Begins, 300), (ScheduleEvent::Ends, 600)];
    assert_eq!(steps, [turns, turns].concat());
    assert!(slowed >= 6, "{slowed} packets found the change");
}

#[test]
fn an_unused_link_records_its_scheduled_changes() {
    let test = "an_unused_link_records_its_scheduled_changes";
    let Some(_lock) = lab_lock(test) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let options = UpOptions {
        truth: Some(Recording {
            folder: folder.path().into(),
            every: NonZeroU32::MIN,
        }),
        ..UpOptions::with_name(lab_name('z'))
    };
    let changing = "[[link.schedule]]\nat = \"50ms\"\ndelay = \"5ms\"";
    let lab = Lab::up(&two_sites(changing), &options).expect("up");
    let path = folder.path().join("path0.truth");
    let steps = || {
        // Its header may not be in it yet.
        let records = TruthFile::open(&path).into_iter().flatten();
        records
            .filter(|record| matches!(record, Ok(Record::Step { .. })))
            .count()
    };
    let deadline = Deadline::after(Duration::from_secs(5));
    while steps() < 2 {
        assert!(!deadline.has_passed(), "both directions: {}", steps());
        std::thread::yield_now();
    }
    lab.down().expect("down");
}
