//! Points that show packets twice: a mirror of both directions, or a capture behind itself.

use std::fs;

use serde_json::Value;

use super::run;
use super::simulated::{PathModel, SECOND, Simulation};
use crate::neph::{TestFolder, neph};

/// Between a record's capture and its copy.
const COPY_DELAY: u32 = 10_000;

pub(super) fn path_after_name(file: &str) -> &str {
    file.split_once('=').expect("a name").1
}

/// Header and records of a capture.
pub(super) fn records(path: &str) -> (Vec<u8>, Vec<Vec<u8>>) {
    let file = fs::read(path).expect("a capture");
    let (header, mut rest) = file.split_at(24);
    let mut records = Vec::new();
    while !rest.is_empty() {
        let le_bytes = u32::from_le_bytes(rest[8..12].try_into().expect("four bytes"));
        let (record, remaining) = rest.split_at(16 + usize::try_from(le_bytes).expect("short"));
        records.push(record.to_vec());
        rest = remaining;
    }
    (header.to_vec(), records)
}

/// Writes each packet a second time, 10 us later.
fn mirror(path: &str) {
    let (header, records) = records(path);
    let stamp = |record: &[u8]| {
        let field = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four"));
        (field(0), field(4))
    };
    let mut entries = Vec::new();
    for record in records {
        let mut copy = record.clone();
        let (second, nanos) = stamp(&record);
        // Within the second: it is the order that counts.
        let later = (nanos + COPY_DELAY).min(999_999_999);
        copy[4..8].copy_from_slice(&later.to_le_bytes());
        entries.push(((second, nanos), record));
        entries.push(((second, later), copy));
    }
    entries.sort_by_key(|(at, _)| *at);
    let records: Vec<Vec<u8>> = entries.into_iter().map(|(_, record)| record).collect();
    fs::write(path, [header, records.concat()].concat()).expect("a file");
}

/// Writes all packets behind themselves.
fn append_duplicates(path: &str) {
    let (header, records) = records(path);
    let records = records.concat();
    fs::write(path, [header, records.clone(), records].concat()).expect("a file");
}

#[test]
fn duplicates_in_a_capture_do_not_change_the_result() {
    let path = PathModel {
        points: 3,
        ..PathModel::PLAIN
    };
    let clock = |point, at| if point == 2 { at + 3 * SECOND } else { at };
    for write_twice in [mirror, append_duplicates] {
        for point in 0..3 {
            let folder = TestFolder::empty();
            let (files, _) = Simulation::of(path, 100, 9).write(&folder, clock);
            let documents_of = |files: &[String]| {
                let ran = run(files, &["--format", "json"]);
                assert_eq!((ran.status, ran.err.as_str()), (0, ""), "point {point}");
                let document: Value = serde_json::from_str(&ran.out).expect("JSON");
                document
            };
            let without_copies = documents_of(&files);
            write_twice(path_after_name(&files[point]));
            let twice = documents_of(&files);
            for part in ["segments", "round_trips"] {
                assert_eq!(without_copies[part], twice[part], "point {point}");
            }
            for (at, of) in (0..).zip(twice["summary"]["points"].as_array().expect("points")) {
                let second = if at == point { 600 } else { 0 };
                assert_eq!(of["capture_duplicates"], second, "{of}");
            }
            let text = run(&files, &[]).out;
            let printed = format!("600 packets of p{point} stand there again");
            assert!(text.contains(&printed), "{text}");
        }
    }
}

#[test]
fn duplicates_in_a_capture_do_not_change_the_clocks() {
    let folder = TestFolder::empty();
    for write_twice in [mirror, append_duplicates] {
        for point in 0..2 {
            let clock = |point, at| if point == 1 { at + 3 * SECOND } else { at };
            let (files, _) = Simulation::of(PathModel::PLAIN, 300, 9).write(&folder, clock);
            let [first, second] = [path_after_name(&files[0]), path_after_name(&files[1])];
            let document_of = || {
                let ran = neph(["clock", "--captures", first, second, "--format", "json"]);
                assert_eq!(ran.status, 0, "{}", ran.err);
                let document: Value = serde_json::from_str(&ran.out).expect("JSON");
                let lines = document["offsets"].as_array().expect("lines").iter();
                let (clocks, counts): (Vec<_>, Vec<_>) = lines
                    .map(|line| (line["clocks"].clone(), line["n"].as_u64()))
                    .unzip();
                let n: u64 = counts.into_iter().flatten().sum();
                (clocks, n, ran.err)
            };
            let (without_copies, n, _) = document_of();
            write_twice(path_after_name(&files[point]));
            let (twice, fewer, printed) = document_of();
            assert_eq!(without_copies, twice, "point {point}");
            // Two have the number 0, which many do not mean as one.
            assert_eq!(n, fewer + 2);
            let expected = "1798 packets left out because a capture shows them again";
            assert!(printed.contains(expected), "{printed}");
        }
    }
}

