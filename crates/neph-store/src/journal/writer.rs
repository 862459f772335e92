//! Appends to a journal.

use std::path::Path;

use neph_model::{Event, ExperimentId, Message, Sample};

use super::{encode, header};
use crate::StoreError;
use crate::frames::FrameWriter;

/// The only writer of one experiment's journal.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    experiment: ExperimentId,
    frames: FrameWriter,
}

impl JournalWriter {
    /// A new journal; refuses to touch one that is there.
    pub(crate) fn create(path: &Path, experiment: ExperimentId) -> Result<Self, StoreError> {
        Ok(Self {
            experiment,
            frames: FrameWriter::create(path, &header(experiment))?,
        })
    }

    pub(crate) const fn experiment(&self) -> ExperimentId {
        self.experiment
    }

    pub(crate) fn messages(&mut self, messages: &[Message]) -> Result<(), StoreError> {
        self.frames.append(messages, encode::message)
    }

    pub(crate) fn event(&mut self, event: &Event) -> Result<(), StoreError> {
        self.frames.append([event], encode::event)
    }

    pub(crate) fn sample(&mut self, sample: &Sample) -> Result<(), StoreError> {
        self.frames.append([sample], encode::sample)
    }
}
