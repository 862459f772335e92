//! `neph read`: flows in captures, and captures that are none.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use neph_sys::process;
use serde_json::Value;

use crate::neph::{TestFolder, command};

/// Kinds of packets of a connection: flags, and who sends.
pub(crate) const SYN: u8 = 2;
pub(crate) const ACK: u8 = 16;

/// A capture of raw IPv4 in nanoseconds, packet by packet.
pub(crate) struct Capture(pub(crate) Vec<u8>);

impl Capture {
    pub(crate) fn new() -> Self {
        let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
        file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0]);
        Self(file)
    }

    /// A segment with these numbers and so many bytes of payload, of the client or of the server.
    pub(crate) fn segment(
        &mut self,
        (at_ms, by_client): (u32, bool),
        flags: u8,
        numbers: (u32, u32),
        payload: u16,
    ) {
        let (client, server) = ([192, 0, 2, 1], [198, 51, 100, 2]);
        let (from, to) = if by_client {
            (client, server)
        } else {
            (server, client)
        };
        let ports: [u16; 2] = if by_client {
            [40_000, 443]
        } else {
            [443, 40_000]
        };
        let length = 40 + payload;
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        packet.extend(from);
        packet.extend(to);
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend(numbers.0.to_be_bytes());
        packet.extend(numbers.1.to_be_bytes());
        packet.extend([0x50, flags, 2, 0, 0, 0, 0, 0]);
        packet.resize(length.into(), 0);
        let fields = [1_700_000_000 + at_ms / 1_000, at_ms % 1_000 * 1_000_000];
        self.0
            .extend(fields.iter().flat_map(|field| field.to_le_bytes()));
        let length = u32::from(length);
        self.0.extend(
            [length, length]
                .iter()
                .flat_map(|field| field.to_le_bytes()),
        );
        self.0.extend(packet);
    }

    /// An ICMP echo of the client, or the reply to it.
    pub(crate) fn echo(&mut self, (at_ms, by_client): (u32, bool), sequence: u8) {
        let kind = if by_client { 8 } else { 0 };
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0];
        let (client, server) = ([192, 0, 2, 1], [198, 51, 100, 2]);
        let ends = if by_client {
            [client, server]
        } else {
            [server, client]
        };
        packet.extend(ends.as_flattened());
        packet.extend([kind, 0, 0, 0, 0, 9, 0, sequence]);
        let fields = [1_700_000_000 + at_ms / 1_000, at_ms % 1_000 * 1_000_000];
        let fields = fields.into_iter().chain([28, 28]);
        self.0.extend(fields.flat_map(u32::to_le_bytes));
        self.0.extend(packet);
    }

    /// The same as `-i any` shows it of each packet once on the way in and once on the way out.
    fn as_any(&self, interfaces: [u8; 2]) -> Vec<u8> {
        let mut file = self.0[..20].to_vec();
        file.extend(276_u32.to_le_bytes());
        let mut rest = &self.0[24..];
        while let [header @ .., _] = rest
            && header.len() > 16
        {
            let length = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]);
            let (record, next) = rest.split_at(16 + length as usize);
            for interface in interfaces {
                file.extend(&record[..8]);
                file.extend(
                    [length + 20; 2]
                        .iter()
                        .flat_map(|field| field.to_le_bytes()),
                );
                file.extend([8, 0, 0, 0, 0, 0, 0, interface]);
                file.extend([0; 12]);
                file.extend(&record[16..]);
            }
            rest = next;
        }
        file
    }

    /// A connection to a server 30 ms away that thinks for 20 ms.
    pub(crate) fn slow_server() -> Self {
        let mut capture = Self::new();
        capture.segment((0, true), SYN, (99, 0), 0);
        capture.segment((30, false), SYN | ACK, (499, 100), 0);
        capture.segment((31, true), ACK, (100, 500), 0);
        capture.segment((40, true), ACK, (100, 500), 10);
        capture.segment((90, false), ACK, (500, 110), 10);
        capture
    }
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn the_path_and_the_servers_thinking_are_columns_of_their_own() {
    let folder = TestFolder::empty();
    fs::write(folder.path("a.pcap"), Capture::slow_server().0).expect("a file");
    let ran = folder.neph(["read", "a.pcap"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    let row: Vec<&str> = ran
        .out
        .lines()
        .nth(1)
        .expect("a flow")
        .split("  ")
        .collect();
    let row: Vec<&str> = row
        .into_iter()
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect();
    assert_eq!(row[..2], ["192.0.2.1:40000", "198.51.100.2:443"]);
    assert_eq!(row[4..6], ["30.00 ms", "30.00 ms"]);
    assert!(row.contains(&"50.00 ms"), "{}", ran.out);
}

#[test]
fn json_contains_each_kind_of_answer() {
    let folder = TestFolder::empty();
    fs::write(folder.path("a.pcap"), Capture::slow_server().0).expect("a file");
    let ran = folder.neph(["read", "a.pcap", "--format", "json"]);
    let document = document(&ran.out);
    let server = &document["flows"][0]["round_trips"]["server"]["acknowledgement"];
    assert_eq!(server["handshake"]["p50_ns"], 30_000_000);
    assert_eq!(server["with_data"]["p50_ns"], 50_000_000);
    assert_eq!(server["path"]["n"], 1);
    let response = &document["flows"][0]["round_trips"]["server"]["response"];
    assert_eq!(response["p50_ns"], 50_000_000);
    assert!(server["without_data"].is_null());
    assert_eq!(document["summary"]["flows"], 1);
    let ran = folder.neph(["read", "a.pcap", "--format", "ndjson", "--samples"]);
    let kinds: Vec<String> = ran
        .out
        .lines()
        .map(|line| {
            self::document(line)["kind"]
                .as_str()
                .expect("a kind")
                .to_owned()
        })
        .collect();
    assert_eq!(
        kinds,
        ["sample", "sample", "sample", "sample", "flow", "summary"]
    );
}

#[test]
fn answers_that_all_came_with_data_are_not_measurable() {
    let folder = TestFolder::empty();
    let mut capture = Capture::new();
    capture.segment((0, true), ACK, (100, 500), 10);
    capture.segment((50, false), ACK, (500, 110), 10);
    fs::write(folder.path("a.pcap"), capture.0).expect("a file");
    let ran = folder.neph(["read", "a.pcap"]);
    assert_eq!(ran.status, 0);
    assert!(ran.out.contains("not measurable"), "{}", ran.out);
}

#[test]
fn a_path_with_replies_to_retransmissions_only_is_reported_as_such() {
    let folder = TestFolder::empty();
    let mut capture = Capture::new();
    capture.segment((0, true), SYN, (99, 0), 0);
    capture.segment((1_000, true), SYN, (99, 0), 0);
    capture.segment((1_030, false), SYN | ACK, (499, 100), 0);
    fs::write(folder.path("a.pcap"), capture.0).expect("a file");
    let ran = folder.neph(["read", "a.pcap"]);
    let why = "1 flow without a path to the server that could be measured: \
        every answer came with data, or late, or to what was sent twice, or not at all.";
    assert!(ran.out.contains(why), "{}", ran.out);
}

#[test]
fn keep_alives_are_listed_with_the_other_anomalies() {
    let folder = TestFolder::empty();
    let mut capture = Capture::slow_server();
    // A byte before the next, and an acknowledgement of ten that did not pass.
    capture.segment((5_000, true), ACK, (109, 510), 0);
    capture.segment((6_000, true), ACK, (109, 510), 0);
    capture.segment((6_030, false), ACK, (510, 120), 0);
    fs::write(folder.path("a.pcap"), capture.0).expect("a file");
    let ran = folder.neph(["read", "a.pcap"]);
    assert!(
        ran.out.contains("1 ack of unseen, 2 keep-alive\n"),
        "{}",
        ran.out
    );
}

#[test]
fn a_truncated_capture_is_read_to_its_end_and_reported() {
    let folder = TestFolder::empty();
    let bytes = Capture::slow_server().0;
    fs::write(folder.path("a.pcap"), &bytes[..bytes.len() - 1]).expect("a file");
    let ran = folder.neph(["read", "a.pcap", "--format", "json"]);
    assert_eq!(ran.status, 0);
    assert!(ran.err.contains("cut off"), "{}", ran.err);
    assert!(ran.err.contains("4 packets"), "{}", ran.err);
    assert_eq!(document(&ran.out)["summary"]["packets"], 4);
}

#[test]
fn files_that_are_no_capture_are_refused() {
    let folder = TestFolder::empty();
    fs::write(folder.path("picture.gif"), b"GIF89a").expect("a file");
    fs::write(folder.path("empty.pcap"), b"").expect("a file");
    fs::write(folder.path("packed.pcap.xz"), b"\xfd7zXZ\0").expect("a file");
    for (file, printed) in [
        ("picture.gif", "no capture"),
        ("empty.pcap", "is empty"),
        ("packed.pcap.xz", "xz -dc packed.pcap.xz | neph read -"),
        ("nonesuch.pcap", "nonesuch.pcap"),
    ] {
        let ran = folder.neph(["read", file]);
        assert_eq!(
            (ran.status, ran.out.as_str()),
            (2, ""),
            "{file}: {}",
            ran.err
        );
        assert!(ran.err.contains(printed), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
}

#[test]
fn a_damaged_capture_is_read_up_to_the_reported_byte() {
    let folder = TestFolder::empty();
    let mut broken = Capture::slow_server().0;
    let at = broken.len();
    broken.extend([0xff; 16]);
    fs::write(folder.path("a.pcap"), broken).expect("a file");
    let ran = folder.neph(["read", "a.pcap"]);
    assert_eq!(ran.status, 2);
    assert!(ran.out.contains("192.0.2.1:40000"), "{}", ran.out);
    assert!(ran.err.contains(&format!("byte {at}")), "{}", ran.err);
}

#[test]
fn compressed_captures_and_pipes_have_the_same_result() {
    let folder = TestFolder::empty();
    fs::write(folder.path("a.pcap"), Capture::slow_server().0).expect("a file");
    let plain = document(&folder.neph(["read", "a.pcap", "--format", "json"]).out);
    for (program, name) in [("gzip", "a.pcap.gz"), ("zstd", "a.pcap.zst")] {
        let packed = process::command(program)
            .args(["-c", "-q"])
            .arg(folder.path("a.pcap"))
            .stderr(Stdio::null())
            .output();
        let Ok(packed) = packed.map(|output| output.stdout) else {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{program}");
            println!("SKIP: {program} is not installed");
            continue;
        };
        fs::write(folder.path(name), packed).expect("a file");
        let read = document(&folder.neph(["read", name, "--format", "json"]).out);
        assert_eq!(read["flows"], plain["flows"], "{name}");
    }
    let mut child = command()
        .args(["read", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("neph runs");
    let mut into = child.stdin.take().expect("piped");
    into.write_all(&Capture::slow_server().0).expect("read");
    drop(into);
    let output = child.wait_with_output().expect("ended");
    let read = document(&String::from_utf8(output.stdout).expect("UTF-8"));
    assert_eq!(read["flows"], plain["flows"]);
}

#[test]
fn pings_in_a_capture_have_the_statistics_of_ping() {
    let folder = TestFolder::empty();
    let mut capture = Capture::new();
    for (sequence, round_trip) in [(1, 10), (2, 20), (3, 30)] {
        let at = u32::from(sequence) * 1_000;
        capture.echo((at, true), sequence);
        capture.echo((at + round_trip, false), sequence);
    }
    capture.echo((4_000, true), 4);
    fs::write(folder.path("a.pcap"), capture.0).expect("a file");
    let ran = folder.neph(["read", "a.pcap"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    let row = ran.out.lines().nth(1).expect("a pair");
    let row: Vec<&str> = row.split("  ").map(str::trim).collect();
    let row: Vec<&str> = row.into_iter().filter(|cell| !cell.is_empty()).collect();
    assert_eq!(row[..5], ["ping", "192.0.2.1", "198.51.100.2", "4", "3"]);
    assert_eq!(
        row[5..],
        [
            "10.00 ms", "20.00 ms", "20.00 ms", "-", "30.00 ms", "8.16 ms", "-"
        ]
    );
    let ran = folder.neph(["read", "a.pcap", "--format", "ndjson", "--samples"]);
    let lines = ran.out.lines().map(document);
    let samples: Vec<Value> = lines.filter(|line| line["kind"] == "sample").collect();
    let round_trips: Vec<&Value> = samples
        .iter()
        .map(|sample| &sample["round_trip_ns"])
        .collect();
    assert_eq!(round_trips, [10_000_000, 20_000_000, 30_000_000]);
    assert_eq!(samples[2]["at_unix_ns"], 1_700_000_003_030_000_000_i64);
    assert_eq!(samples[0]["protocol"], "ping");
    let ran = folder.neph(["read", "a.pcap", "--format", "json"]);
    let document = document(&ran.out);
    let pair = &document["exchanges"][0];
    assert_eq!(pair["protocol"], "ping");
    assert_eq!(pair["server_deviation_ns"], 8_164_965);
    assert_eq!(document["summary"]["exchange_packets"], 7);
    assert_eq!(document["summary"]["other_packets"]["icmp"], 0);
}

#[test]
fn a_packet_that_passed_two_interfaces_counts_once() {
    let folder = TestFolder::empty();
    let capture = Capture::slow_server();
    fs::write(folder.path("once.pcap"), &capture.0).expect("a file");
    let read = |file| document(&folder.neph(["read", file, "--format", "json"]).out);
    let once = read("once.pcap");
    assert_eq!(once["summary"]["capture_duplicates_removed"], 0);
    // Interface 0 is that of a capture which tells none.
    for interfaces in [[2, 5], [0, 1]] {
        fs::write(folder.path("twice.pcap"), capture.as_any(interfaces)).expect("a file");
        let twice = read("twice.pcap");
        assert_eq!(once["flows"], twice["flows"], "{interfaces:?}");
        assert_eq!(twice["summary"]["capture_duplicates_removed"], 5);
    }
}

#[test]
fn unreadable_files_are_refused_before_any_is_read() {
    let folder = TestFolder::empty();
    let capture = Capture::slow_server().0;
    fs::write(folder.path("a.pcap"), &capture).expect("a file");
    fs::create_dir(folder.path("folder")).expect("a folder");
    for (file, printed) in [
        ("none.pcap", "none.pcap: No such"),
        ("folder", "folder/*.pcap"),
    ] {
        let ran = folder.neph(["read", "a.pcap", file]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains(printed), "{}", ran.err);
    }
}

#[test]
fn a_link_type_that_is_not_read_is_named() {
    let folder = TestFolder::empty();
    let mut capture = Capture::slow_server().0;
    capture[20] = 147;
    for kept_bytes in [capture.len(), capture.len() - 1] {
        fs::write(folder.path("user.pcap"), &capture[..kept_bytes]).expect("a file");
        let ran = folder.neph(["read", "user.pcap"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""));
        assert!(ran.err.contains("has link type 147"), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
    fs::write(folder.path("none.pcap"), &capture[..24]).expect("a file");
    let ran = folder.neph(["read", "none.pcap"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("holds no packet"), "{}", ran.err);
}
