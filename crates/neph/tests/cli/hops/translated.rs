//! A translator whose rule is not given, beside hosts that it leaves alone.

use std::fs;

use serde_json::Value;

use super::duplicates::{path_after_name, records};
use super::run;
use super::simulated::{PathModel, Simulation};
use crate::neph::TestFolder;

/// Hosts 1 and 2 of a record are 11 and 12.
fn renumber_hosts(mut record: Vec<u8>) -> Vec<u8> {
    for last in [16 + 15, 16 + 19] {
        record[last] += 10;
    }
    record
}

/// Captures of a path whose first point calls the server 192.0.2.77, and of hosts that have one name.
fn captures(folder: &TestFolder, points: usize) -> Vec<String> {
    let path = PathModel {
        points,
        ..PathModel::PLAIN
    };
    let other = TestFolder::empty();
    let (plain, _) = Simulation::of(path, 1, 3).write(&other, |_, at| at);
    let path = PathModel { nat: true, ..path };
    let (files, _) = Simulation::of(path, 100, 5).write(folder, |_, at| at);
    for (file, plain) in files.iter().zip(plain) {
        let other_records = records(path_after_name(&plain))
            .1
            .into_iter()
            .map(renumber_hosts);
        add_records(file, other_records.collect());
    }
    files
}

/// Records that a capture has too.
fn add_records(file: &str, other_records: Vec<Vec<u8>>) {
    let (header, mut entries) = records(path_after_name(file));
    entries.extend(other_records);
    entries.sort_by_key(|record| {
        let field = |at: usize| record[at..at + 4].try_into().map(u32::from_le_bytes);
        (field(0).expect("four bytes"), field(4).expect("four bytes"))
    });
    fs::write(path_after_name(file), [header, entries.concat()].concat()).expect("a file");
}

/// A segment between hosts 1 and 2, from another port of host 1; before the translator to port 8000 of
/// host 77.
fn translate(mut record: Vec<u8>, is_before_nat: bool) -> Vec<u8> {
    const IP_HEADER: usize = 16;
    let is_reverse = record[IP_HEADER + 15] == 2;
    let (server, ports) = if is_reverse {
        (15, [22, 20])
    } else {
        (19, [20, 22])
    };
    let [client_port, server_port] = ports.map(|at| IP_HEADER + at);
    record[client_port..client_port + 2].copy_from_slice(&6_001_u16.to_be_bytes());
    if is_before_nat {
        record[IP_HEADER + server] = 77;
        record[server_port..server_port + 2].copy_from_slice(&8_000_u16.to_be_bytes());
    }
    record
}

/// Lost of TCP, and how many were renamed.
fn count_lost_and_translated(out: &str) -> (u64, u64) {
    let document: Value = serde_json::from_str(out).expect("one document");
    let segments = document["segments"].as_array().expect("a list");
    let tcp = segments.iter().filter(|line| line["protocol"] == "tcp");
    let lost = tcp.map(|line| line["lost"].as_u64().expect("a count"));
    let translated = document["summary"]["loss_unknown"]["address_translated"].as_u64();
    (lost.sum(), translated.expect("a count"))
}

