//! `neph read` of what was captured in one direction, and by what its sentences tell a path.

use std::fs;

use serde_json::Value;

use crate::neph::TestFolder;
use crate::reads::{ACK, Capture, SYN};

/// What is written as text, and the summary as JSON.
fn read(capture: &Capture, extra_args: &[&str]) -> (String, Value) {
    let folder = TestFolder::empty();
    fs::write(folder.path("a.pcap"), &capture.0).expect("a file");
    let ran = folder.neph([&["read", "a.pcap"], extra_args].concat());
    assert_eq!(ran.status, 0, "{}", ran.err);
    let json = folder.neph(["read", "a.pcap", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("JSON");
    (ran.out, document["summary"].clone())
}

/// A packet of QUIC with a short header, each 10 ms; the spin bit turns each 50 ms.
fn quic(capture: &mut Capture, number: u32, by_client: bool) {
    quic_at(443, capture, number, by_client);
}

/// The same of a server at this port.
fn quic_at(port: u16, capture: &mut Capture, number: u32, by_client: bool) {
    let ends: [u8; 8] = if by_client {
        [192, 0, 2, 1, 198, 51, 100, 2]
    } else {
        [198, 51, 100, 2, 192, 0, 2, 1]
    };
    let ports: [u16; 2] = if by_client {
        [50_000, port]
    } else {
        [port, 50_000]
    };
    let mut packet = vec![0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend(ends);
    packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    packet.extend([0, 40, 0, 0]);
    let spin = u8::from(number / 5 % 2 == 1) ^ u8::from(!by_client);
    packet.push(0x40 | spin << 5);
    packet.resize(60, 7);
    let at_ms = number * 10 + if by_client { 0 } else { 2 };
    let fields = [
        1_700_000_000 + at_ms / 1_000,
        at_ms % 1_000 * 1_000_000,
        60,
        60,
    ];
    capture
        .0
        .extend(fields.into_iter().flat_map(u32::to_le_bytes));
    capture.0.extend(packet);
}

#[test]
fn one_directional_quic_is_not_reported_without_a_spin_bit() {
    let mut capture = Capture::new();
    let mut both_sides = Capture::new();
    for number in 0..200 {
        quic(&mut capture, number, true);
        quic(&mut both_sides, number, true);
        quic(&mut both_sides, number, false);
    }
    let (text, summary) = read(&capture, &[]);
    let expected = "1 connection of QUIC with one direction only in the capture";
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("without a spin bit"), "{text}");
    assert_eq!(summary["quic_of_one_direction"], 1);
    let (text, summary) = read(&both_sides, &[]);
    assert!(!text.contains("one direction"), "{text}");
    assert_eq!(summary["quic_of_one_direction"], 0);
}

#[test]
fn a_flow_captured_in_one_direction_is_reported() {
    let mut capture = Capture::new();
    capture.segment((0, true), SYN, (99, 0), 0);
    capture.segment((30, true), ACK, (100, 500), 10);
    capture.segment((60, true), ACK, (110, 510), 10);
    let (text, summary) = read(&capture, &[]);
    let expected = "1 flow with one direction only in the capture";
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("every answer came with data"), "{text}");
    assert_eq!(summary["flows_one_direction_only"], 1);
    assert_eq!(summary["flows_without_server_rtt"], 1);
}

/// With time stamps (RFC 7323): the echo tells a round trip also of what was sent twice.
fn stamped(
    capture: &mut Capture,
    (at_ms, by_client): (u32, bool),
    numbers: (u32, u32),
    stamps: (u32, u32),
) {
    let begin = capture.0.len() + 16;
    // Behind twelve bytes of options ten of the client's.
    let payload = if by_client { 22 } else { 12 };
    capture.segment((at_ms, by_client), ACK, numbers, payload);
    let tcp = &mut capture.0[begin + 20..];
    tcp[12] = 0x80;
    tcp[20..24].copy_from_slice(&[1, 1, 8, 10]);
    tcp[24..28].copy_from_slice(&stamps.0.to_be_bytes());
    tcp[28..32].copy_from_slice(&stamps.1.to_be_bytes());
}

#[test]
fn the_path_rtt_is_printed_by_the_method_of_the_table() {
    let mut capture = Capture::new();
    for round in 0..3 {
        let (at, stamp) = (round * 100, 1_000 + round * 100);
        let next = 110 + round * 10;
        let stamps = [(stamp, 9_000 + stamp), (9_100 + stamp, stamp)];
        stamped(&mut capture, (at, true), (next - 10, 500), stamps[0]);
        stamped(&mut capture, (at + 10, false), (500, next), stamps[1]);
    }
    let (text, _) = read(&capture, &["--by", "echo"]);
    let (by_acknowledgement, _) = read(&capture, &[]);
    assert!(text.contains("Path RTT to servers, by echo: "), "{text}");
    assert!(
        !by_acknowledgement.contains("by echo"),
        "{by_acknowledgement}"
    );
}

#[test]
fn answers_alone_are_counted_and_shown() {
    let mut capture = Capture::new();
    for sequence in 0..3 {
        capture.echo((u32::from(sequence) * 1_000, false), sequence);
    }
    let (text, summary) = read(&capture, &[]);
    assert!(text.contains("0, 3 without request"), "{text}");
    let expected = "1 pair of ping or DNS with one direction only in the capture";
    assert!(text.contains(expected), "{text}");
    assert_eq!(summary["exchange_packets"], 3);
    assert_eq!(summary["responses_without_request"], 3);
    assert_eq!(summary["exchanges_one_direction_only"], 1);
}

#[test]
fn a_port_of_quic_can_be_named_where_the_handshake_did_not_pass() {
    let mut capture = Capture::new();
    for number in 0..200 {
        quic_at(4_433, &mut capture, number, true);
        quic_at(4_433, &mut capture, number, false);
    }
    let folder = TestFolder::empty();
    fs::write(folder.path("a.pcap"), &capture.0).expect("a file");
    let json = |extra_args: &[&str]| -> Value {
        let ran = folder.neph([&["read", "a.pcap", "--format", "json"], extra_args].concat());
        serde_json::from_str(&ran.out).expect("JSON")
    };
    let unnamed = json(&[]);
    assert_eq!(unnamed["summary"]["other_packets"]["udp"], 400);
    let with_quic_port = json(&["--quic-port", "4433"]);
    assert_eq!(with_quic_port["exchanges"][0]["protocol"], "quic_spin");
    assert_eq!(
        with_quic_port["exchanges"][0]["round_trips"]["server"]["p50_ns"],
        2_000_000
    );
}
