//! Captures that are not whole: what is told of them.

use std::fs;

use serde_json::Value;

use crate::neph::Place;
use crate::reads::Capture;

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
    let place = Place::empty();
    let whole = Capture::thinking().0;
    for (kept, packets) in [(whole.len(), 5), (whole.len() - 1, 4)] {
        fs::write(place.path("a.pcap.zst"), unfinished_zstd(&whole[..kept])).expect("a file");
        let ran = place.neph(["read", "a.pcap.zst", "--format", "json"]);
        let summary = summary(&ran.out);
        assert_eq!((ran.status, &summary["packets"]), (0, &packets.into()));
        assert_eq!(summary["files"][0]["ending"], "cut off");
        assert!(ran.err.contains("is packed and cut off"), "{}", ran.err);
        assert!(
            ran.err.contains(&format!("{packets} packets")),
            "{}",
            ran.err
        );
    }
    fs::write(place.path("a.pcap.zst"), unfinished_zstd(&[])).expect("a file");
    let ran = place.neph(["read", "a.pcap.zst"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
}
