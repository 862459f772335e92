//! Reads the captures of the fuzz corpora completely.

use std::fs;
use std::path::{Path, PathBuf};

use neph_capture::{Limits, Method};
use neph_model::Stop;
use serde_json::Value;

use super::OutputWriter;
use super::read_capture;
use neph_capture::reading::conversations::Conversations;
use neph_documents::Format;
use neph_documents::captures::OutputOptions;
use neph_documents::captures::Sort;

/// The summary of a capture as JSON and as text; `None` if the file is not a capture.
fn summary(path: &Path) -> Option<(Value, String)> {
    let settings = OutputOptions {
        format: Format::Text,
        sort: Sort::P50,
        top: 0,
        method: Method::Acknowledgement,
        samples: false,
    };
    let mut conversations = Conversations::new(Limits::default(), &[]);
    let mut writer = OutputWriter::new(settings, crate::output::data());
    let (file, _) = read_capture(
        path,
        crate::read::reader(&Stop::default(), &|_| {}),
        &mut conversations,
        &mut writer,
    )
    .ok()?;
    conversations.end(&mut writer);
    let (files, mut text) = ([file], Vec::new());
    let summary = writer.summary();
    (summary.write(Method::Acknowledgement, &conversations, &files, &mut text)).expect("written");
    let text = String::from_utf8(text).expect("text");
    let document = summary.document(&conversations, &files);
    Some((serde_json::to_value(document).expect("JSON"), text))
}

/// The packets in each counter of the summary.
fn count_packets(summary: &Value) -> u64 {
    let to_u64 = |value: &Value| value.as_u64().expect("a number");
    let other_packets = summary["other_packets"].as_object().expect("an object");
    let sum_over_files = |key: &str| -> u64 {
        let files = summary["files"].as_array().expect("a list");
        files.iter().map(|file| to_u64(&file[key])).sum()
    };
    let keys = ["packets", "exchange_packets", "capture_duplicates_removed"];
    keys.iter().map(|key| to_u64(&summary[*key])).sum::<u64>()
        + other_packets.values().map(to_u64).sum::<u64>()
        + sum_over_files("packets_not_ip")
        + sum_over_files("packets_without_timestamp")
}

/// The files of a folder, in order; none if it does not exist.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// A capture with this link type; each file becomes a packet.
fn build_capture(link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
    file.extend(link.to_le_bytes());
    for (index, packet) in (0_u32..).zip(packets) {
        let length = u32::try_from(packet.len()).expect("short");
        let fields = [1_700_000_000, index * 1_000, length, length];
        file.extend(fields.into_iter().flat_map(u32::to_le_bytes));
        file.extend(packet);
    }
    file
}

/// The corpus of captures, without the byte that selects the cut for the fuzz target, and the
/// packets of the corpus of dissection with each link type.
fn corpus() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let inputs = |name: &str| {
        let files = files(&root.join("fuzz/corpus").join(name)).into_iter();
        files.map(|path| fs::read(path).expect("a file"))
    };
    let mut captures: Vec<Vec<u8>> = inputs("capture")
        .filter_map(|input| input.get(1..).map(<[u8]>::to_vec))
        .collect();
    let packets: Vec<Vec<u8>> = inputs("dissect").collect();
    captures.extend([1, 9, 101, 113, 276].map(|link| build_capture(link, &packets)));
    // Corpora next to the checkout, if they exist.
    let cases = files(&root.join("../shared/cases")).into_iter();
    captures.extend(cases.map(|path| fs::read(path).expect("a file")));
    captures
}

#[test]
fn each_packet_is_counted_once_and_each_counter_is_reported() {
    let (mut captures_read, mut packets) = (0, 0);
    let folder = std::env::temp_dir().join(format!("neph-corpus-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("a.pcap");
    for (index, bytes) in corpus().into_iter().enumerate() {
        fs::write(&path, bytes).expect("written");
        let Some((summary, text)) = summary(&path) else {
            continue;
        };
        let captured_packets = summary["packets_captured"].as_u64().expect("a number");
        assert_eq!(
            count_packets(&summary),
            captured_packets,
            "{index}: {summary}"
        );
        assert!(captured_packets == 0 || !text.is_empty(), "{index}");
        captures_read += u64::from(captured_packets > 0);
        packets += captured_packets;
    }
    fs::remove_dir_all(&folder).expect("removed");
    println!("{packets} packets of {captures_read} captures");
    assert!(captures_read > 300 && packets > 1_000, "{packets} packets");
}
