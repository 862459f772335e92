//! The journal of a running experiment: what was acknowledged survives a kill -9.
//!
//! A file of framed records behind a header. Each frame's checksum continues the one before it, so
//! that whatever happens to the file, what reads back is a prefix of what was written and never
//! anything else. Records are handed to the kernel by one write(2) per call: the kernel keeps them
//! whatever happens to the process (not: to the power).
//!
//! ```text
//! header: "NEPHJRNL" version:u32 experiment:[u8; 16] crc:u32
//! frame:  length:u32 crc:u32 payload   crc = crc32(crc of the frame before, length, payload)
//! ```

mod decode;
mod encode;
pub mod fuzzing;
mod reader;
mod sorted;
mod writer;

#[cfg(test)]
mod tests;

use neph_model::{Event, ExperimentId, Message, Sample};

pub(crate) use reader::JournalReader;
pub(crate) use sorted::Contents;
pub(crate) use writer::JournalWriter;

/// Counts up when the meaning of the bytes changes.
const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"NEPHJRNL";
const HEADER_BYTES: usize = 8 + 4 + 16 + 4;
/// Length and checksum.
const FRAME_BYTES: usize = 8;
/// No record is longer; a length above it can only be damage.
const MAX_PAYLOAD: usize = 1 << 20;

/// One thing that was recorded.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all records are messages; boxing them would cost an allocation each"
)]
pub(crate) enum Record {
    Message(Message),
    Event(Event),
    Sample(Sample),
}

/// The header of an experiment's journal.
fn header(experiment: ExperimentId) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..28].copy_from_slice(experiment.as_bytes());
    let crc = crc32fast::hash(&bytes[..28]);
    bytes[28..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The checksum of a frame, given the one before it (the header's for the first).
pub(crate) fn chained(before: u32, length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&before.to_le_bytes());
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}
