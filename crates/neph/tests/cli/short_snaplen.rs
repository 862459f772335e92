//! Captures that kept too little of packets in tunnels, and `neph watch` that keeps too little.

use std::fs;
use std::net::UdpSocket;

use serde_json::Value;

use crate::neph::TestFolder;
use crate::reads::Capture;
use crate::watches::{Watch, lines, with_loopback};

/// Bytes from the outer IPv6 header to the end of the inner one's, with UDP, VXLAN and Ethernet between.
const TO_INNER: usize = 40 + 8 + 8 + 14 + 40;
/// What helps.
const ADVICE: &str = "keep at least 256 bytes of each (tcpdump -s 256, or --snaplen 256 of neph watch and neph hops)";

/// What a datagram to the port of VXLAN carries: a segment with stamps over IPv6.
fn vxlan_payload(number: u8) -> Vec<u8> {
    let mut bytes = vec![8, 0, 0, 0, 0, 0, 42, 0];
    bytes.extend([2; 12]);
    bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 6, 64]);
    bytes.extend([0xfd; 16]);
    bytes.extend([0xfe; 16]);
    bytes.extend([0x9c, 0x40, 1, 0xbb, 0, 0, 0, number, 0, 0, 0, 1]);
    bytes.extend([0x80, 0x10, 2, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
    bytes.extend([0, 0, 0, number, 0, 0, 0, 1]);
    bytes
}

/// Adds so many packets of VXLAN over IPv6, of which so many bytes were kept.
fn add_tunnelled(capture: &mut Capture, count: u8, captured_length: usize) {
    for number in 0..count {
        let inside = vxlan_payload(number);
        let [a, b] = u16::try_from(8 + inside.len())
            .expect("small")
            .to_be_bytes();
        let mut packet = vec![0x60, 0, 0, 0, a, b, 17, 64];
        packet.extend([0x20; 32]);
        packet.extend([0x30, 0x39, 0x12, 0xb5, a, b, 0, 0]);
        packet.extend(inside);
        let length = u32::try_from(packet.len()).expect("small");
        packet.truncate(captured_length);
        let captured_length = u32::try_from(packet.len()).expect("small");
        let fields = [
            1_700_000_001,
            u32::from(number) * 1_000_000,
            captured_length,
            length,
        ];
        capture
            .0
            .extend(fields.into_iter().flat_map(u32::to_le_bytes));
        capture.0.extend(packet);
    }
}

fn write_capture(folder: &TestFolder, name: &str, capture: &Capture) {
    fs::write(folder.path(name), &capture.0).expect("a file");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn packets_cut_within_a_tunnel_count_as_truncated() {
    let folder = TestFolder::empty();
    // Within the outer header, VXLAN's, the inner one's, and that of TCP.
    for captured_length in [30, 52, 80, TO_INNER - 1, TO_INNER + 12] {
        let mut capture = Capture::new();
        add_tunnelled(&mut capture, 5, captured_length);
        write_capture(&folder, "cut.pcap", &capture);
        let text = folder.neph(["read", "cut.pcap"]);
        assert!(
            text.out.contains("Packets of no flow here: 5 cut off.\n"),
            "{captured_length}: {}",
            text.out
        );
        let expected = format!(
            "5 packets truncated within the headers, so their content is unknown; {ADVICE}."
        );
        assert!(
            text.out.contains(&expected),
            "{captured_length}: {}",
            text.out
        );
        let summary =
            json(&folder.neph(["read", "cut.pcap", "--format", "json"]).out)["summary"].take();
        assert_eq!(summary["other_packets"]["cut_off"], 5, "{captured_length}");
        assert_eq!(
            summary["other_packets"]["other_protocols"], 0,
            "{captured_length}"
        );
        assert_eq!(
            summary["files"][0]["packets_not_ip"], 0,
            "{captured_length}"
        );
    }
    let mut full_capture = Capture::new();
    add_tunnelled(&mut full_capture, 5, 256);
    write_capture(&folder, "whole.pcap", &full_capture);
    let text = folder.neph(["read", "whole.pcap"]).out;
    assert!(text.contains("1 flow of TCP, 5 packets"), "{text}");
    assert!(!text.contains("cut off"), "{text}");
}

#[test]
fn packets_cut_within_a_tunnel_are_reported_with_the_snaplen() {
    let folder = TestFolder::empty();
    // Nothing but those.
    for name in ["a.pcap", "b.pcap"] {
        let mut capture = Capture::new();
        add_tunnelled(&mut capture, 5, 100);
        write_capture(&folder, name, &capture);
    }
    let hops = ["hops", "a.pcap", "b.pcap"];
    let clock = ["clock", "--captures", "a.pcap", "b.pcap"];
    for command in [&hops[..], &clock] {
        let ran = folder.neph(command.iter().copied());
        assert_eq!(ran.status, 2, "{}", ran.err);
        let expected = "5 packets, none of them of IP with a time and all of its header; ";
        assert!(
            ran.err.contains(&format!("{expected}{ADVICE}")),
            "{}",
            ran.err
        );
    }
    // Beside pings that were not cut.
    for (name, [forward, reverse]) in [("a.pcap", [0, 6]), ("b.pcap", [2, 4])] {
        let mut capture = Capture::new();
        for number in 0..20 {
            let begin = u32::from(number) * 20;
            capture.echo((begin + forward, true), number);
            capture.echo((begin + reverse, false), number);
        }
        add_tunnelled(&mut capture, 5, 100);
        write_capture(&folder, name, &capture);
    }
    for command in [&hops[..], &clock] {
        let ran = folder.neph(command.iter().copied());
        assert_eq!(ran.status, 0, "{}", ran.err);
        let expected = format!("10 packets cut too short to be known again: {ADVICE}");
        let printed_text = ran.out + &ran.err;
        assert!(printed_text.contains(&expected), "{printed_text}");
    }
}

#[test]
fn a_capture_without_ip_does_not_advise_a_longer_snaplen() {
    let folder = TestFolder::empty();
    let mut capture = Capture::new();
    for _ in 0..3 {
        let fields = [1_700_000_000_u32, 0, 28, 60];
        capture
            .0
            .extend(fields.into_iter().flat_map(u32::to_le_bytes));
        capture.0.extend([0; 28]);
    }
    for name in ["a.pcap", "b.pcap"] {
        write_capture(&folder, name, &capture);
    }
    let ran = folder.neph(["hops", "a.pcap", "b.pcap"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    let expected = "none of them of IP with a time; capture where IP passes";
    assert!(ran.err.contains(expected), "{}", ran.err);
    assert!(!ran.err.contains("-s 256"), "{}", ran.err);
}

#[test]
fn a_watch_with_a_short_snaplen_reports_truncated_packets() {
    with_loopback("cut", || {
        let folder = TestFolder::empty();
        let short = ["--snaplen", "96", "--format", "ndjson"];
        let short = Watch::begin(&folder, &short);
        let text = Watch::begin(&folder, &["--snaplen", "96"]);
        let long_snaplen_watch = Watch::begin(&folder, &["--format", "ndjson"]);
        let server = UdpSocket::bind("[::1]:4789").expect("bind");
        let client = UdpSocket::bind("[::1]:0").expect("bind");
        for number in 0..5 {
            client
                .send_to(&vxlan_payload(number), "[::1]:4789")
                .expect("send");
            server.recv(&mut [0; 256]).expect("receive");
        }
        let [short, text, long_snaplen_watch] =
            [short, text, long_snaplen_watch].map(Watch::interrupt);
        let summary = |out: &str| lines(out).pop().expect("a summary");
        let summary_text = summary(&short.out);
        assert_eq!(
            summary_text["other_packets"]["cut_off"], 5,
            "{summary_text}"
        );
        assert_eq!(
            summary_text["files"][0]["packets_not_ip"], 0,
            "{summary_text}"
        );
        assert!(
            text.out
                .contains(&format!("content is unknown; {ADVICE}.\n")),
            "{}",
            text.out
        );
        let summary = summary(&long_snaplen_watch.out);
        assert_eq!(
            (&summary["other_packets"]["cut_off"], &summary["flows"]),
            (&0.into(), &1.into())
        );
    });
}
