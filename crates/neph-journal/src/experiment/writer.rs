//! Appends to a journal.

use std::path::Path;

use neph_model::{Event, ExperimentId, Message, Sample};

use super::{encode, header};
use crate::JournalError;
use crate::frames::FrameWriter;

/// The only writer of one experiment's journal.
#[derive(Debug)]
pub struct JournalWriter {
    experiment: ExperimentId,
    frames: FrameWriter,
}

impl JournalWriter {
    /// Creates a journal; an error if it exists.
    pub fn create(path: &Path, experiment: ExperimentId) -> Result<Self, JournalError> {
        Ok(Self {
            experiment,
            frames: FrameWriter::create(path, &header(experiment))?,
        })
    }

    pub const fn experiment(&self) -> ExperimentId {
        self.experiment
    }

    pub fn messages(&mut self, messages: &[Message]) -> Result<(), JournalError> {
        self.frames.append(messages, encode::message)
    }

    pub fn event(&mut self, event: &Event) -> Result<(), JournalError> {
        self.frames.append([event], encode::event)
    }

    pub fn sample(&mut self, sample: &Sample) -> Result<(), JournalError> {
        self.frames.append([sample], encode::sample)
    }
}
