//! Replaces messages by a histogram for each minute.
//!
//! Owns the order: first one catalog transaction stores the minutes and marks the experiment as
//! reduced, then the messages are removed. After a kill the catalog decides which of the two is
//! read: always exactly one.

use std::fs;
use std::io::ErrorKind;

use neph_model::{ExperimentId, ExperimentStatus, Minute, Wall};

use super::{Embedded, Step};
use crate::StoreError;
use crate::workspace::{remove_if_exists, sync_folder};

impl Embedded {
    /// May be repeated until it succeeds.
    pub(super) fn reduce_one(
        &mut self,
        experiment: ExperimentId,
        minutes: &[Minute],
        at: Wall,
    ) -> Result<(), StoreError> {
        if self.require_status(experiment)? == ExperimentStatus::Running {
            return Err(StoreError::WrongFinish {
                experiment,
                reason: "it is running: its messages are not reduced before its end".to_owned(),
            });
        }
        if self.catalog.reduction(experiment)?.is_none() {
            self.catalog.reduce(experiment, minutes, at)?;
            self.gate.passed(Step::Reduced)?;
        }
        self.remove_messages(experiment)
    }

    /// Removes the messages of a reduced experiment.
    fn remove_messages(&self, experiment: ExperimentId) -> Result<(), StoreError> {
        remove_if_exists(&self.workspace.messages_path(experiment))?;
        self.gate.passed(Step::MessagesRemoved)?;
        let fleet = self.workspace.fleet_folders(experiment).segments;
        match fs::remove_dir_all(&fleet) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(StoreError::file("remove", &fleet)(error));
            }
            _ => {}
        }
        sync_folder(&self.workspace.messages_folder())
    }

    /// Removes the messages of reduced experiments that a kill left.
    pub(super) fn clear_reduced(&self) -> Result<(), StoreError> {
        let reduced = self.catalog.reduced()?;
        if reduced.is_empty() {
            return Ok(());
        }
        let folder = self.workspace.messages_folder();
        let entries = fs::read_dir(&folder).map_err(StoreError::file("list", &folder))?;
        for entry in entries {
            let path = entry.map_err(StoreError::file("list", &folder))?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let id = stem.and_then(|stem| stem.parse().ok());
            if let Some(id) = id.filter(|id| reduced.contains(id)) {
                self.remove_messages(id)?;
            }
        }
        Ok(())
    }

    /// Refuses to read messages that were removed.
    pub(super) fn check_not_reduced(&self, experiment: ExperimentId) -> Result<(), StoreError> {
        match self.catalog.reduction(experiment)? {
            None => Ok(()),
            Some(_) => Err(StoreError::Reduced { experiment }),
        }
    }
}
