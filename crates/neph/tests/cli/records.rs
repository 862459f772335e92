//! `neph lab truth`: what links wrote down, read back. The bytes here are put together by hand, as
//! docs/topology.md lays them out.

use std::fs;

use serde_json::Value;

use crate::labs::{LabGuard, TWO_SITES, privileged};
use crate::neph::TestFolder;

const HEADER: usize = 64;
const RECORD: usize = 56;

/// A header, and records of a kind, with fields put where the page says.
struct WrittenRecords(Vec<u8>);

impl WrittenRecords {
    fn of(link: &str, every: u32) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[..8].copy_from_slice(b"NEPHTRU2");
        bytes[8..12].copy_from_slice(&56_u32.to_le_bytes());
        bytes[12..16].copy_from_slice(&every.to_le_bytes());
        bytes[16..16 + link.len()].copy_from_slice(link.as_bytes());
        Self(bytes)
    }

    fn record(mut self, kind: u8, fields: &[(usize, &[u8])]) -> Self {
        let mut bytes = [0; RECORD];
        bytes[0] = kind;
        for (at, field) in fields {
            bytes[*at..at + field.len()].copy_from_slice(field);
        }
        self.0.extend(bytes);
        self
    }

    /// A UDP packet of 100 bytes from `a` to `b` that came at this moment and is 3 ms late.
    fn packet(self, verdict: u8, flags: u8, arrival: i64) -> Self {
        let [due, departure] = if verdict == 0 {
            [arrival + 5_000_000, arrival + 8_000_000]
        } else {
            [0; 2]
        };
        self.record(
            1,
            &[
                (2, &[verdict, 17]),
                (4, &100_u32.to_le_bytes()),
                (8, &arrival.to_le_bytes()),
                (16, &due.to_le_bytes()),
                (24, &departure.to_le_bytes()),
                (32, &0xfeed_u64.to_le_bytes()),
                (46, &1234_u16.to_le_bytes()),
                (48, &80_u16.to_le_bytes()),
                (50, &[2, flags]),
                (52, &9_u16.to_le_bytes()),
            ],
        )
    }
}

const COPY: u8 = 1;
const FLIPPED: u8 = 4;
const ON_A_PATH: u8 = 8;

/// Ten packets: eight delivered (one damaged), one lost, one that found the queue full; a copy that
/// left and one that there was no room for.
fn written() -> WrittenRecords {
    let cue: i64 = 1_700_000_000_000_000_000;
    let mut written = WrittenRecords::of("uplink", 1)
        .record(2, &[(8, &cue.to_le_bytes()), (16, &7_i64.to_le_bytes())])
        .record(4, &[(8, &cue.to_le_bytes())])
        .record(
            3,
            &[
                (1, &[1, 0]),
                (4, &2_u16.to_le_bytes()),
                (8, &(cue + 4_000_000).to_le_bytes()),
            ],
        );
    for number in 0..7 {
        written = written.packet(0, ON_A_PATH, cue + number);
    }
    written
        .packet(0, ON_A_PATH | FLIPPED, cue + 7)
        .packet(1, ON_A_PATH, cue + 8)
        .packet(3, 0, cue + 9)
        .packet(0, ON_A_PATH | COPY, cue + 10)
        .packet(7, ON_A_PATH | COPY, cue + 1_500_000_000)
}

fn capture_folder(bytes: &[u8]) -> TestFolder {
    let folder = TestFolder::empty();
    fs::write(folder.path("up.truth"), bytes).expect("a file");
    folder
}

