//! A recorder that only writes journals, for an agent, which has no catalog and no columnar files.

use std::path::{Path, PathBuf};

use neph_model::{Event, ExperimentId, FleetMessage, Message, RecordError, Recorder, Sample};

use crate::{FleetWriter, JournalError, JournalWriter};

/// The path of an experiment's journal in a folder of journals.
pub fn journal_path(folder: &Path, experiment: ExperimentId) -> PathBuf {
    folder.join(format!("{experiment}.journal"))
}

/// The path of the folder of an experiment's fleet, in a folder of journals.
pub fn fleet_folder(folder: &Path, experiment: ExperimentId) -> PathBuf {
    folder.join(format!("{experiment}.fleet"))
}

/// Records one experiment into journals. A record survives a kill when the recording call returns.
#[derive(Debug)]
pub struct JournalRecorder {
    journal: JournalWriter,
    fleet: FleetWriter,
}

impl JournalRecorder {
    /// A recorder of an experiment that has no journal in `folder`.
    ///
    /// # Errors
    /// There is one, or a file operation failed.
    pub fn create(folder: &Path, experiment: ExperimentId) -> Result<Self, JournalError> {
        Ok(Self {
            journal: JournalWriter::create(&journal_path(folder, experiment), experiment)?,
            fleet: FleetWriter::new(&fleet_folder(folder, experiment), experiment),
        })
    }
}

impl Recorder for JournalRecorder {
    fn experiment(&self) -> ExperimentId {
        self.journal.experiment()
    }

    fn messages(&mut self, messages: &[Message]) -> Result<(), RecordError> {
        Ok(self.journal.messages(messages)?)
    }

    fn fleet(&mut self, messages: &[FleetMessage]) -> Result<(), RecordError> {
        // A full segment remains a journal: agents do not convert it to columns.
        let _full = self.fleet.append(messages)?;
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        Ok(self.journal.event(event)?)
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        Ok(self.journal.sample(sample)?)
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{CpuUse, EventKind, FlowIndex, SeriesName};

    use super::*;
    use crate::records_for_tests::{fleet_message, message};
    use crate::{Contents, visit_fleet};

    fn read_fleet(folder: &Path, experiment: ExperimentId) -> Vec<FleetMessage> {
        let mut messages = Vec::new();
        let mut take = |batch: &[FleetMessage]| {
            messages.extend_from_slice(batch);
            Ok::<(), JournalError>(())
        };
        visit_fleet(&fleet_folder(folder, experiment), experiment, &mut take).expect("readable");
        messages
    }

    #[test]
    fn records_read_back_without_a_store() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let id = ExperimentId::new();
        let recorder = JournalRecorder::create(folder.path(), id).expect("a new journal");
        let mut recorder: Box<dyn Recorder> = Box::new(recorder);
        let event = Event {
            flow: FlowIndex(0),
            at: 5,
            kind: EventKind::Connected,
            text: "connected".to_owned(),
        };
        let sample = Sample {
            series: SeriesName::Cpu(CpuUse::Steal),
            at: 7,
            value: 1.5,
        };
        assert_eq!(recorder.experiment(), id);
        assert_eq!(read_fleet(folder.path(), id), [], "no fleet yet");
        recorder
            .messages(&[message(0, 1), message(0, 0)])
            .expect("recorded");
        recorder.event(&event).expect("recorded");
        recorder.sample(&sample).expect("recorded");
        // Three segments of ten minutes and more.
        let fleet: Vec<_> = (0..25)
            .map(|n| fleet_message(0, n, i64::from(n) * 60))
            .collect();
        for batch in fleet.chunks(2) {
            recorder.fleet(batch).expect("recorded");
        }
        // Like a kill: the recorder is never closed.
        std::mem::forget(recorder);

        let contents = Contents::of(&journal_path(folder.path(), id), id);
        let contents = contents.expect("readable").expect("there");
        let mut messages = Vec::new();
        let visited = contents.each_message(|message| {
            messages.push(message);
            Ok::<(), JournalError>(())
        });
        visited.expect("readable");
        assert_eq!(messages, [message(0, 0), message(0, 1)]);
        assert_eq!(
            (contents.events, contents.samples),
            (vec![event], vec![sample])
        );
        assert_eq!(read_fleet(folder.path(), id), fleet);
        JournalRecorder::create(folder.path(), id).expect_err("it has a journal");
    }
}
