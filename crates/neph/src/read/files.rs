//! Captures that were read, as documents.

use neph_capture::Ending;
use neph_capture::reading::ending;
use neph_capture::reading::file::{File, Times};
use neph_capture::reading::packed::gzip;
use neph_model::Span;
use serde_json::{Value, json};

/// How much of a capture was read, and when its packets passed.
pub(super) fn document(file: &File) -> Value {
    let ending = match &file.account.ending {
        _ if ending::is_whole(&file.account) => "whole",
        Ending::BrokenPacked(error) if gzip::is_trailing(error) => "cut off",
        Ending::Whole | Ending::CutOff | Ending::CutPacked => "cut off",
        Ending::Broken(_) | Ending::BrokenPacked(_) => "broken",
        Ending::Failed(_) => "failed",
        Ending::Stopped => "stopped",
    };
    json!({
        "name": file.name,
        "packets": file.account.packets,
        "bytes": file.account.bytes,
        "packets_not_ip": file.not_ip,
        "packets_without_time": file.without_time,
        "packets_lost_by_capture": file.account.dropped,
        "packets_out_of_turn": file.times.map_or(0, Times::out_of_turn),
        "jump_back_ns": file.times.and_then(Times::jump).map(Span::nanos),
        "silence_ns": file.times.and_then(Times::silence).map(Span::nanos),
        "ending": ending,
    })
}
