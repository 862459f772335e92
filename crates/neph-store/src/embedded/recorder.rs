//! Writes the measurements of a running experiment to its journals.

use neph_journal::JournalWriter;
use neph_model::{Event, ExperimentId, FleetMessage, Message, RecordError, Recorder, Sample};

use crate::columns::FileMetadata;
use crate::fleet::{FleetFolders, FleetRecorder};

/// The recorder of one experiment.
#[derive(Debug)]
pub(super) struct EmbeddedRecorder {
    pub(super) journal: JournalWriter,
    pub(super) fleet: Fleet,
}

/// The folders of a fleet are created with its first messages.
#[derive(Debug)]
pub(super) enum Fleet {
    NotYet(FleetFolders, FileMetadata),
    Recording(FleetRecorder),
}

impl Recorder for EmbeddedRecorder {
    fn experiment(&self) -> ExperimentId {
        self.journal.experiment()
    }

    fn messages(&mut self, messages: &[Message]) -> Result<(), RecordError> {
        Ok(self.journal.messages(messages)?)
    }

    fn fleet(&mut self, messages: &[FleetMessage]) -> Result<(), RecordError> {
        if messages.is_empty() {
            return Ok(());
        }
        if let Fleet::NotYet(fleet_folders, metadata) = &self.fleet {
            self.fleet =
                Fleet::Recording(FleetRecorder::new(fleet_folders.clone(), metadata.clone())?);
        }
        match &mut self.fleet {
            Fleet::Recording(recorder) => Ok(recorder.append(messages)?),
            Fleet::NotYet(..) => Ok(()),
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        Ok(self.journal.event(event)?)
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        Ok(self.journal.sample(sample)?)
    }
}
