//! Crash recovery: running experiments become interrupted ones, with every recorded message.
//! Idempotent, and safe against a kill: it ends experiments with the same steps.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use neph_journal::Contents;
use neph_model::{Experiment, ExperimentId, ExperimentStatus};

use super::Embedded;
use super::record_summary::RecordSummary;
use crate::StoreError;
use crate::catalog::EndedExperiment;
use crate::columns::{ColumnsReader, FileMetadata};
use crate::fleet;
use crate::workspace::remove_if_exists;

impl Embedded {
    /// Ends every experiment that has no writer; returns them. Interrupts running campaigns if this
    /// process, which has the lock, records nothing: then they are carried out by no process.
    pub(super) fn recover_all(&mut self) -> Result<Vec<Experiment>, StoreError> {
        let active_experiments = self.active_experiments.clone();
        let active = active_experiments.experiments();
        let mut recovered = Vec::new();
        for experiment in self.catalog.running_experiments()? {
            if !active.contains(&experiment.id) {
                recovered.push(self.recover_one(experiment)?);
            }
        }
        self.clear_journals(&active)?;
        self.clear_reduced()?;
        if active.is_empty() {
            self.catalog.interrupt_running_campaigns()?;
        }
        Ok(recovered)
    }

    fn recover_one(&mut self, mut experiment: Experiment) -> Result<Experiment, StoreError> {
        let id = experiment.id;
        experiment.status = ExperimentStatus::Interrupted;
        let fleet = fleet::counts(&self.workspace.fleet_folders(id))?;
        if let Some(contents) = Contents::of(&self.workspace.journal_path(id), id)? {
            RecordSummary::in_journal(&contents)?
                .with_fleet(fleet)
                .complete(&mut experiment);
            self.end_with_contents(&experiment, None, &contents)?;
            return Ok(experiment);
        }
        // Without a journal (power failure, or deleted by a user) the columns may still exist.
        if let Some(columns) = ColumnsReader::open(&self.workspace.messages_path(id))? {
            RecordSummary::in_columns(&columns)?
                .with_fleet(fleet)
                .complete(&mut experiment);
            let fleet_folders = self.workspace.fleet_folders(id);
            let metadata = FileMetadata::of(&experiment, self.scenario_of(&experiment)?.as_ref());
            fleet::close_all(&fleet_folders, &metadata, &mut |step| {
                self.gate.passed(step.into())
            })?;
            self.catalog.end_experiment(&EndedExperiment {
                experiment: &experiment,
                provenance: None,
                events: &[],
                samples: &[],
                flow_trace: None,
            })?;
            return Ok(experiment);
        }
        RecordSummary::default()
            .with_fleet(fleet)
            .complete(&mut experiment);
        self.end_with_contents(&experiment, None, &Contents::default())?;
        Ok(experiment)
    }

    /// Removes journals that are no longer needed: the experiment has ended, or was never added and
    /// has no records. Keeps a journal with records whose experiment the catalog does not know: no
    /// crash leaves such a journal.
    fn clear_journals(&self, active: &BTreeSet<ExperimentId>) -> Result<(), StoreError> {
        for path in files_in(&self.workspace.journals_folder())? {
            let Some(id) = experiment_of(&path, "journal") else {
                continue;
            };
            // Another handle may have created the journal but not the catalog entry yet.
            if active.contains(&id) {
                continue;
            }
            let is_superfluous = match self.catalog.status_of(id)? {
                Some(ExperimentStatus::Running) => false,
                Some(_) => true,
                None => Contents::of(&path, id)?.is_none_or(|contents| contents.is_empty()),
            };
            if is_superfluous {
                remove_if_exists(&path)?;
            }
        }
        self.clear_fleets()
    }

    /// Removes fleet folders of ended experiments. They are empty: a fleet's journals are removed
    /// before the catalog records the end.
    fn clear_fleets(&self) -> Result<(), StoreError> {
        for path in files_in(&self.workspace.journals_folder())? {
            let Some(id) = experiment_of(&path, "fleet") else {
                continue;
            };
            let status = self.catalog.status_of(id)?;
            if status.is_some_and(|status| status != ExperimentStatus::Running) {
                self.workspace.fleet_folders(id).remove_journals()?;
            }
        }
        Ok(())
    }
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(folder).map_err(StoreError::file("list", folder))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(StoreError::file("list", folder))?;
    paths.sort();
    Ok(paths)
}

/// The experiment that the file is named after.
fn experiment_of(path: &Path, extension: &str) -> Option<ExperimentId> {
    let has_extension = path.extension() == Some(OsStr::new(extension));
    let stem = path.file_stem()?.to_str()?;
    has_extension.then(|| stem.parse().ok()).flatten()
}
