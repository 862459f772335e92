//! Appends to a journal.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use neph_model::{Event, ExperimentId, Message, Sample};

use super::{FRAME_BYTES, MAX_PAYLOAD, chained, encode, header};
use crate::StoreError;

/// The only writer of one experiment's journal.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    experiment: ExperimentId,
    file: File,
    path: PathBuf,
    /// The checksum of the last frame in the file.
    chain: u32,
    /// The file's length: all of it whole frames.
    length: u64,
    /// One call's frames; kept so that a call allocates nothing once it has grown.
    frames: Vec<u8>,
}

impl JournalWriter {
    /// A new journal; refuses to touch one that is there.
    pub(crate) fn create(path: &Path, experiment: ExperimentId) -> Result<Self, StoreError> {
        let mut file = File::options()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(StoreError::file("make the journal", path))?;
        let header = header(experiment);
        file.write_all(&header)
            .map_err(StoreError::file("write the journal", path))?;
        Ok(Self {
            experiment,
            file,
            path: path.to_owned(),
            chain: crc32fast::hash(&header),
            length: header.len() as u64,
            frames: Vec::new(),
        })
    }

    /// Frames one record behind those already in `frames`; returns the checksum to go on from.
    fn frame(&mut self, chain: u32, encode: impl FnOnce(&mut Vec<u8>)) -> Result<u32, StoreError> {
        let start = self.frames.len();
        self.frames.extend([0; FRAME_BYTES]);
        encode(&mut self.frames);
        let payload = &self.frames[start + FRAME_BYTES..];
        let bytes = payload.len();
        let length = match u32::try_from(bytes) {
            Ok(length) if bytes <= MAX_PAYLOAD => length.to_le_bytes(),
            _ => {
                return Err(StoreError::RecordTooLarge {
                    path: self.path.clone(),
                    bytes,
                });
            }
        };
        let crc = chained(chain, length, payload);
        self.frames[start..start + 4].copy_from_slice(&length);
        self.frames[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
        Ok(crc)
    }

    /// Hands the frames to the kernel. After a failure the file is cut back to whole frames, so
    /// that later ones are not lost behind a torn one.
    fn append(&mut self, chain: u32) -> Result<(), StoreError> {
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

impl JournalWriter {
    pub(crate) const fn experiment(&self) -> ExperimentId {
        self.experiment
    }

    pub(crate) fn messages(&mut self, messages: &[Message]) -> Result<(), StoreError> {
        self.frames.clear();
        let mut chain = self.chain;
        for message in messages {
            chain = self.frame(chain, |out| encode::message(message, out))?;
        }
        self.append(chain)
    }

    pub(crate) fn event(&mut self, event: &Event) -> Result<(), StoreError> {
        self.frames.clear();
        let chain = self.frame(self.chain, |out| encode::event(event, out))?;
        self.append(chain)
    }

    pub(crate) fn sample(&mut self, sample: &Sample) -> Result<(), StoreError> {
        self.frames.clear();
        let chain = self.frame(self.chain, |out| encode::sample(sample, out))?;
        self.append(chain)
    }
}
