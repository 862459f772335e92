//! Which experiments have a writer, shared by all handles of the store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_model::ExperimentId;

/// Experiments that were begun and not finished: they have a writer.
#[derive(Clone, Debug, Default)]
pub(super) struct ActiveExperiments(Arc<Mutex<BTreeSet<ExperimentId>>>);

impl ActiveExperiments {
    /// Adds an experiment; false if it was already added.
    pub(super) fn add(&self, experiment: ExperimentId) -> bool {
        self.experiments().insert(experiment)
    }

    /// Removes an experiment whose writer has ended.
    pub(super) fn remove(&self, experiment: ExperimentId) {
        self.experiments().remove(&experiment);
    }

    /// The experiments. None begins and none ends while the caller has the guard.
    pub(super) fn experiments(&self) -> MutexGuard<'_, BTreeSet<ExperimentId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
