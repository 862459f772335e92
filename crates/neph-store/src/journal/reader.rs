//! Reads a journal from its start to its last whole record, also while it is being written.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use neph_model::ExperimentId;

use super::{FRAME_BYTES, HEADER_BYTES, MAX_PAYLOAD, Record, chained, decode, header};
use crate::StoreError;

/// Gives the records of a journal one after the other.
#[derive(Debug)]
pub(crate) struct JournalReader {
    file: BufReader<File>,
    path: PathBuf,
    chain: u32,
    /// Where the next frame begins; `None` behind the last whole one.
    next: Option<u64>,
    payload: Vec<u8>,
}

impl JournalReader {
    /// Opens the journal of `experiment`. One whose header is torn or damaged has no records.
    /// `Ok(None)` if there is no such file.
    pub(crate) fn open(path: &Path, experiment: ExperimentId) -> Result<Option<Self>, StoreError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::file("open the journal", path)(error)),
        };
        let expected = header(experiment);
        let mut reader = Self {
            file: BufReader::with_capacity(1 << 16, file),
            path: path.to_owned(),
            chain: crc32fast::hash(&expected),
            next: None,
            payload: Vec::new(),
        };
        let mut found = [0; HEADER_BYTES];
        if reader.fill(&mut found)? && found == expected {
            reader.next = Some(HEADER_BYTES as u64);
        }
        Ok(Some(reader))
    }

    /// The next record and where its frame begins; `None` at the end or at the first byte that is
    /// not as it was written, which for a reader is the same.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Record)>, StoreError> {
        let Some(start) = self.next.take() else {
            return Ok(None);
        };
        let mut frame = [0; FRAME_BYTES];
        if !self.fill(&mut frame)? {
            return Ok(None);
        }
        let [l0, l1, l2, l3, c0, c1, c2, c3] = frame;
        let length = [l0, l1, l2, l3];
        let bytes = u32::from_le_bytes(length) as usize;
        if bytes > MAX_PAYLOAD {
            return Ok(None);
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(bytes, 0);
        let whole = self.fill(&mut payload)?;
        let crc = u32::from_le_bytes([c0, c1, c2, c3]);
        let record = (whole && chained(self.chain, length, &payload) == crc)
            .then(|| decode::record(&payload))
            .flatten();
        self.payload = payload;
        let Some(record) = record else {
            return Ok(None);
        };
        self.chain = crc;
        self.next = Some(start + (FRAME_BYTES + bytes) as u64);
        Ok(Some((start, record)))
    }

    /// The open file, to read from any place of it.
    pub(crate) fn into_file(self) -> File {
        self.file.into_inner()
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
