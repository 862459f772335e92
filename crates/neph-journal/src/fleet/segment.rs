//! The journal of one segment: a header and [frames](crate::frames) of fixed-size records.
//!
//! ```text
//! header: "NEPHFLET" version:u32 experiment:[u8; 16] segment:u32 crc:u32
//! ```

use std::path::Path;

use neph_model::{ExperimentId, FleetMessage};

use super::record::{RECORD_BYTES, decode, encode};
use super::segment_path;
use crate::JournalError;
use crate::frames::{FrameReader, FrameWriter};

/// Incremented when the meaning of the bytes changes.
const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"NEPHFLET";
const HEADER_BYTES: usize = 8 + 4 + 16 + 4 + 4;
/// Maximum records of a frame, and so of a reader's batch.
const FRAME_RECORDS: usize = 4096;

pub(super) fn header(experiment: ExperimentId, segment: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..28].copy_from_slice(experiment.as_bytes());
    bytes[28..32].copy_from_slice(&segment.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..32]);
    bytes[32..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The only writer of one segment's journal.
#[derive(Debug)]
pub(super) struct SegmentWriter(FrameWriter);

impl SegmentWriter {
    /// Creates a journal; an error if it exists.
    pub(super) fn create(
        folder: &Path,
        experiment: ExperimentId,
        segment: u32,
    ) -> Result<Self, JournalError> {
        let header = header(experiment, segment);
        FrameWriter::create(&segment_path(folder, segment), &header).map(Self)
    }

    /// Passes the messages to the kernel.
    pub(super) fn append(&mut self, messages: &[FleetMessage]) -> Result<(), JournalError> {
        let batches = messages.chunks(FRAME_RECORDS);
        self.0.append(batches, |batch, out| {
            for message in batch {
                encode(message, out);
            }
        })
    }
}

/// Reads a segment's journal to its last complete frame, also while it is written.
#[derive(Debug)]
pub struct SegmentReader(FrameReader);

impl SegmentReader {
    /// Opens a segment's journal; `Ok(None)` if there is no such file. A journal with a damaged
    /// header has no messages.
    ///
    /// # Errors
    /// A file operation failed.
    pub fn open(
        folder: &Path,
        experiment: ExperimentId,
        segment: u32,
    ) -> Result<Option<Self>, JournalError> {
        let header = header(experiment, segment);
        Ok(FrameReader::open(&segment_path(folder, segment), &header)?.map(Self))
    }

    /// Replaces `batch` by the next frame's messages; false at the end or at the first damaged
    /// byte, which a reader cannot distinguish.
    ///
    /// # Errors
    /// A file operation failed.
    pub fn next(&mut self, batch: &mut Vec<FleetMessage>) -> Result<bool, JournalError> {
        batch.clear();
        let decoded = self.0.next(|records| decode_all(records, batch))?;
        if decoded.is_none() {
            batch.clear();
        }
        Ok(decoded.is_some())
    }
}

fn decode_all(records: &[u8], batch: &mut Vec<FleetMessage>) -> Option<()> {
    let (chunks, remainder) = records.as_chunks::<RECORD_BYTES>();
    for chunk in chunks {
        batch.push(decode(chunk)?);
    }
    remainder.is_empty().then_some(())
}