/// For copies that a program can take out, and no others.
const EXACT_COPY_REMEDY: &str = "remove exact duplicates (editcap -w 0.02 FILE NEW)";

/// Whether it is said what helps against copies that a router changed, and against others.
fn has_copy_remedy(printed: &str) -> bool {
    let formats = "tcpdump -i any in its default format (LINUX_SLL2), which records interfaces";
    printed.contains("capture one interface")
        && printed.contains(formats)
        && printed.contains(EXACT_COPY_REMEDY)
}

#[test]
fn a_capture_with_every_packet_duplicated_reads_as_without_duplicates() {
    for has_ip_id in [true, false] {
        let folder = TestFolder::empty();
        let (files, _) = Simulation::of(PathModel::PLAIN, 1_000, 9).write(&folder, |_, at| at);
        let path = path_after_name(&files[0]);
        if !has_ip_id {
            let (header, records) = records(path);
            let unnumbered = records.into_iter().map(|mut record| {
                record[16 + 4..16 + 6].fill(0);
                record
            });
            let records: Vec<Vec<u8>> = unnumbered.collect();
            fs::write(path, [header, records.concat()].concat()).expect("a file");
        }
        let read = || -> Value {
            let ran = neph(["read", path, "--format", "json"]);
            serde_json::from_str(&ran.out).expect("JSON")
        };
        let without_copies = read();
        mirror(path);
        let twice = read();
        assert_eq!(without_copies["flows"], twice["flows"], "{has_ip_id}");
        assert_eq!(
            without_copies["exchanges"], twice["exchanges"],
            "{has_ip_id}"
        );
        let of = |document: &Value| document["summary"]["capture_duplicates_removed"].clone();
        assert_eq!(
            (of(&without_copies), of(&twice)),
            (0.into(), 6_000.into()),
            "{has_ip_id}"
        );
        let text = neph(["read", path]).out;
        assert!(
            text.contains("6000 packets that the capture holds twice"),
            "{text}"
        );
    }
}

#[test]
fn indistinguishable_copies_are_reported_as_the_reason() {
    let folder = TestFolder::empty();
    let (files, _) = Simulation::of(PathModel::PLAIN, 100, 9).write(&folder, |_, at| at);
    for file in &files {
        // Datagrams alone, as of a sender that numbers none.
        let (header, records) = records(path_after_name(file));
        let udp = records.into_iter().filter(|record| record[16 + 9] == 17);
        let unnumbered = udp.map(|mut record| {
            record[16 + 4..16 + 6].fill(0);
            record
        });
        let records: Vec<Vec<u8>> = unnumbered.collect();
        fs::write(path_after_name(file), [header, records.concat()].concat()).expect("a file");
    }
    mirror(path_after_name(&files[1]));
    let [first, second] = [path_after_name(&files[0]), path_after_name(&files[1])];
    let (hops, clock) = (
        run(&files, &[]),
        neph(["clock", "--captures", first, second]),
    );
    assert!(has_copy_remedy(&hops.err), "{}", hops.err);
    // It looks at no interfaces.
    assert!(!clock.err.contains("LINUX_SLL2"), "{}", clock.err);
    for ran in [hops, clock] {
        assert_eq!(ran.status, 2, "{}", ran.err);
        let wording = "cannot be matched; capture one interface";
        assert!(
            ran.err.contains(wording)
                && ran.err.contains(EXACT_COPY_REMEDY)
                && !ran.err.contains("NAT"),
            "{}",
            ran.err
        );
    }
}
