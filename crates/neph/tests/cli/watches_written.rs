//! `neph watch --write`: the capture beside what is reported, or instead of it.

use std::process::Stdio;

use neph_sys::ring::{PacketRing, RingMode};
use serde_json::Value;

use crate::neph::{RunOutput, TestFolder, run_ip, start_and_read_line};
use crate::watches::{Watch, exchange, lines, lines_of_kind, with_loopback};

#[test]
fn a_written_capture_reads_as_the_reported_values() {
    with_loopback("written", || {
        let folder = TestFolder::empty();
        let watch = Watch::begin(&folder, &["--write", "beside.pcap", "--format", "ndjson"]);
        exchange("127.0.0.1", 20);
        exchange("::1", 20);
        let ran = watch.interrupt();
        assert_eq!(ran.status, 130);
        let stdout = lines(&ran.out);
        let read = folder.neph(["read", "beside.pcap", "--format", "ndjson"]);
        assert_eq!(
            (read.status, read.err.as_str()),
            (0, ""),
            "the file is whole"
        );
        let read = lines(&read.out);
        assert_eq!(lines_of_kind(&read, "flow").len(), 2);
        assert_eq!(lines_of_kind(&read, "flow"), lines_of_kind(&stdout, "flow"));
        let summary = |lines: &[Value]| lines.last().expect("a summary")["round_trips"].clone();
        assert_eq!(summary(&read), summary(&stdout));
    });
}

#[test]
fn standard_output_can_be_the_capture() {
    with_loopback("out", || {
        let folder = TestFolder::empty();
        let watch = Watch::begin(&folder, &["--write", "-", "--port", "9", "--count", "3"]);
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for bytes in [10, 400, 20, 30] {
            sender
                .send_to(&vec![7; bytes], "127.0.0.1:9")
                .expect("sent");
        }
        let output = watch.output();
        assert_eq!(output.status.code(), Some(0));
        // A header, and three records: of the second 256 bytes are kept.
        let records = [52, 256, 62].map(|captured_length| 16 + captured_length);
        assert_eq!(output.stdout.len(), 24 + records.iter().sum::<usize>());
    });
}

/// An Ethernet frame with a VLAN tag around a SYN.
fn tagged_syn() -> Vec<u8> {
    let mut frame = vec![0xff; 12];
    frame.extend([0x81, 0, 0xa0, 7, 8, 0]);
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend([192, 0, 2, 1, 198, 51, 100, 2]);
    frame.extend([
        0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 99, 0, 0, 0, 0, 0x50, 2, 2, 0, 0, 0, 0, 0,
    ]);
    frame
}

#[test]
fn a_vlan_tag_stripped_by_the_kernel_is_reported_and_written() {
    with_loopback("vlan", || {
        for line in [
            "link add near type veth peer name far",
            "link set near up",
            "link set far up",
        ] {
            run_ip(line);
        }
        let folder = TestFolder::empty();
        let arguments = ["watch", "far", "--port", "443", "--write", "vlan.pcap"];
        let arguments = arguments
            .iter()
            .chain(&["--count", "1", "--format", "ndjson"]);
        let mut command = folder.command(arguments.copied());
        let (child, _stderr, _) = start_and_read_line(command.stdout(Stdio::piped()));
        let sender = PacketRing::open("near", 1, RingMode::Wire).expect("a sender");
        sender.send(&tagged_syn()).expect("send");
        let ran = RunOutput::from(child.wait_with_output().expect("it ends"));
        let stdout = lines(&ran.out);
        assert_eq!(
            lines_of_kind(&stdout, "flow")[0]["via"],
            "vlan 7",
            "{}",
            ran.out
        );
        let written = std::fs::read(folder.path("vlan.pcap")).expect("a capture");
        assert_eq!(written[24 + 16..], tagged_syn(), "as it was on the wire");
    });
}
