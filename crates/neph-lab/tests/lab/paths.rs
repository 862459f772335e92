//! Flows that are moved from path to path, seen by their receivers and in the record.

use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use neph_lab::{
    FlowKey, Lab, Record, Recording, ScheduleEvent, TruthFile, UpOptions, evaluate_flows,
};
use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::netns::with_namespace;

use crate::support::{lab_lock, lab_name, two_sites};

fn udp(lab: &Lab, site: &str) -> UdpSocket {
    let address = lab.addresses(site).expect("there")[0];
    let socket = with_namespace(&lab.namespace(site).expect("there"), || {
        UdpSocket::bind((address, 0))
    });
    let socket = socket.expect("enter").expect("bind");
    let timeout = Some(Duration::from_millis(500));
    socket.set_read_timeout(timeout).expect("timeout");
    socket
}

fn port(socket: &UdpSocket) -> u16 {
    socket.local_addr().expect("address").port()
}

fn recording_options(letter: char, folder: &Path) -> UpOptions {
    UpOptions {
        truth: Some(Recording {
            folder: folder.into(),
            every: NonZeroU32::MIN,
        }),
        ..UpOptions::with_name(lab_name(letter))
    }
}

fn records(folder: &Path) -> Vec<Record> {
    let file = TruthFile::open(&folder.join("path0.truth")).expect("open");
    file.map(|record| record.expect("fine")).collect()
}

/// Sends a number from each of `flows` every `step` milliseconds, `rounds` times, to `to`.
fn send(flows: &[UdpSocket], to: &UdpSocket, (step, rounds): (i64, u32)) {
    let (target, start) = (to.local_addr().expect("address"), clock::raw().0);
    for round in 0..rounds {
        let due = start + i64::from(round) * step * 1_000_000;
        clock::sleep_until(RawNanos(due), Spin::NONE);
        for flow in flows {
            flow.send_to(&round.to_be_bytes(), target).expect("send");
        }
    }
}

#[test]
fn a_flow_moved_to_a_shorter_path_is_reordered_as_recorded() {
    let test = "a_flow_moved_to_a_shorter_path_is_reordered_as_recorded";
    let Some(_lock) = lab_lock(test) else { return };
    let swap = "[[link.path]]\nname = \"long\"\ndelay = \"40ms\"\n\
                [[link.path]]\nname = \"short\"\ndelay = \"5ms\"\nweight = 0\n\
                [[link.schedule]]\nat = \"300ms\"\npath = \"long\"\nweight = 0\n\
                [[link.schedule]]\nat = \"300ms\"\npath = \"short\"\nweight = 1\n";
    let folder = tempfile::tempdir().expect("a folder");
    let lab = Lab::up(&two_sites(swap), &recording_options('g', folder.path())).expect("up");
    let (from, to) = (udp(&lab, "s0"), udp(&lab, "s1"));
    lab.cue();
    let flows = [from];
    // Read while they come: the kernel holds some 250 for a socket.
    let received = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut received, mut number) = (Vec::new(), [0; 4]);
            while received.len() < 300 && to.recv(&mut number).is_ok() {
                received.push(u32::from_be_bytes(number));
            }
            received
        });
        send(&flows, &to, (2, 300));
        reader.join().expect("read")
    });
    lab.down().expect("down");
    assert_eq!(received.len(), 300, "nothing is lost");
    let mut latest = 0;
    let mut out_of_order = 0_u64;
    for number in received {
        out_of_order += u64::from(number < latest);
        latest = latest.max(number);
    }
    let key = FlowKey {
        direction: 0,
        protocol: 17,
        source_port: port(&flows[0]),
        destination_port: port(&to),
    };
    let truth = &evaluate_flows(records(folder.path()))[&key];
    let paths: Vec<u8> = truth.segments.iter().map(|segment| segment.path).collect();
    assert_eq!(paths, [0, 1], "{truth:?}");
    assert_eq!(truth.reordered(), out_of_order, "{truth:?}");
    assert_eq!(
        truth.segments[0].reordered, out_of_order,
        "those on the long path"
    );
    // Those of the last 35 ms before the change, one every 2 ms; a busy sender sends fewer then.
    assert!((1..=19).contains(&out_of_order), "{out_of_order}");
}

#[test]
fn a_controller_moves_flows_in_its_rounds_and_at_no_other_time() {
    let test = "a_controller_moves_flows_in_its_rounds_and_at_no_other_time";
    let Some(_lock) = lab_lock(test) else { return };
    let engineered = "splitting = \"rendezvous\"\n[[link.path]]\ndelay = \"2ms\"\n\
                      [[link.path]]\ndelay = \"4ms\"\n[link.engineering]\nevery = \"200ms\"\n\
                      period = \"200ms\"\nswing = \"95%\"\npreference = 0\n";
    let folder = tempfile::tempdir().expect("a folder");
    let lab = Lab::up(
        &two_sites(engineered),
        &recording_options('h', folder.path()),
    )
    .expect("up");
    let to = udp(&lab, "s1");
    let flows: Vec<UdpSocket> = (0..40).map(|_| udp(&lab, "s0")).collect();
    lab.cue();
    send(&flows, &to, (10, 110));
    lab.down().expect("down");
    let records = records(folder.path());
    let (mut cue, mut rounds) = (0, Vec::new());
    for record in &records {
        match record {
            Record::Cue { at } => (cue, rounds) = (*at, Vec::new()),
            Record::Step {
                direction: 0,
                event: ScheduleEvent::Rebalances,
                number: 0,
                at,
            } => rounds.push(*at),
            Record::Step { direction: 0, .. } => panic!("{record:?}"),
            _ => {}
        }
    }
    assert!(rounds.len() >= 5, "{rounds:?}");
    for (round, at) in (1_i64..).zip(&rounds) {
        let error = at - cue - round * 200_000_000;
        assert!(error.abs() < 50_000, "round {round} is {error} ns off");
    }
    let flows = evaluate_flows(records);
    let flows = flows
        .iter()
        .filter(|(key, _)| key.direction == 0 && key.protocol == 17);
    let mut changes = 0;
    for (key, flow) in flows {
        for segments in flow.segments.windows(2) {
            changes += 1;
            // Two clocks are read for it, some microseconds apart.
            let mut round_windows = rounds.iter().map(|at| (at + 50_000, at - 50_000));
            assert!(
                round_windows.any(|(after, before)| segments[0].last_arrival < after
                    && before < segments[1].first_arrival),
                "{key:?} moved from {} to {} in no round",
                segments[0].last_arrival,
                segments[1].first_arrival
            );
        }
    }
    assert!(changes > 0, "none of 40 flows was moved");
}
