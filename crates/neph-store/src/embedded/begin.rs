//! The start of an experiment: first its journal, then its catalog entry.

use neph_journal::JournalWriter;
use neph_model::{Experiment, ExperimentId, ExperimentStatus, Recorder};

use super::recorder::{EmbeddedRecorder, Fleet};
use super::{Embedded, Step};
use crate::StoreError;
use crate::columns::FileMetadata;
use crate::workspace::remove_if_exists;

impl Embedded {
    /// Begins an experiment that is not in the catalog.
    pub(super) fn begin_new(
        &mut self,
        experiment: &Experiment,
    ) -> Result<Box<dyn Recorder>, StoreError> {
        // The journal comes first: every experiment in the catalog has one.
        let journal = self.workspace.journal_path(experiment.id);
        let scenario = self.scenario_of(experiment)?;
        let writer = match JournalWriter::create(&journal, experiment.id) {
            Ok(writer) => writer,
            Err(error) => return Err(self.refusal(experiment.id, error.into())),
        };
        let recorder = EmbeddedRecorder {
            journal: writer,
            fleet: Fleet::NotYet(
                self.workspace.fleet_folders(experiment.id),
                FileMetadata::of(experiment, scenario.as_ref()),
            ),
        };
        self.gate.passed(Step::JournalCreated)?;
        let mut running = experiment.clone();
        running.status = ExperimentStatus::Running;
        running.ended = None;
        if let Err(error) = self.catalog.add_experiment(&running) {
            // Nothing was recorded. If this removal fails too, recovery removes the empty journal.
            let _removed = remove_if_exists(&journal);
            return Err(self.refusal(experiment.id, error));
        }
        self.gate.passed(Step::ExperimentAdded)?;
        Ok(Box::new(recorder))
    }

    /// Why `begin` failed: `error`, unless the catalog already has the experiment.
    fn refusal(&self, experiment: ExperimentId, error: StoreError) -> StoreError {
        match self.catalog.status_of(experiment) {
            Ok(Some(status)) => StoreError::ExperimentExists { experiment, status },
            _ => error,
        }
    }
}
