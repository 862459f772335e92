//! `neph read`: classes of round trips side by side, and the same as a spreadsheet.

use std::fs;

use serde_json::Value;

use crate::neph::TestFolder;
use crate::reads::{ACK, Capture};

#[test]
fn a_spreadsheet_has_a_line_for_each_flow_and_pair_with_all_columns() {
    let folder = TestFolder::empty();
    let mut capture = Capture::slow_server();
    capture.echo((1_000, true), 1);
    capture.echo((1_010, false), 1);
    capture.echo((1_020, false), 2);
    fs::write(folder.path("a.pcap"), capture.0).expect("a file");
    let ran = folder.neph(["read", "a.pcap", "--format", "csv"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    let lines: Vec<Vec<&str>> = ran
        .out
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    let [header, tcp, ping] = &lines[..] else {
        panic!("{}", ran.out);
    };
    let of = |line: &[&str], name: &str| {
        let column = header.iter().position(|header| *header == name);
        line[column.expect("a column")].to_owned()
    };
    assert!(lines.iter().all(|line| line.len() == header.len()));
    assert_eq!(
        (of(tcp, "kind"), of(ping, "kind")),
        ("tcp".into(), "ping".into())
    );
    assert_eq!(of(tcp, "server_path_mean_ns"), "30000000");
    assert_eq!(of(tcp, "server_response_p50_ns"), "50000000");
    assert_eq!(of(tcp, "segments_not_tracked"), "0");
    assert_eq!(of(ping, "server_path_deviation_ns"), "0");
    assert_eq!(of(ping, "responses_without_request"), "1");
}

#[test]
fn a_path_has_mean_and_deviation_and_timer_delayed_replies_are_separate() {
    let folder = TestFolder::empty();
    let mut capture = Capture::new();
    // 10, 30, 50 ms and a queue of 100; twice the server holds an acknowledgement back for 40 ms.
    let round_trips = [10, 30, 10, 50, 10, 51, 110];
    for (round, round_trip) in (0_u32..).zip(round_trips) {
        let (at, seq) = (round * 150, 100 + round * 10);
        capture.segment((at, true), ACK, (seq, 500), 10);
        capture.segment((at + round_trip, false), ACK, (500, seq + 10), 0);
    }
    fs::write(folder.path("a.pcap"), capture.0).expect("a file");
    let json = folder.neph(["read", "a.pcap", "--format", "json"]).out;
    let document: Value = serde_json::from_str(&json).expect("JSON");
    let server = &document["flows"][0]["round_trips"]["server"]["acknowledgement"];
    let (path, delayed) = (&server["path"], &server["delayed"]);
    assert_eq!(
        (&path["n"], &path["mean_ns"]),
        (&5.into(), &34_000_000.into())
    );
    // The root of (3 * 24^2 + 4^2 + 76^2) / 5.
    assert_eq!(path["deviation_ns"], 38_781_438);
    assert_eq!(
        (&path["max_ns"], &delayed["n"]),
        (&110_000_000.into(), &2.into())
    );
    let text = folder.neph(["read", "a.pcap"]).out;
    let expected = "Excluded as delayed acknowledgements of servers";
    assert!(text.contains(expected), "{text}");
}
