//! The contents of a journal, with messages by flow and sequence number.
//!
//! Messages are recorded in the order in which they end. Sorting them needs (flow, seq, offset) in
//! memory, 24 bytes each. The messages are then read from their offsets, nearly in file order.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use neph_model::{Event, ExperimentId, Message, Sample};

use super::{JournalReader, Record, decode};
use crate::JournalError;
use crate::frames::FRAME_HEADER_BYTES;

/// Bytes per read.
const WINDOW_BYTES: usize = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MessageOffset {
    flow: u32,
    seq: u64,
    start: u64,
}

/// The contents of a journal.
#[derive(Debug, Default)]
pub struct Contents {
    /// Open, because the writer may finish and remove the journal meanwhile.
    file: Option<File>,
    path: PathBuf,
    message_offsets: Vec<MessageOffset>,
    /// In the order of recording.
    pub events: Vec<Event>,
    /// In the order of recording.
    pub samples: Vec<Sample>,
}

impl Contents {
    /// Reads the whole journal once; `Ok(None)` if there is none.
    pub fn of(path: &Path, experiment: ExperimentId) -> Result<Option<Self>, JournalError> {
        let Some(mut reader) = JournalReader::open(path, experiment)? else {
            return Ok(None);
        };
        let mut contents = Self {
            path: path.to_owned(),
            ..Self::default()
        };
        while let Some((start, key)) = reader.next(|record| contents.key_of(record))? {
            if let Some((flow, seq)) = key {
                contents
                    .message_offsets
                    .push(MessageOffset { flow, seq, start });
            }
        }
        contents.message_offsets.sort_unstable();
        contents.file = Some(reader.into_file());
        Ok(Some(contents))
    }

    /// The key of a message; stores events and samples.
    fn key_of(&mut self, record: Record) -> Option<(u32, u64)> {
        match record {
            Record::Message(message) => return Some((message.flow.0, message.seq.0)),
            Record::Event(event) => self.events.push(event),
            Record::Sample(sample) => self.samples.push(sample),
        }
        None
    }

    /// Number of messages.
    pub fn message_count(&self) -> usize {
        self.message_offsets.len()
    }

    /// Whether the journal has no records.
    pub fn is_empty(&self) -> bool {
        self.message_offsets.is_empty() && self.events.is_empty() && self.samples.is_empty()
    }

    /// Passes every message to `visit`, by flow and sequence number.
    ///
    /// # Errors
    /// A file operation failed, or `visit` returned an error, which ends the iteration.
    pub fn each_message<E: From<JournalError>>(
        &self,
        mut visit: impl FnMut(Message) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut window = Window {
            file,
            bytes: Vec::new(),
            start: 0,
        };
        for offset in &self.message_offsets {
            let message = window
                .message(offset.start)
                .map_err(JournalError::file("read the journal", &self.path))?
                .ok_or_else(|| JournalError::Changed {
                    path: self.path.clone(),
                    start: offset.start,
                })?;
            visit(message)?;
        }
        Ok(())
    }
}

/// The part of the file that was read last.
struct Window<'a> {
    file: &'a File,
    bytes: Vec<u8>,
    start: u64,
}

impl Window<'_> {
    fn message(&mut self, start: u64) -> std::io::Result<Option<Message>> {
        let Some(frame) = self.slice(start, FRAME_HEADER_BYTES)? else {
            return Ok(None);
        };
        let Some(length) = frame.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        let payload = self.slice(start + FRAME_HEADER_BYTES as u64, length)?;
        Ok(match payload.and_then(decode::record) {
            Some(Record::Message(message)) => Some(message),
            _ => None,
        })
    }

    /// `length` bytes of the file from `start`; `None` beyond its end.
    fn slice(&mut self, start: u64, length: usize) -> std::io::Result<Option<&[u8]>> {
        let inside = start
            .checked_sub(self.start)
            .and_then(|skip| usize::try_from(skip).ok())
            .filter(|skip| skip + length <= self.bytes.len());
        let skip = if let Some(skip) = inside {
            skip
        } else {
            self.refill(start, length.max(WINDOW_BYTES))?;
            0
        };
        Ok(self.bytes.get(skip..skip + length))
    }

    fn refill(&mut self, start: u64, length: usize) -> std::io::Result<()> {
        self.bytes.resize(length, 0);
        self.start = start;
        let mut filled = 0;
        while filled < length {
            let read = self
                .file
                .read_at(&mut self.bytes[filled..], start + filled as u64)?;
            if read == 0 {
                break;
            }
            filled += read;
        }
        self.bytes.truncate(filled);
        Ok(())
    }
}
