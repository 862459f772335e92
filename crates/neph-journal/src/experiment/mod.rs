//! The journal of a running experiment: acknowledged records survive kill -9.
//!
//! A file of [frames](crate::frames), one for each record, in the order of recording.
//!
//! ```text
//! header: "NEPHJRNL" version:u32 experiment:[u8; 16] crc:u32
//! ```

mod contents;
mod decode;
mod encode;
pub mod fuzzing;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

use neph_model::{Event, ExperimentId, Message, Sample};

pub use contents::Contents;
pub(crate) use reader::JournalReader;
pub use writer::JournalWriter;

/// Incremented when the meaning of the bytes changes.
const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"NEPHJRNL";
const HEADER_BYTES: usize = 8 + 4 + 16 + 4;

/// A record.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all records are messages; boxing them would cost an allocation each"
)]
pub(crate) enum Record {
    /// A message that has ended.
    Message(Message),
    /// An event.
    Event(Event),
    /// A value of a series.
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
