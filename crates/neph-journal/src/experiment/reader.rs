//! Reads a journal from its start to its last whole record, also while it is being written.

use std::fs::File;
use std::path::Path;

use neph_model::ExperimentId;

use super::{Record, decode, header};
use crate::JournalError;
use crate::frames::FrameReader;

/// Gives the records of a journal one after the other.
#[derive(Debug)]
pub(crate) struct JournalReader(FrameReader);

impl JournalReader {
    /// Opens the journal of `experiment`. One whose header is torn or damaged has no records.
    /// `Ok(None)` if there is no such file.
    pub(crate) fn open(
        path: &Path,
        experiment: ExperimentId,
    ) -> Result<Option<Self>, JournalError> {
        Ok(FrameReader::open(path, &header(experiment))?.map(Self))
    }

    /// The next record and where its frame begins; `None` at the end or at the first byte that is
    /// not as it was written, which for a reader is the same.
    ///
    /// `keep` is what is wanted of the record: a message is large, and moving each costs time.
    pub(crate) fn next<T>(
        &mut self,
        keep: impl FnOnce(Record) -> T,
    ) -> Result<Option<(u64, T)>, JournalError> {
        self.0.next(|payload| decode::record(payload).map(keep))
    }

    /// The open file, to read from any place of it.
    pub(crate) fn into_file(self) -> File {
        self.0.into_file()
    }
}
