//! What a recording of live points was asked for.

use std::path::PathBuf;

use neph_model::{ByteSize, Span};

use crate::PacketChoice;

/// What a recording was asked for.
#[derive(Clone, Debug)]
pub struct RecordingOptions {
    /// It ends after so long; else when it is stopped.
    pub duration: Option<Span>,
    /// It ends when a point has so many packets.
    pub count: Option<u64>,
    /// The folder of the captures; else they go away.
    pub save: Option<PathBuf>,
    /// It ends when a point's capture has so many bytes.
    pub limit: ByteSize,
    /// Which packets are captured.
    pub choice: PacketChoice,
    /// Bytes that are kept of each packet.
    pub snaplen: u32,
    /// Memory in which the packets of a point wait to be written.
    pub ring: ByteSize,
}