#[test]
fn flows_to_a_port_that_is_translated_are_not_lost_where_the_same_hosts_talk_directly() {
    for points in [2, 3] {
        let (folder, other) = (TestFolder::empty(), TestFolder::empty());
        let path = PathModel {
            points,
            ..PathModel::PLAIN
        };
        let (to_port, _) = Simulation::of(path, 100, 5).write(&other, |_, at| at);
        let path = PathModel { lost: 50, ..path };
        let (files, _) = Simulation::of(path, 200, 3).write(&folder, |_, at| at);
        for (point, (file, to_port)) in files.iter().zip(to_port).enumerate() {
            // The last point alone lies behind the translator.
            let records = records(path_after_name(&to_port)).1.into_iter();
            let tcp = records.filter(|record| record[16 + 9] == 6);
            add_records(
                file,
                tcp.map(|record| translate(record, point + 1 < points))
                    .collect(),
            );
        }
        // Not one for the last point, though it were shorter: it would rename the direct talk.
        let rules: Vec<String> = (0..points - 1)
            .map(|point| format!("p{point}:192.0.2.77:8000=192.0.2.2:80"))
            .collect();
        let given: Vec<&str> = rules.iter().flat_map(|rule| ["--nat", rule]).collect();
        let nat_options: Vec<String> = rules.iter().map(|rule| format!("--nat '{rule}'")).collect();
        let entries = ["--clock", "same", "--format", "json"];
        let ran = run(&files, &entries);
        let (before_nat, after_nat) = (points - 2, points - 1);
        let expected = format!(
            "neph hops: of p{before_nat} 200 packets are in p{after_nat} with other addresses or ports, and are excluded: \
             with NAT between them give its rule ({})\n",
            nat_options.join(" ")
        );
        assert_eq!((ran.status, &ran.err), (0, &expected));
        let (lost, translated) = count_lost_and_translated(&ran.out);
        // Reverse path only: on the other one they go to a host of which nothing passed.
        assert_eq!(translated, 100, "{}", ran.out);
        assert!(lost > 10, "those that talk directly: {lost}");
        let ran = run(&files, &[&entries[..], &given[..]].concat());
        assert_eq!((ran.status, ran.err.as_str()), (0, ""));
        assert_eq!(count_lost_and_translated(&ran.out), (lost, 0));
    }
}

#[test]
fn hosts_that_are_not_translated_do_not_hide_those_that_are() {
    let rule = "p0:192.0.2.77=192.0.2.2";
    for points in [2, 4] {
        let folder = TestFolder::empty();
        let files = captures(&folder, points);
        let ran = run(&files, &["--clock", "same"]);
        let expected = format!(
            "neph hops: of p0 599 packets are in p1 with other addresses, and are excluded: with NAT between them give its rule (--nat '{rule}')\n"
        );
        // A datagram with the number 0 is not known by it.
        assert_eq!((ran.status, &ran.err), (0, &expected));
        // In what is kept too.
        let doubt = expected.trim_end().replacen("neph hops: ", "In doubt: ", 1);
        assert!(ran.out.contains(&doubt), "{}", ran.out);
        // With it nothing is left to be said.
        let ran = run(&files, &["--clock", "same", "--nat", rule]);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""));
        let rows: Vec<&str> = (ran.out.lines().filter(|line| line.starts_with("p0 - p1")))
            .filter(|line| line.contains(" 101 "))
            .collect();
        assert_eq!(rows.len(), 6, "{}", ran.out);
    }
}

#[test]
fn two_points_with_mostly_different_hosts_are_reported() {
    let folder = TestFolder::empty();
    let files = captures(&folder, 2);
    // Numbers that the translator writes too are known nowhere.
    let (header, entries) = records(path_after_name(&files[1]));
    let entries: Vec<Vec<u8>> = entries
        .into_iter()
        .filter(|record| record[16 + 9] == 17)
        .map(|mut record| {
            if record[16 + 19] < 10 {
                record[16 + 4] ^= 0x40;
            }
            record
        })
        .collect();
    fs::write(
        path_after_name(&files[1]),
        [header, entries.concat()].concat(),
    )
    .expect("a file");
    let (header, entries) = records(path_after_name(&files[0]));
    let entries: Vec<Vec<u8>> = entries
        .into_iter()
        .filter(|record| record[16 + 9] == 17)
        .collect();
    fs::write(
        path_after_name(&files[0]),
        [header, entries.concat()].concat(),
    )
    .expect("a file");
    let ran = run(&files, &["--clock", "same"]);
    let expected = "neph hops: the hosts of 200 packets of p0 are not in p1, and the hosts of 200 packets of \
                p1 are not in p0. With NAT between them give its rule";
    assert!(ran.err.starts_with(expected), "{}", ran.err);
    assert_eq!((ran.status, ran.err.lines().count()), (0, 1), "{}", ran.err);
}
