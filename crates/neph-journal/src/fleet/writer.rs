//! Appends a fleet's messages to the journal of the open segment.

use std::fs;
use std::path::{Path, PathBuf};

use neph_model::{ExperimentId, FleetMessage};

use super::segment::SegmentWriter;
use super::{SEGMENT_MESSAGES, SEGMENT_TIME};
use crate::JournalError;

/// The only writer of one experiment's fleet.
#[derive(Debug)]
pub struct FleetWriter {
    folder: PathBuf,
    experiment: ExperimentId,
    open: Option<OpenSegment>,
    /// The number of the next segment.
    next_number: u32,
}

/// The open segment.
#[derive(Debug)]
struct OpenSegment {
    number: u32,
    writer: SegmentWriter,
    messages: u64,
    /// Send time of its first message.
    first_sent_ns: i64,
}

impl FleetWriter {
    /// A writer for a new experiment. The first message creates `folder`.
    pub fn new(folder: &Path, experiment: ExperimentId) -> Self {
        Self {
            folder: folder.to_owned(),
            experiment,
            open: None,
            next_number: 1,
        }
    }

    /// Appends messages, which are safe from a kill when this returns. Returns the segment's number
    /// if it is now full: nothing more is appended to it.
    ///
    /// # Errors
    /// Writing failed.
    pub fn append(&mut self, messages: &[FleetMessage]) -> Result<Option<u32>, JournalError> {
        let (Some(first), Some(last)) = (messages.first(), messages.last()) else {
            return Ok(None);
        };
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(first)?,
        };
        let appended = open.writer.append(messages);
        if appended.is_ok() {
            open.messages += messages.len() as u64;
        }
        let duration = last.sent.nanos().saturating_sub(open.first_sent_ns);
        let is_full = open.messages >= SEGMENT_MESSAGES || duration >= SEGMENT_TIME;
        let number = open.number;
        if appended.is_err() || !is_full {
            self.open = Some(open);
        }
        appended.map(|()| is_full.then_some(number))
    }

    fn begin(&mut self, first: &FleetMessage) -> Result<OpenSegment, JournalError> {
        let number = self.next_number;
        if number == 1 {
            fs::create_dir_all(&self.folder)
                .map_err(JournalError::file("make the folder", &self.folder))?;
        }
        let writer = SegmentWriter::create(&self.folder, self.experiment, number)?;
        self.next_number += 1;
        Ok(OpenSegment {
            number,
            writer,
            messages: 0,
            first_sent_ns: first.sent.nanos(),
        })
    }
}
