//! Captures that were read, as documents.

use neph_capture::Ending;
use neph_capture::reading::compressed::gzip;
use neph_capture::reading::ending;
use neph_capture::reading::file::{File, PacketTimes};
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

/// A capture: how much of it was read, and properties of its packets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileDocument {
    /// Name of the file.
    pub name: String,
    /// Number of packets read.
    pub packets: u64,
    /// Bytes of the capture that were read.
    pub bytes: u64,
    /// Packets that are not IP.
    pub packets_not_ip: u64,
    /// Packets without a timestamp.
    pub packets_without_timestamp: u64,
    /// Packets that the capturing program lost; null if the file does not have this number.
    pub packets_lost_by_capture: Option<u64>,
    /// Packets after a packet with a later timestamp; 0 if the clock jumped back by more than 5 s.
    pub packets_out_of_order: u64,
    /// Largest step back of the timestamps; null up to 5 s.
    pub largest_backward_step_ns: Option<Span>,
    /// Longest time without a packet; null up to one day.
    pub silence_ns: Option<Span>,
    /// `whole`, `cut off` (the last record is incomplete), `broken` (not a capture from there on),
    /// `failed` (a read failed) or `stopped`.
    pub ending: &'static str,
}

impl From<&File> for FileDocument {
    fn from(file: &File) -> Self {
        let ending = match &file.summary.ending {
            _ if ending::is_whole(&file.summary) => "whole",
            Ending::Undecodable(error) if gzip::is_trailing(error) => "cut off",
            Ending::Whole | Ending::CutOff | Ending::CutOffCompressed => "cut off",
            Ending::Broken(_) | Ending::Undecodable(_) => "broken",
            Ending::Failed(_) => "failed",
            Ending::Stopped => "stopped",
        };
        Self {
            name: file.name.clone(),
            packets: file.summary.packets,
            bytes: file.summary.bytes,
            packets_not_ip: file.not_ip,
            packets_without_timestamp: file.without_time,
            packets_lost_by_capture: file.summary.dropped,
            packets_out_of_order: file.times.map_or(0, PacketTimes::out_of_order),
            largest_backward_step_ns: file.times.and_then(PacketTimes::large_step_back),
            silence_ns: file.times.and_then(PacketTimes::long_gap),
            ending,
        }
    }
}
