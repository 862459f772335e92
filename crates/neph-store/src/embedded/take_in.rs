//! Takes in an experiment that another host journalled: first the columns, then the catalog in one
//! transaction.
//!
//! The experiment is never in the catalog as running, so recovery does not mistake it for one that
//! a crash interrupted. A kill before the transaction leaves files that the next attempt replaces;
//! after it, the work is complete. The journals are only read.

use neph_journal::{Contents, fleet_folder, journal_path};
use neph_model::{Experiment, ExperimentStatus, Provenance};

use super::finish::{name_columns, write_columns};
use super::record_summary::RecordSummary;
use super::{Embedded, Step};
use crate::StoreError;
use crate::catalog::EndedExperiment;
use crate::columns::FileMetadata;
use crate::fleet::{self, FleetFolders};
use crate::store::{IntakeResult, Journalled};

/// Refuses a provenance of another experiment.
pub(super) fn check(journalled: &Journalled<'_>) -> Result<(), StoreError> {
    let experiment_of = |provenance: &Provenance| provenance.experiment;
    let experiment = journalled.experiment.id;
    match journalled.provenance.map(experiment_of) {
        Some(other) if other != experiment => Err(StoreError::WrongFinish {
            experiment,
            reason: format!("the provenance is {other}'s"),
        }),
        _ => Ok(()),
    }
}

impl Embedded {
    /// Takes in an experiment that no handle of this store records.
    pub(super) fn take_in_once(
        &mut self,
        journalled: &Journalled<'_>,
    ) -> Result<IntakeResult, StoreError> {
        let id = journalled.experiment.id;
        match self.catalog.status_of(id)? {
            None => self.take_in_new(journalled).map(|()| IntakeResult::Stored),
            Some(status @ ExperimentStatus::Running) => Err(StoreError::ExperimentExists {
                experiment: id,
                status,
            }),
            Some(status) => Ok(IntakeResult::Existing(status)),
        }
    }

    fn take_in_new(&mut self, journalled: &Journalled<'_>) -> Result<(), StoreError> {
        let id = journalled.experiment.id;
        let path = journal_path(journalled.folder, id);
        let contents = Contents::of(&path, id)?;
        let contents = contents.ok_or_else(|| StoreError::NoJournal {
            experiment: id,
            path: path.clone(),
        })?;
        let scenario = self.scenario_of(journalled.experiment)?;
        let metadata = FileMetadata::of(journalled.experiment, scenario.as_ref());
        let fleet_folders = FleetFolders {
            experiment: id,
            segments: self.workspace.fleet_folders(id).segments,
            journals: fleet_folder(journalled.folder, id),
        };
        let counts = fleet::copy_all(&fleet_folders, &metadata, &mut |step| {
            self.gate.passed(step.into())
        })?;
        let summary = RecordSummary::in_journal(&contents)?.with_fleet(counts);
        let experiment = as_stored(journalled.experiment, &summary)?;

        let partial = self.workspace.partial_messages_path(id);
        write_columns(&partial, metadata, &contents)?;
        self.gate.passed(Step::ColumnsWritten)?;
        name_columns(&self.workspace, id)?;
        self.gate.passed(Step::ColumnsNamed)?;
        let mut events = contents.events.clone();
        events.extend_from_slice(journalled.events);
        self.catalog.add_ended(&EndedExperiment {
            experiment: &experiment,
            provenance: journalled.provenance,
            events: &events,
            samples: &contents.samples,
            flow_trace: journalled.flow_trace,
        })?;
        self.gate.passed(Step::EndRecorded)
    }
}

/// The experiment as it is stored. Ended and with all messages: unchanged. Without its writer:
/// interrupted, with the messages that arrived.
fn as_stored(experiment: &Experiment, summary: &RecordSummary) -> Result<Experiment, StoreError> {
    let mut experiment = experiment.clone();
    let (message_count, expected) = (summary.main_messages(), experiment.tally.messages);
    if experiment.status == ExperimentStatus::Running {
        experiment.status = ExperimentStatus::Interrupted;
        summary.complete(&mut experiment);
    } else if message_count < expected {
        return Err(StoreError::JournalCutOff {
            experiment: experiment.id,
            found: message_count,
            expected,
        });
    }
    Ok(experiment)
}
