//! Options of a recording of live points.

use std::path::PathBuf;

use neph_model::{ByteSize, Span};

use crate::PacketFilter;

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct RecordingOptions {
    /// It ends after this time; else when it is stopped.
    pub duration: Option<Span>,
    /// It ends when a point has this many packets.
    pub count: Option<u64>,
    /// The folder of the captures; else they are temporary.
    pub save: Option<PathBuf>,
    /// It ends when a point's capture has this many bytes.
    pub limit: ByteSize,
    /// Which packets are captured.
    pub packet_filter: PacketFilter,
    /// Captured bytes of each packet.
    pub snaplen: u32,
    /// Memory for the waiting packets of a point.
    pub ring: ByteSize,
}
