//! Captures that are not whole, or that were joined of others: what is reported about them.

use std::fs;
use std::io::Read;

use flate2::Compression;
use flate2::read::GzEncoder;
use serde_json::Value;

use crate::neph::TestFolder;
use crate::reads::{ACK, Capture, SYN};

/// These bytes in a frame of zstd that has not ended yet: its window is 8 MiB, its blocks lie as they are.
pub(crate) fn unfinished_zstd(bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3];
    for block in bytes.chunks(100_000) {
        let header = u32::try_from(block.len()).expect("short") << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(block);
    }
    frame
}

fn summary(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).expect("JSON");
    document["summary"].clone()
}

#[test]
fn a_packed_capture_that_was_cut_off_is_read_up_to_there_as_a_plain_one_is() {
    let folder = TestFolder::empty();
    let capture_bytes = Capture::slow_server().0;
    for (kept_bytes, packets) in [(capture_bytes.len(), 5), (capture_bytes.len() - 1, 4)] {
        fs::write(
            folder.path("a.pcap.zst"),
            unfinished_zstd(&capture_bytes[..kept_bytes]),
        )
        .expect("a file");
        let ran = folder.neph(["read", "a.pcap.zst", "--format", "json"]);
        let summary = summary(&ran.out);
        assert_eq!((ran.status, &summary["packets"]), (0, &packets.into()));
        assert_eq!(summary["files"][0]["ending"], "cut off");
        assert!(
            ran.err.contains("is compressed and truncated"),
            "{}",
            ran.err
        );
        assert!(
            ran.err.contains(&format!("{packets} packets")),
            "{}",
            ran.err
        );
    }
    fs::write(folder.path("a.pcap.zst"), unfinished_zstd(&[])).expect("a file");
    let ran = folder.neph(["read", "a.pcap.zst"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
}

/// These bytes in a member of gzip, in blocks that lie as they are; the next block has no known kind.
fn broken_gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    for block in bytes.chunks(60_000) {
        let length = u16::try_from(block.len()).expect("short");
        member.push(0);
        member.extend(length.to_le_bytes());
        member.extend((!length).to_le_bytes());
        member.extend(block);
    }
    member.extend([6; 9]);
    member
}

#[test]
fn a_broken_compressed_capture_is_reported_in_one_sentence_after_its_readable_part() {
    let folder = TestFolder::empty();
    let mut capture = Capture::slow_server();
    for segment in 0..200 {
        capture.segment((100, true), ACK, (110 + 1_000 * segment, 510), 1_000);
    }
    let mut zstd = unfinished_zstd(&capture.0);
    zstd.extend([6; 9]);
    for (name, program, packed) in [
        ("a.pcap.zst", "zstd", zstd),
        ("a.pcap.gz", "gzip", broken_gzip(&capture.0)),
    ] {
        fs::write(folder.path(name), packed).expect("a file");
        let ran = folder.neph(["read", name, "--format", "json"]);
        assert_eq!(ran.status, 2, "{}", ran.err);
        for expected in [
            format!("{name} can be decompressed up to byte "),
            format!("the {program} data is corrupt there or before; copy the file again"),
        ] {
            assert!(ran.err.contains(&expected), "{}", ran.err);
        }
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        let summary = summary(&ran.out);
        assert_eq!(summary["files"][0]["ending"], "broken");
        // But for what gzip had begun to unpack.
        let packets = summary["packets"].as_u64().expect("a count");
        assert!(
            packets == 205 || program == "gzip" && packets > 170,
            "{packets}"
        );
        assert!(
            ran.err
                .contains(&format!("({packets} packets before it were read)")),
            "{}",
            ran.err
        );
    }
    // Of nothing that could be unpacked nothing is told.
    fs::write(folder.path("a.pcap.gz"), broken_gzip(&[])).expect("a file");
    let ran = folder.neph(["read", "a.pcap.gz"]);
    assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
}

/// A line behind a copy, or the padding of a tape.
#[test]
fn bytes_after_gzip_data_are_ignored_and_an_earlier_cut_is_reported() {
    let folder = TestFolder::empty();
    let capture_bytes = Capture::slow_server().0;
    for (kept_bytes, trailing_bytes, ending, reported_ending) in [
        (capture_bytes.len(), &[0; 512][..], "whole", ""),
        (
            capture_bytes.len(),
            b"a line",
            "whole",
            "has data after the gzip stream",
        ),
        (
            capture_bytes.len() - 1,
            b"a line",
            "cut off",
            "is cut off within the record",
        ),
    ] {
        let mut packed = Vec::new();
        GzEncoder::new(&capture_bytes[..kept_bytes], Compression::fast())
            .read_to_end(&mut packed)
            .expect("packed");
        packed.extend(trailing_bytes);
        fs::write(folder.path("a.pcap.gz"), packed).expect("a file");
        let ran = folder.neph(["read", "a.pcap.gz", "--format", "json"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        assert_eq!(summary(&ran.out)["files"][0]["ending"], ending);
        assert!(ran.err.contains(reported_ending), "{}", ran.err);
        assert_eq!(
            ran.err.is_empty(),
            reported_ending.is_empty(),
            "{}",
            ran.err
        );
    }
}

#[test]
fn only_large_backward_steps_in_a_capture_are_reported() {
    let folder = TestFolder::empty();
    for (later_ms, is_reported) in [(9_000, true), (900, false)] {
        let mut joined = Capture::new();
        // Through the reader's short way and its long one.
        joined.segment((later_ms, true), ACK, (100, 500), 10);
        joined.segment((later_ms, true), SYN, (1, 0), 0);
        joined.0.extend(&Capture::slow_server().0[24..]);
        fs::write(folder.path("a.pcap"), joined.0).expect("a file");
        let ran = folder.neph(["read", "a.pcap", "--format", "json"]);
        assert_eq!(ran.status, 0);
        let is_reported_value =
            ran.err.contains("jump back by 9.000 s") && ran.err.contains("count twice");
        assert_eq!(is_reported_value, is_reported, "{}", ran.err);
        assert_eq!(ran.err.is_empty(), !is_reported, "{}", ran.err);
        let backward_step = &summary(&ran.out)["files"][0]["largest_backward_step_ns"];
        assert_eq!(backward_step.as_i64(), is_reported.then_some(9_000_000_000));
    }
}

#[test]
fn a_forward_clock_step_in_a_capture_is_reported() {
    let folder = TestFolder::empty();
    for (later_ms, is_reported) in [(90_000_000, true), (80_000_000, false)] {
        let mut capture = Capture::new();
        capture.segment((0, true), SYN, (1, 0), 0);
        capture.segment((later_ms, true), ACK, (100, 500), 10);
        fs::write(folder.path("a.pcap"), capture.0).expect("a file");
        let ran = folder.neph(["read", "a.pcap", "--format", "json"]);
        let is_reported_value = ran
            .err
            .contains("a.pcap has no packet for 90000.000 s: its clock was set");
        assert_eq!(
            (ran.status, is_reported_value),
            (0, is_reported),
            "{}",
            ran.err
        );
        let silence = &summary(&ran.out)["files"][0]["silence_ns"];
        assert_eq!(silence.as_i64(), is_reported.then_some(90_000_000_000_000));
    }
}

#[test]
fn packets_out_of_time_order_are_reported_if_retransmissions_are_counted() {
    let folder = TestFolder::empty();
    // Two segments of a tenth of a second, in the order of time and out of it.
    for (times, late) in [([100, 101], 0), ([101, 100], 1)] {
        let mut capture = Capture::new();
        capture.segment((0, true), SYN, (1, 0), 0);
        capture.segment((1, false), SYN | ACK, (7, 2), 0);
        for at in times {
            capture.segment((at, true), ACK, (2 + (at - 100) * 10, 8), 10);
        }
        fs::write(folder.path("a.pcap"), capture.0).expect("a file");
        let stdout = folder.neph(["read", "a.pcap"]).out;
        let is_reported = stdout.contains("1 packet not in order of time");
        assert_eq!(is_reported, late > 0, "{stdout}");
        let ran = folder.neph(["read", "a.pcap", "--format", "json"]);
        let counted = &summary(&ran.out)["files"][0]["packets_out_of_order"];
        assert_eq!(counted.as_u64(), Some(late));
    }
}

#[test]
fn flows_that_the_table_leaves_out_are_counted() {
    let folder = TestFolder::empty();
    let mut capture = Capture::slow_server();
    for second in [1_000, 2_000] {
        // The port is used again: another flow.
        capture.segment((second, true), SYN, (second * 1_000, 0), 0);
        capture.segment((second + 30, false), SYN | ACK, (7, second * 1_000 + 1), 0);
    }
    fs::write(folder.path("a.pcap"), capture.0).expect("a file");
    let stdout_of = |top| folder.neph(["read", "a.pcap", "--top", top]).out;
    assert!(
        stdout_of("1").contains("2 lines more"),
        "{}",
        stdout_of("1")
    );
    assert!(!stdout_of("3").contains("--top"), "{}", stdout_of("3"));
}
