//! Several paths and changes in time, seen from the sites.

use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use neph_lab::{Lab, Record, Recording, TruthFile, Turn, UpOptions};
use neph_sys::netns::with_namespace;

use crate::support::{name, pair, turn};

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
fn takes(from: &UdpSocket, to: &UdpSocket) -> Duration {
    let target = to.local_addr().expect("address");
    let start = Instant::now();
    from.send_to(b"there", target).expect("send");
    to.recv(&mut [0; 16]).expect("it arrives");
    start.elapsed()
}

fn millis(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1e3
}

#[test]
fn flows_take_one_of_two_paths_and_stay_there() {
    let Some(_turn) = turn("flows_take_one_of_two_paths_and_stay_there") else {
        return;
    };
    let text = "[[link.path]]\ndelay = \"8ms\"\n[[link.path]]\ndelay = \"40ms\"";
    let folder = tempfile::tempdir().expect("a folder");
    let options = UpOptions {
        truth: Some(Recording {
            folder: folder.path().into(),
            every: NonZeroU32::MIN,
        }),
        ..UpOptions::named(name('x'))
    };
    let lab = Lab::up(&pair(text), &options).expect("up");
    let to = udp(&lab, "s1");
    let mut slow = Vec::new();
    for _ in 0..20 {
        let from = udp(&lab, "s0");
        let delays = [takes(&from, &to), takes(&from, &to)].map(millis);
        let port = from.local_addr().expect("address").port();
        let long = delays[0] > 30.0;
        for delay in delays {
            let asked = if long { 40.0 } else { 8.0 };
            assert!((asked..asked + 10.0).contains(&delay), "{delays:?}");
        }
        slow.push((port, u8::from(long)));
    }
    lab.down().expect("down");
    let count: u8 = slow.iter().map(|(_, path)| path).sum();
    assert!((3..=17).contains(&count), "{count} of 20 on the long path");
    for record in TruthFile::open(&folder.path().join("path0.truth")).expect("open") {
        if let Record::Packet {
            passing, handling, ..
        } = record.expect("fine")
            && let Some((_, path)) = slow
                .iter()
                .find(|(port, _)| *port == passing.identity.source_port)
        {
            assert_eq!(handling.path, Some(*path));
        }
    }
}

#[test]
fn verify_knows_which_path_its_packets_take() {
    let Some(_turn) = turn("verify_knows_which_path_its_packets_take") else {
        return;
    };
    let text = "[[link.path]]\ndelay = \"8ms\"\n[[link.path]]\ndelay = \"40ms\"";
    let lab = Lab::up(&pair(text), &UpOptions::named(name('w'))).expect("up");
    let mut asked = std::collections::BTreeSet::new();
    for _ in 0..20 {
        for check in neph_lab::verify_link(&lab, 0).expect("verify") {
            let measured = check.delay.measured.expect("nothing is lost").median;
            let apart = (measured - check.delay.asked.median).abs();
            assert!(apart < neph_model::Span::from_millis(5), "{check:?}");
            asked.insert(check.delay.asked.median);
        }
        if asked.len() == 2 {
            break;
        }
    }
    lab.down().expect("down");
    assert_eq!(asked.len(), 2, "each path is taken sooner or later");
}

#[test]
fn a_schedule_keeps_time_from_each_cue() {
    let Some(_turn) = turn("a_schedule_keeps_time_from_each_cue") else {
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
        ..UpOptions::named(name('y'))
    };
    let lab = Lab::up(&pair(text), &options).expect("up");
    let (from, to) = (udp(&lab, "s0"), udp(&lab, "s1"));
    for _ in 0..2 {
        lab.cue();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(800) {
            let sent = millis(start.elapsed());
            let delay = millis(takes(&from, &to));
            // Around the turns, what the machine does is longer than what is asked.
            if (310.0..590.0).contains(&sent) {
                assert!((50.0..60.0).contains(&delay), "{delay} ms at {sent}");
            } else if !(290.0..610.0).contains(&sent) {
                assert!((1.0..11.0).contains(&delay), "{delay} ms at {sent}");
            }
            std::thread::sleep(Duration::from_millis(10));
            assert!(
                millis(takes(&to, &from)) < 11.0,
                "the way back is as it was"
            );
        }
    }
    lab.down().expect("down");
    let records = TruthFile::open(&folder.path().join("path0.truth")).expect("open");
    let mut cue = 0;
    let mut steps = Vec::new();
    for record in records {
        match record.expect("fine") {
            Record::Cue { at } => cue = at,
            Record::Step {
                direction,
                number,
                turn,
                at,
            } => {
                assert_eq!((direction, number), (0, 0));
                steps.push((turn, (at - cue + 500_000) / 1_000_000));
            }
            _ => {}
        }
    }
    let each = [(Turn::Begins, 300), (Turn::Ends, 600)];
    assert_eq!(steps, [each, each].concat());
}

#[test]
fn a_link_that_nobody_uses_writes_its_changes_down_all_the_same() {
    let test = "a_link_that_nobody_uses_writes_its_changes_down_all_the_same";
    let Some(_turn) = turn(test) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let options = UpOptions {
        truth: Some(Recording {
            folder: folder.path().into(),
            every: NonZeroU32::MIN,
        }),
        ..UpOptions::named(name('z'))
    };
    let changing = "[[link.schedule]]\nat = \"50ms\"\ndelay = \"5ms\"";
    let lab = Lab::up(&pair(changing), &options).expect("up");
    let path = folder.path().join("path0.truth");
    let steps = || {
        // Its header may not be in it yet.
        let records = TruthFile::open(&path).into_iter().flatten();
        records
            .filter(|record| matches!(record, Ok(Record::Step { .. })))
            .count()
    };
    let deadline = Instant::now() + Duration::from_secs(5);
    while steps() < 2 {
        assert!(Instant::now() < deadline, "both directions: {}", steps());
        std::thread::yield_now();
    }
    lab.down().expect("down");
}
