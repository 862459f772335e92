//! `neph read` of captures whose stamps go back, or tell too little.

use std::fs;

use serde_json::Value;

use crate::neph::TestFolder;
use crate::reads::{ACK, Capture, SYN};

#[test]
fn no_round_trip_is_below_zero_and_those_that_would_be_are_counted() {
    let folder = TestFolder::empty();
    let mut capture = Capture::new();
    // The clock is set back by 5 ms under way: of a handshake, a segment, an echo.
    capture.segment((100, true), SYN, (99, 0), 0);
    capture.segment((95, false), SYN | ACK, (499, 100), 0);
    capture.segment((96, true), ACK, (100, 500), 10);
    capture.segment((91, false), ACK, (500, 110), 0);
    capture.echo((110, true), 1);
    capture.echo((105, false), 1);
    // And one is answered within a stamp.
    capture.echo((120, true), 2);
    capture.echo((120, false), 2);
    fs::write(folder.path("a.pcap"), capture.0).expect("a file");
    let ran = folder.neph(["read", "a.pcap", "--format", "json"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    assert!(
        !ran.out.contains(": -") && !ran.out.contains(":-"),
        "{}",
        ran.out
    );
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let summary = &document["summary"];
    assert_eq!(summary["responses_stamped_before_request"], 3);
    assert_eq!(summary["round_trips_below_resolution"], 1);
    assert_eq!(document["exchanges"][0]["round_trips"]["server"]["n"], 1);
    let text = folder.neph(["read", "a.pcap"]).out;
    let expected = "\n3 answers with a timestamp before their request's ";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("\n1 round trip of 0 ns: "), "{text}");
}

#[test]
fn an_rtt_below_the_timestamp_resolution_counts_once() {
    let folder = TestFolder::empty();
    let mut capture = Capture::new();
    // Acknowledged and answered with data: a round trip of each.
    capture.segment((10, true), ACK, (100, 500), 10);
    capture.segment((10, false), ACK, (500, 110), 10);
    fs::write(folder.path("a.pcap"), capture.0).expect("a file");
    let ran = folder.neph(["read", "a.pcap", "--format", "json"]);
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let round_trips = &document["summary"]["round_trips"]["server"];
    assert_eq!(round_trips["acknowledgement"]["with_data"]["max_ns"], 0);
    assert_eq!(round_trips["response"]["max_ns"], 0);
    assert_eq!(document["summary"]["round_trips_below_resolution"], 1);
}

#[test]
fn a_pinged_host_has_no_port() {
    let folder = TestFolder::empty();
    let mut capture = Capture::new();
    capture.echo((0, true), 1);
    capture.echo((9, false), 1);
    fs::write(folder.path("a.pcap"), capture.0).expect("a file");
    let ran = folder.neph(["read", "a.pcap", "--format", "json"]);
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let ping_exchange = &document["exchanges"][0];
    assert_eq!(ping_exchange["client"], "192.0.2.1");
    assert_eq!(ping_exchange["server"], "198.51.100.2");
}
