//! The journal of one segment: frames of records behind a header. As in the journal of an
//! experiment, each frame's checksum continues the one before it, so that what reads back is a
//! prefix of what was written; and a call is one write(2).
//!
//! ```text
//! header: "NEPHFLET" version:u32 experiment:[u8; 16] segment:u32 crc:u32
//! frame:  length:u32 crc:u32 records   crc = crc32(crc of the frame before, length, records)
//! ```

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::PathBuf;

use neph_model::{ExperimentId, FleetMessage};

use super::FleetPlace;
use super::record::{RECORD_BYTES, decode, encode};
use crate::StoreError;
use crate::journal::chained;

/// Counts up when the meaning of the bytes changes.
const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"NEPHFLET";
pub(super) const HEADER_BYTES: usize = 8 + 4 + 16 + 4 + 4;
/// Length and checksum.
pub(super) const FRAME_BYTES: usize = 8;
/// Records of a frame, at most: what a reader holds.
pub(super) const FRAME_RECORDS: usize = 4096;

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
pub(super) struct Writer {
    file: File,
    path: PathBuf,
    /// The checksum of the last frame in the file.
    chain: u32,
    /// The file's length: all of it whole frames.
    length: u64,
    /// One call's frames; kept so that a call allocates nothing once it has grown.
    frames: Vec<u8>,
}

impl Writer {
    /// A new journal; refuses to touch one that is there.
    pub(super) fn create(place: &FleetPlace, segment: u32) -> Result<Self, StoreError> {
        let path = place.journal(segment);
        let mut file = File::options()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(StoreError::file("make the journal", &path))?;
        let header = header(place.experiment, segment);
        file.write_all(&header)
            .map_err(StoreError::file("write the journal", &path))?;
        Ok(Self {
            file,
            path,
            chain: crc32fast::hash(&header),
            length: header.len() as u64,
            frames: Vec::new(),
        })
    }

    /// Hands the messages to the kernel. After a failure the file is cut back to whole frames, so
    /// that later ones are not lost behind a torn one.
    pub(super) fn append(&mut self, messages: &[FleetMessage]) -> Result<(), StoreError> {
        self.frames.clear();
        let mut chain = self.chain;
        for batch in messages.chunks(FRAME_RECORDS) {
            chain = frame(chain, batch, &mut self.frames);
        }
        if let Err(error) = self.file.write_all(&self.frames) {
            // If even this fails, the reader stops at the torn frame: still a prefix.
            let _cut = self.file.set_len(self.length);
            return Err(StoreError::file("write the journal", &self.path)(error));
        }
        self.length += self.frames.len() as u64;
        self.chain = chain;
        Ok(())
    }
}

/// Frames up to [`FRAME_RECORDS`] messages; returns the checksum to go on from.
fn frame(chain: u32, batch: &[FleetMessage], frames: &mut Vec<u8>) -> u32 {
    let start = frames.len();
    frames.extend([0; FRAME_BYTES]);
    for message in batch {
        encode(message, frames);
    }
    let records = &frames[start + FRAME_BYTES..];
    let length = u32::try_from(records.len())
        .expect("a frame's records are few")
        .to_le_bytes();
    let crc = chained(chain, length, records);
    frames[start..start + 4].copy_from_slice(&length);
    frames[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
    crc
}

/// Reads a segment's journal to its last whole frame, also while it is being written.
#[derive(Debug)]
pub(super) struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    chain: u32,
    /// Nothing behind it is as it was written.
    ended: bool,
    records: Vec<u8>,
}

impl Reader {
    /// `Ok(None)` if there is no such file. One whose header is torn or damaged has no messages.
    pub(super) fn open(place: &FleetPlace, segment: u32) -> Result<Option<Self>, StoreError> {
        let path = place.journal(segment);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::file("open the journal", &path)(error)),
        };
        let expected = header(place.experiment, segment);
        let mut reader = Self {
            file: BufReader::with_capacity(1 << 16, file),
            path,
            chain: crc32fast::hash(&expected),
            ended: true,
            records: Vec::new(),
        };
        let mut found = [0; HEADER_BYTES];
        reader.ended = !(reader.fill(&mut found)? && found == expected);
        Ok(Some(reader))
    }

    /// The next frame's messages into `batch`, over what is there; false at the end, or at the
    /// first byte that is not as it was written, which for a reader is the same.
    pub(super) fn next(&mut self, batch: &mut Vec<FleetMessage>) -> Result<bool, StoreError> {
        batch.clear();
        if self.ended {
            return Ok(false);
        }
        self.ended = true;
        let mut frame = [0; FRAME_BYTES];
        if !self.fill(&mut frame)? {
            return Ok(false);
        }
        let [l0, l1, l2, l3, c0, c1, c2, c3] = frame;
        let length = [l0, l1, l2, l3];
        let bytes = u32::from_le_bytes(length) as usize;
        if bytes > FRAME_RECORDS * RECORD_BYTES || !bytes.is_multiple_of(RECORD_BYTES) {
            return Ok(false);
        }
        let mut records = std::mem::take(&mut self.records);
        records.resize(bytes, 0);
        let whole = self.fill(&mut records)?;
        let crc = u32::from_le_bytes([c0, c1, c2, c3]);
        let right =
            whole && chained(self.chain, length, &records) == crc && decode_all(&records, batch);
        self.records = records;
        if right {
            self.chain = crc;
            self.ended = false;
        } else {
            batch.clear();
        }
        Ok(right)
    }

    /// Fills `buffer`; false if the file ends before.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, StoreError> {
        match self.file.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(StoreError::file("read the journal", &self.path)(error)),
        }
    }
}

fn decode_all(records: &[u8], batch: &mut Vec<FleetMessage>) -> bool {
    let (chunks, rest) = records.as_chunks::<RECORD_BYTES>();
    for chunk in chunks {
        match decode(chunk) {
            Some(message) => batch.push(message),
            None => return false,
        }
    }
    rest.is_empty()
}
