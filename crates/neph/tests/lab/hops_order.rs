//! `neph hops` over a link that reorders some packets: the reported number is that of the captures.

use std::collections::HashMap;
use std::path::Path;

use neph_model::Span;
use serde_json::Value;

use crate::clocks::shifted;
use crate::points::{CaptureFiles, Frame, frames, record_captures};
use crate::setup::{TwoSites, is_privileged, measure, neph, run_successfully};

const SECOND: i64 = 1_000_000_000;
const UDP: u8 = 17;
const CLIENT: u8 = 1;

/// Of each flow, how many came out behind one that had gone in behind them (RFC 4737), by their stamps.
fn out_of_order(sent: &[Frame], received: &[Frame], sender: u8) -> usize {
    let is_from_sender = |frame: &&Frame| frame.protocol() == UDP && frame.sender() == sender;
    // Nothing but the time to live, and the checksum over it, could change on the path.
    let content = |frame: &Frame| [&frame.ip[2..8], &frame.ip[12..]].concat();
    let [sent, received] = [sent, received].map(|frames| {
        let mut frames: Vec<&Frame> = frames.iter().filter(is_from_sender).collect();
        frames.sort_by_key(|frame| frame.at);
        frames
    });
    let sent = sent.into_iter().enumerate();
    let sent_indices: HashMap<Vec<u8>, usize> =
        sent.map(|(index, frame)| (content(frame), index)).collect();
    let mut highest: HashMap<(u8, Vec<u8>), usize> = HashMap::new();
    let mut out_of_order = 0;
    for frame in received {
        let Some(&index) = sent_indices.get(&content(frame)) else {
            continue;
        };
        let highest = highest.entry(frame.flow()).or_default();
        out_of_order += usize::from(index < *highest);
        *highest = index.max(*highest);
    }
    out_of_order
}

#[test]
fn the_reordered_count_equals_the_out_of_order_arrivals() {
    if !is_privileged("the_reordered_count_equals_the_out_of_order_arrivals") {
        return;
    }
    let lab = TwoSites::up("hops_order", "delay = \"20ms\"\nreorder = \"5%\"");
    let reflector = lab.reflector(Span::ZERO);
    let interfaces = ["client", "server"].map(|site| format!("path@{}", lab.namespace(site)));
    let [near_end, far_end] = record_captures(&interfaces, || {
        measure(lab.flow("udp", Span::from_millis(2), 600));
    });
    drop(reflector);
    drop(lab);
    let shifted_capture = shifted(far_end.clone(), 3 * SECOND, 40);
    let files = CaptureFiles::of("hops-order", [("a", &near_end), ("b", &shifted_capture)]);
    let [a, b] = &files.paths;
    let output = run_successfully(neph(
        Path::new("/nowhere"),
        &["hops", a, b, "--format", "json"],
    ));
    drop(files);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let (near_end, far_end) = (frames(&near_end), frames(&far_end));
    for (direction, expected) in [
        ("forward", out_of_order(&near_end, &far_end, CLIENT)),
        ("reverse", out_of_order(&far_end, &near_end, CLIENT + 1)),
    ] {
        let rows = document["segments"].as_array().expect("rows");
        let row = rows
            .iter()
            .find(|row| row["direction"] == direction && row["protocol"] == "udp");
        let row = row.unwrap_or_else(|| panic!("{document:#}"));
        println!(
            "{direction}: {expected} out of order, reported {}",
            row["reordered"]
        );
        assert_eq!(row["reordered"], expected, "{document:#}");
        // One in twenty skips 20 ms, in which ten others are sent.
        assert!(expected > 50, "{expected} of 600");
        // What skipped the delay shows how long the kernel takes: the bound is small.
        assert!(row["bound_ns"].as_i64().expect("a bound") < 10_000_000);
    }
}
