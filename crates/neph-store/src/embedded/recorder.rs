//! What a running experiment measures, into its journals.

use neph_journal::JournalWriter;
use neph_model::{Event, ExperimentId, FleetMessage, Message, RecordError, Recorder, Sample};

use crate::columns::FileFacts;
use crate::fleet::{FleetPlace, FleetRecorder};

/// One experiment's recorder.
#[derive(Debug)]
pub(super) struct EmbeddedRecorder {
    pub(super) journal: JournalWriter,
    pub(super) fleet: Fleet,
}

/// A fleet's folders are made when its first messages come.
#[derive(Debug)]
pub(super) enum Fleet {
    NotYet(FleetPlace, FileFacts),
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
        if let Fleet::NotYet(place, facts) = &self.fleet {
            self.fleet = Fleet::Recording(FleetRecorder::new(place.clone(), facts.clone())?);
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
