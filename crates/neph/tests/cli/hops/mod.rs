//! `neph hops` held against a path whose every delay is known, and what it refuses.

mod alarms;
mod duplicates;
mod figures;
mod interrupted;
mod missing_packets;
mod outage;
mod same_point;
mod set_clocks;
mod simulated;
mod translated;
mod unmatched_points;

use std::collections::HashSet;

use serde_json::Value;

use crate::neph::{RunOutput, TestFolder, neph};
use simulated::{PathModel, SECOND, START, Simulation, Truth};

fn lines(ran: &RunOutput) -> Vec<Value> {
    let lines = ran.out.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn run(files: &[String], extra_args: &[&str]) -> RunOutput {
    let files = files.iter().map(String::as_str);
    neph(
        ["hops"]
            .into_iter()
            .chain(files)
            .chain(extra_args.iter().copied()),
    )
}

/// How far what was reported is off the truth.
#[derive(Debug, Default)]
struct Deviation {
    /// Delays of packets in segments that were reported.
    n: usize,
    /// Of these, off by more than 5 us.
    beyond_5us: usize,
    /// In nanoseconds.
    worst: i64,
    bound: i64,
}

impl Deviation {
    /// What is reported about a packet's delays.
    fn add_packet(&mut self, line: &Value, truth: &Truth) {
        let segments = line["segments"].as_array().expect("segments");
        for (segment, delay) in segments.iter().enumerate() {
            let Some((a, b)) = truth.passed_at[segment].zip(truth.passed_at[segment + 1]) else {
                assert!(delay.is_null(), "{line}");
                continue;
            };
            let error = delay["ns"].as_i64().expect("a delay") - (b - a).abs();
            let bound = delay["bound_ns"].as_i64().expect("a bound");
            assert!(
                error.abs() <= bound,
                "segment {segment}: {error}, {bound} at most: {line}"
            );
            self.n += 1;
            self.beyond_5us += usize::from(error.abs() > 5_000);
            self.worst = self.worst.max(error.abs());
            self.bound = self.bound.max(bound);
        }
    }
}

/// What of all packets together is counted: those that were lost, and copies.
fn check_counts(lines: &[Value], simulated: &Simulation) {
    let segments = || lines.iter().filter(|line| line["kind"] == "segment");
    let count = |line: &Value, key: &str| line[key].as_u64().expect("a count");
    let truths = simulated.truths.iter();
    let lost = truths.filter(|truth| truth.lost_in.is_some()).count();
    let reported_lost: u64 = segments().map(|line| count(line, "lost")).sum();
    assert_eq!(reported_lost, lost as u64);
    for protocol in ["icmp", "tcp", "udp"] {
        for (direction, is_reverse) in [("forward", false), ("reverse", true)] {
            let matching = segments()
                .filter(|line| line["protocol"] == protocol && line["direction"] == direction);
            let copies: u64 = matching.map(|line| count(line, "copies")).sum();
            assert_eq!(
                copies,
                simulated.copies(protocol, is_reverse) as u64,
                "{protocol} {direction}"
            );
        }
    }
}

/// The last point's clock is 3 s ahead and 40 ppm fast.
fn last_clock_shifted(points: usize) -> impl Fn(usize, i64) -> i64 + Copy {
    move |point, at| {
        if point + 1 == points {
            at + 3 * SECOND + (at - START) / 1_000_000 * 40
        } else {
            at
        }
    }
}

/// Runs neph over a simulated path and holds every packet against it.
fn measure_deviation(path: PathModel, rounds: u32, extra_args: &[&str]) -> Deviation {
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(path, rounds, 0x5eed_0000 + u64::from(rounds));
    let clocks = last_clock_shifted(path.points);
    let (files, stamps) = simulated.write(&folder, clocks);
    let args: Vec<&str> = ["--format", "ndjson", "--packets"]
        .into_iter()
        .chain(extra_args.iter().copied())
        .collect();
    let ran = run(&files, &args);
    assert_eq!(ran.status, 0, "{path:?}: {}", ran.err);
    let mut deviation = Deviation::default();
    let mut seen_packets = HashSet::new();
    let lines = lines(&ran);
    for line in lines.iter().filter(|line| line["kind"] == "packet") {
        let marks = line["timestamps_unix_ns"].as_array().expect("marks");
        let first = marks.iter().enumerate().find(|(_, mark)| !mark.is_null());
        let (point, mark) = first.expect("one mark at least");
        let number = stamps[&(point, mark.as_i64().expect("a stamp"))];
        assert!(seen_packets.insert(number), "told twice: {line}");
        let truth = &simulated.truths[number];
        let direction = if truth.is_reverse {
            "reverse"
        } else {
            "forward"
        };
        assert_eq!(
            (&line["direction"], &line["protocol"]),
            (&direction.into(), &truth.protocol.into())
        );
        let ends = ["source", "destination"].map(|end| line[end].as_str().expect("an address"));
        let has_ports = ends.iter().all(|end| end.contains(':'));
        assert_eq!(has_ports, truth.protocol != "icmp", "{line}");
        assert_eq!(
            line["lost_in"].as_u64(),
            truth.lost_in.map(|at| at as u64),
            "{line}"
        );
        for (point, mark) in marks.iter().enumerate() {
            let expected_stamp = truth.passed_at[point].map(|at| clocks(point, at));
            assert_eq!(mark.as_i64(), expected_stamp, "point {point}: {line}");
        }
        deviation.add_packet(line, truth);
    }
    check_counts(&lines, &simulated);
    assert_eq!(seen_packets.len(), simulated.truths.len(), "{path:?}");
    assert!(
        deviation.n > 0 && deviation.beyond_5us * 1_000 <= deviation.n,
        "{deviation:?}"
    );
    deviation
}

#[test]
fn two_clocks_three_seconds_and_forty_ppm_apart_leave_every_delay_right() {
    let deviation = measure_deviation(PathModel::PLAIN, 2_000, &[]);
    assert_eq!(deviation.n, 12_000);
}

#[test]
fn five_points_of_which_the_last_has_another_clock_and_loss_in_each_segment() {
    let path = PathModel {
        points: 5,
        lost: 10,
        ..PathModel::PLAIN
    };
    let deviation = measure_deviation(path, 1_500, &[]);
    assert!(deviation.n > 30_000);
}

#[test]
fn offload_at_both_ends_translation_and_a_tunnel_in_the_middle_hide_no_packet() {
    let path = PathModel {
        points: 3,
        lost: 5,
        offload: true,
        nat: true,
        vxlan: true,
        ..PathModel::PLAIN
    };
    measure_deviation(path, 1_500, &["--nat", "p0:192.0.2.77=192.0.2.2"]);
}

#[test]
fn copies_that_the_network_makes_are_counted_and_the_first_that_comes_is_the_packet() {
    let path = PathModel {
        points: 4,
        duplicated: 20,
        ..PathModel::PLAIN
    };
    measure_deviation(path, 1_500, &[]);
}

#[test]
fn points_of_one_host_have_one_clock_and_no_doubt() {
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(PathModel::PLAIN, 20, 3);
    let (files, _) = simulated.write(&folder, |_, at| at);
    let names: Vec<String> = files
        .iter()
        .map(|file| file.replace('=', "@kvm1="))
        .collect();
    for (files, extra_args) in [(&names, &[][..]), (&files, &["--clock", "same"])] {
        let arguments = [extra_args, &["--format", "ndjson"]].concat();
        let ran = run(files, &arguments);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let lines = lines(&ran);
        assert_eq!(lines.last().expect("a summary")["clocks"][0]["is"], "same");
        let segment = lines.iter().find(|line| line["kind"] == "segment");
        assert_eq!(segment.expect("a segment")["bound_ns"], 0);
    }
}

#[test]
fn the_parts_of_a_round_trip_add_up_for_any_clocks() {
    let folder = TestFolder::empty();
    let path = PathModel {
        points: 3,
        ..PathModel::PLAIN
    };
    let mut simulated = Simulation::of(path, 200, 9);
    let (files, _) = simulated.write(&folder, last_clock_shifted(3));
    let ran = run(&files, &["--format", "json"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let round_trips = document["round_trips"].as_array().expect("a list");
    assert_eq!(
        round_trips.len(),
        12,
        "all and three parts of each of three protocols"
    );
    for rows in round_trips.chunks(4) {
        let mean = |at: usize| rows[at]["mean_ns"].as_i64().expect("a time");
        assert_eq!(rows[0]["n"], 200, "{rows:?}");
        let parts = mean(1) + mean(2) + mean(3);
        assert!((mean(0) - parts).abs() <= 3, "rounding of means: {rows:?}");
        // The far end took 50 us by its clock, which is 40 ppm fast.
        assert!((50_000..50_010).contains(&mean(3)), "{rows:?}");
    }
    check_shares(&document);
    let idle = "p1:203.0.113.9=203.0.113.8";
    let warned = run(&files, &["--format", "json", "--nat", idle]);
    assert_eq!((warned.status, warned.out), (0, ran.out));
    let printed = format!("--nat '{idle}' changed nothing");
    assert!(
        warned.err.contains(&printed) && ran.err.is_empty(),
        "{}",
        warned.err
    );
    let with_packets = run(&files, &["--format", "json", "--packets"]);
    let mut with_packets: Value = serde_json::from_str(&with_packets.out).expect("JSON");
    let packets = with_packets["packets"].take();
    let fields = with_packets.as_object_mut().expect("an object");
    fields.remove("packets");
    assert_eq!(with_packets, document, "packets are one more member");
    let mut documents = lines(&run(&files, &["--format", "ndjson", "--packets"]));
    documents.retain(|line| line["kind"] == "packet");
    assert_eq!(packets, Value::Array(documents));
    let text = run(&files, &[]);
    for expected in [
        "p0 - p1",
        "beyond p2",
        "SHARE OF RTT",
        "Clock of p2 minus that of p1: +3.0",
    ] {
        assert!(text.out.contains(expected), "{expected}: {}", text.out);
    }
    let csv = run(&files, &["--format", "csv"]);
    assert!(
        csv.out
            .starts_with("segment,direction,protocol,n,mean_ns,bound_ns"),
        "{}",
        csv.out
    );
    assert_eq!(csv.out.lines().count(), 1 + 2 * 2 * 3);
}

/// Each direction has its own share, and with the far end's they are all there is.
fn check_shares(document: &Value) {
    let shares_of = |table: &str, key: &str| -> Vec<(String, f64)> {
        let rows = document[table].as_array().expect("a list").iter();
        rows.filter(|row| table == "segments" || row["part"] == "beyond p2")
            .map(|row| {
                let protocol = row["protocol"].as_str().expect("a protocol").to_owned();
                (protocol, row[key].as_f64().expect("a share"))
            })
            .collect()
    };
    let entries = [
        shares_of("segments", "share_of_round_trip"),
        shares_of("round_trips", "share"),
    ]
    .concat();
    for protocol in ["icmp", "tcp", "udp"] {
        let of_protocol = entries.iter().filter(|(name, _)| name == protocol);
        let shares: Vec<f64> = of_protocol.map(|(_, share)| *share).collect();
        assert_eq!(shares.len(), 5, "{entries:?}");
        let sum: f64 = shares.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}: {shares:?}");
        // Each way 200 us at least, of 1 to 2 ms in all.
        let delays = &shares[..4];
        assert!(
            delays.iter().all(|share| (0.1..0.4).contains(share)),
            "{shares:?}"
        );
    }
}

#[test]
fn files_that_cannot_be_compared_are_refused() {
    let folder = TestFolder::empty();
    let mut simulated = Simulation::of(PathModel::PLAIN, 3, 1);
    let (files, _) = simulated.write(&folder, |_, at| at);
    let other = TestFolder::empty();
    let translated = PathModel {
        nat: true,
        ..PathModel::PLAIN
    };
    let (unmatched, _) = Simulation::of(translated, 3, 1).write(&other, |_, at| at);
    let twice = [files[0].clone(), files[0].clone()];
    let absent = [files[0].clone(), "p1=/nowhere.pcap".to_owned()];
    let other_path = [unmatched[0].clone(), files[1].clone()];
    let no_capture = folder.path("text");
    std::fs::write(&no_capture, "no capture at all").expect("a file");
    let no_capture = [files[0].clone(), no_capture.display().to_string()];
    for (files, extra_args, why) in [
        (&files[..], &["--packets"][..], "--format"),
        (&twice, &[], "two points are called p0"),
        (&absent, &[], "/nowhere.pcap"),
        (&other_path, &[], "no packet of p0 is in p1"),
        (&no_capture, &[], "no capture"),
        (&files[..1], &[], "2"),
        (
            &files,
            &["--nat", "x:1.2.3.4=1.2.3.5"],
            "no point is called 'x'",
        ),
        (&files, &["--nat", "p0:1.2.3.4"], "'='"),
    ] {
        let ran = run(files, extra_args);
        assert_eq!(ran.status, 2, "{why}: {}", ran.err);
        assert!(ran.err.contains(why), "{why}: {}", ran.err);
        assert!(ran.out.is_empty(), "{}", ran.out);
    }
}