#[test]
fn a_record_is_summed_up() {
    let ran = capture_folder(&written().0).neph(["lab", "truth", "up.truth"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
    let expected = "\
up.truth: link 'uplink', every packet, 1.500 s from 2023-11-14 22:13:20 UTC
DIRECTION  PACKETS  DELIVERED  DROPPED  DAMAGED  EARLY  COPIES
a_to_b          10          8        2        1      0       1

DROPPED  REASON      PACKETS    SHARE  COPIES
a_to_b   lost              1  10.00 %       0
a_to_b   queue_full        1  10.00 %       0
a_to_b   overflow          0   0.00 %       1

DELIVERED  PATH  PACKETS     SHARE  DELAY P50  P99  P99.9  LATE P50  P99  P99.9    WORST
a_to_b        2        8  100.00 %    8.00 ms    -      -   3.00 ms    -      -  3.00 ms

SCHEDULE  ENTRY  EVENT   COUNT  FIRST, SINCE CUE
b_to_a        2  begins      1           4.00 ms
both          -  cued        1                 -
'-': too few packets for that quantile (p50 needs 6, p99 299, p99.9 2995)
";
    assert_eq!(ran.out, expected);
}

#[test]
fn records_are_exported_as_json_ndjson_and_csv() {
    let folder = capture_folder(&written().0);
    let stdout_of = |format| {
        let ran = folder.neph(["lab", "truth", "up.truth", "--format", format]);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
        ran.out
    };
    let list: Vec<Value> = serde_json::from_str(&stdout_of("json")).expect("JSON");
    let lines = stdout_of("ndjson");
    let lines = lines.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<Value> = lines.map(|line| line.expect("JSON")).collect();
    assert_eq!((list.len(), &list), (15, &lines));
    let damaged = &list[10];
    for (key, value) in [
        ("link", Value::from("uplink")),
        ("direction", "a_to_b".into()),
        ("kind", "packet".into()),
        ("at_ns", 1_700_000_000_000_000_007_u64.into()),
        ("delay_ns", 8_000_000.into()),
        ("lateness_ns", 3_000_000.into()),
        ("verdict", "delivered".into()),
        ("path", 2.into()),
        ("flipped_bit", 9.into()),
        ("copy", false.into()),
        ("source_port", 1234.into()),
        ("hash", "000000000000feed".into()),
    ] {
        assert_eq!(damaged[key], value, "{key}");
    }
    assert!(list[12]["departed_ns"].is_null() && list[12]["path"].is_null());
    assert_eq!(
        (&list[2]["kind"], &list[2]["entry"]),
        (&"step".into(), &2.into())
    );
    let csv = stdout_of("csv");
    let keys: Vec<&str> = csv.lines().next().expect("a header").split(',').collect();
    assert_eq!(csv.lines().count(), 16);
    assert!(
        csv.lines()
            .all(|line| line.split(',').count() == keys.len())
    );
    assert!(list.iter().all(|row| {
        let row = row.as_object().expect("an object");
        row.keys().all(|key| keys.contains(&key.as_str()))
    }));
    assert_eq!(
        csv.lines().nth(13).expect("queue full").split(',').nth(10),
        Some("queue_full")
    );
}

#[test]
fn a_truncated_record_is_reported_and_invalid_files_refused() {
    let mut cut = written().0;
    cut.truncate(cut.len() - 20);
    let ran = capture_folder(&cut).neph(["lab", "truth", "up.truth"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(
        ran.err.contains("ends within a record (36 bytes"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("a_to_b          10 "), "{}", ran.out);
    let damaged = written().record(9, &[]).packet(0, 0, 0).0;
    let ran = capture_folder(&damaged).neph(["lab", "truth", "up.truth"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(
        ran.err
            .contains("byte 904 is not the beginning of a record"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("a_to_b          10 "), "{}", ran.out);
    for (bytes, why) in [
        (&b"NEPHTRU2 too short"[..], "shorter than a header"),
        (b"version = 1", "does not begin as one"),
        (
            &[b"NEPHTRU1".as_slice(), &[0; 100]].concat(),
            "has version 1",
        ),
    ] {
        let ran = capture_folder(bytes).neph(["lab", "truth", "up.truth"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    let ran = capture_folder(b"").neph(["lab", "truth", "down.truth"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(ran.err.contains("name the LINK.truth files"), "{}", ran.err);
    let ran = capture_folder(b"").neph(["lab", "up", "two.toml", "--every", "5"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(ran.err.contains("--record"), "{}", ran.err);
}

#[test]
fn lab_records_equal_the_counters_of_the_links() {
    let test = "lab_records_equal_the_counters_of_the_links";
    if !privileged(test) {
        return;
    }
    let lab = LabGuard::recording(TWO_SITES, 't', "1");
    let reached = lab.at("a", "ping -c 20 -i 0.01 -q 10.80.0.2");
    assert_eq!(reached.status, 0, "{}", reached.err);
    let status = lab.status();
    lab.folder.neph(["lab", "down", &lab.name]);
    let ran = lab
        .folder
        .neph(["lab", "truth", "truth/path.truth", "--format", "json"]);
    let list: Vec<Value> = serde_json::from_str(&ran.out).expect("JSON");
    for (at, direction) in ["a_to_b", "b_to_a"].into_iter().enumerate() {
        let packets = list.iter().filter(|row| {
            row["kind"] == "packet"
                && row["direction"] == direction
                && row["verdict"] == "delivered"
        });
        let packets: Vec<&Value> = packets.collect();
        assert_eq!(
            status["links"][at]["delivered"],
            packets.len(),
            "{direction}"
        );
        assert!(
            packets
                .iter()
                .all(|packet| packet["delay_ns"].as_i64() > Some(1_900_000))
        );
        assert!(
            packets
                .iter()
                .filter(|packet| packet["protocol"] == 1)
                .count()
                >= 20
        );
    }
}

#[test]
fn a_sampled_record_reports_its_rate_and_both_directions() {
    let test = "a_sampled_record_reports_its_rate_and_both_directions";
    if !privileged(test) {
        return;
    }
    let lab = LabGuard::recording(TWO_SITES, 'u', "4");
    let reached = lab.at("a", "ping -c 200 -i 0.002 -q 10.80.0.2");
    assert_eq!(reached.status, 0, "{}", reached.err);
    lab.folder.neph(["lab", "down", &lab.name]);
    let ran = lab.folder.neph(["lab", "truth", "truth/path.truth"]);
    assert!(ran.out.contains("one packet in 4"), "{}", ran.out);
    for direction in ["a_to_b", "b_to_a"] {
        let row = ran.out.lines().find(|line| line.starts_with(direction));
        let packets = row.and_then(|row| row.split_whitespace().nth(1)?.parse::<u32>().ok());
        assert!((10..100).contains(&packets.expect("a row")), "{}", ran.out);
    }
}

/// A flow on a path of 8 ms, sent every 2 ms, that is moved to one of 1 ms after its third packet.
fn moved(every: u32) -> WrittenRecords {
    let start: i64 = 1_700_000_000_000_000_000;
    let packets = [(0, 1, 8), (2, 1, 8), (4, 1, 8), (6, 0, 1), (8, 0, 1)];
    let mut packets = packets.map(|(at, path, delay)| (at + delay, at, path));
    packets.sort_unstable();
    let mut written = WrittenRecords::of("wan", every);
    for (departure, arrival, path) in packets {
        let [arrival, departure] = [arrival, departure].map(|ms: i64| start + ms * 1_000_000);
        written = written.record(
            1,
            &[
                (2, &[0, 17]),
                (8, &arrival.to_le_bytes()),
                (16, &departure.to_le_bytes()),
                (24, &departure.to_le_bytes()),
                (46, &40_001_u16.to_le_bytes()),
                (48, &862_u16.to_le_bytes()),
                (50, &[path, ON_A_PATH]),
            ],
        );
    }
    written
}

/// The packet of 6 ms leaves at 7, so before those of 0 ms (which leaves at 8), 2 (10) and 4 (12): three
/// leave after one that came later.
#[test]
fn flows_are_listed_with_their_paths_and_reordered_packets() {
    let ran = capture_folder(&moved(1).0).neph(["lab", "truth", "up.truth", "--flows"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
    let expected = "\
up.truth: link 'wan', every packet, times count from 2023-11-14 22:13:20 UTC
DIRECTION  FLOWS  MOVED  CHANGES  PACKETS  REORDERED
a_to_b         1      1        1        5          3

DIRECTION  PATH  FLOWS  PACKETS  LEFT IT
a_to_b        0      1        2        0
a_to_b        1      1        3        1

FLOW    PROTOCOL  FROM PORT  TO PORT  PACKETS  REORDERED  CHANGES  PATHS, AND SINCE WHEN
a_to_b        17      40001      862        5          3        1  1 0 ns, 0 6.00 ms
";
    assert_eq!(ran.out, expected);
    let csv = capture_folder(&moved(1).0)
        .neph(["lab", "truth", "up.truth", "--flows", "--format", "csv"]);
    let lines: Vec<&str> = csv.out.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "up.truth,wan,a_to_b,17,40001,862,0,1,1700000000000000000,1700000000004000000,3,0,3,1",
            "up.truth,wan,a_to_b,17,40001,862,1,0,1700000000006000000,1700000000008000000,2,0,0,1",
        ]
    );
    let sampled = capture_folder(&moved(4).0);
    let list = sampled.neph(["lab", "truth", "up.truth", "--flows", "--format", "json"]);
    let list: Value = serde_json::from_str(&list.out).expect("a list");
    assert_eq!(list[1]["path"], 0);
    assert_eq!(list[1]["reordered"], Value::Null, "neighbours are missing");
    let nothing = capture_folder(b"").neph(["lab", "truth", "up.truth", "--flows"]);
    assert_eq!(nothing.status, 2, "{}", nothing.err);
    let reshuffled = WrittenRecords::of("routes", 1)
        .record(3, &[])
        .record(3, &[])
        .0;
    let ran = capture_folder(&reshuffled).neph(["lab", "truth", "up.truth", "--flows"]);
    let expected = "no flows: it records 2 changes of a schedule or of routes; the flows of a link are in its LINK.truth";
    assert!(ran.out.contains(expected), "{}{}", ran.out, ran.err);
}
