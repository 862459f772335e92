//! Reads a journal from its start to its last complete record, also while it is written.

use std::fs::File;
use std::path::Path;

use neph_model::ExperimentId;

use super::{Record, decode, header};
use crate::JournalError;
use crate::frames::FrameReader;

/// Returns the records of a journal in their order.
#[derive(Debug)]
pub(crate) struct JournalReader(FrameReader);

impl JournalReader {
    /// Opens the journal of `experiment`. A journal with a damaged header has no records.
    /// `Ok(None)` if there is no such file.
    pub(crate) fn open(
        path: &Path,
        experiment: ExperimentId,
    ) -> Result<Option<Self>, JournalError> {
        Ok(FrameReader::open(path, &header(experiment))?.map(Self))
    }

    /// The next record and the offset of its frame; `None` at the end or at the first damaged byte,
    /// which a reader cannot distinguish.
    ///
    /// `extract` selects the needed part of the record: a message is large, and moving each takes
    /// time.
    pub(crate) fn next<T>(
        &mut self,
        extract: impl FnOnce(Record) -> T,
    ) -> Result<Option<(u64, T)>, JournalError> {
        self.0.next(|payload| decode::record(payload).map(extract))
    }

    /// The open file, for reads at any offset.
    pub(crate) fn into_file(self) -> File {
        self.0.into_file()
    }
}
