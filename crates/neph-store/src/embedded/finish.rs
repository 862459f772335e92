//! The end of an experiment: writes the columns from the journal, then the catalog, then removes
//! the journal.

use std::fs;
use std::path::Path;

use neph_journal::Contents;
use neph_model::{Experiment, ExperimentId, ExperimentStatus, Provenance, Recorder, Scenario};

use super::{Embedded, Step};
use crate::StoreError;
use crate::catalog::EndedExperiment;
use crate::columns::{ColumnsWriter, FileMetadata};
use crate::fleet;
use crate::workspace::{Workspace, remove_if_exists, sync_folder};

/// Refuses an end that does not match the recorder.
pub(super) fn check(
    recorder: &dyn Recorder,
    experiment: &Experiment,
    provenance: &Provenance,
) -> Result<(), StoreError> {
    let wrong_finish = |reason: String| {
        Err(StoreError::WrongFinish {
            experiment: experiment.id,
            reason,
        })
    };
    if recorder.experiment() != experiment.id {
        return wrong_finish(format!("the recorder is {}'s", recorder.experiment()));
    }
    if provenance.experiment != experiment.id {
        return wrong_finish(format!("the provenance is {}'s", provenance.experiment));
    }
    if experiment.status == ExperimentStatus::Running {
        return wrong_finish("its status is still 'running'".to_owned());
    }
    Ok(())
}

impl Embedded {
    /// Ends a running experiment; refuses one that has ended.
    pub(super) fn end(
        &mut self,
        experiment: &Experiment,
        provenance: &Provenance,
    ) -> Result<(), StoreError> {
        match self.require_status(experiment.id)? {
            ExperimentStatus::Running => self.end_from_journal(experiment, Some(provenance)),
            status => Err(StoreError::WrongFinish {
                experiment: experiment.id,
                reason: format!("it has ended already ({})", status.name()),
            }),
        }
    }

    /// Ends an experiment whose journal is closed.
    fn end_from_journal(
        &mut self,
        experiment: &Experiment,
        provenance: Option<&Provenance>,
    ) -> Result<(), StoreError> {
        let journal = self.workspace.journal_path(experiment.id);
        let contents =
            Contents::of(&journal, experiment.id)?.ok_or_else(|| StoreError::WrongFinish {
                experiment: experiment.id,
                reason: format!("its journal {} is gone", journal.display()),
            })?;
        self.end_with_contents(experiment, provenance, &contents)
    }

    /// May be repeated after a kill at any point: each step replaces the result of an earlier
    /// attempt.
    pub(super) fn end_with_contents(
        &mut self,
        experiment: &Experiment,
        provenance: Option<&Provenance>,
        contents: &Contents,
    ) -> Result<(), StoreError> {
        let scenario = self.scenario_of(experiment)?;
        let partial = self.workspace.partial_messages_path(experiment.id);
        let metadata = FileMetadata::of(experiment, scenario.as_ref());
        let fleet = self.workspace.fleet_folders(experiment.id);
        fleet::close_all(&fleet, &metadata, &mut |step| self.gate.passed(step.into()))?;
        write_columns(&partial, metadata, contents)?;
        self.gate.passed(Step::ColumnsWritten)?;

        name_columns(&self.workspace, experiment.id)?;
        self.gate.passed(Step::ColumnsNamed)?;

        self.catalog.end_experiment(&EndedExperiment {
            experiment,
            provenance,
            events: &contents.events,
            samples: &contents.samples,
            flow_trace: None,
        })?;
        self.gate.passed(Step::EndRecorded)?;

        remove_if_exists(&self.workspace.journal_path(experiment.id))?;
        self.gate.passed(Step::JournalRemoved)
    }

    pub(super) fn scenario_of(
        &self,
        experiment: &Experiment,
    ) -> Result<Option<Scenario>, StoreError> {
        let scenarios = self.catalog.scenarios(experiment.campaign)?;
        Ok(scenarios
            .into_iter()
            .find(|scenario| scenario.id == experiment.scenario))
    }
}

/// Renames the complete file of an experiment's messages to its final name.
pub(super) fn name_columns(
    workspace: &Workspace,
    experiment: ExperimentId,
) -> Result<(), StoreError> {
    let partial = workspace.partial_messages_path(experiment);
    let final_path = workspace.messages_path(experiment);
    fs::rename(&partial, &final_path).map_err(StoreError::file("give a name to", &partial))?;
    sync_folder(&workspace.messages_folder())
}

pub(super) fn write_columns(
    path: &Path,
    metadata: FileMetadata,
    contents: &Contents,
) -> Result<(), StoreError> {
    let mut writer = ColumnsWriter::create(path, metadata)?;
    contents.each_message(|message| writer.push(&message))?;
    writer.finish()?;
    Ok(())
}
