//! Which experiments have a writer, known to every handle of the store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_model::ExperimentId;

/// Experiments that were begun and are not finished: their writer is not gone.
#[derive(Clone, Debug, Default)]
pub(super) struct Recording(Arc<Mutex<BTreeSet<ExperimentId>>>);

impl Recording {
    /// Adds an experiment; false if it is there.
    pub(super) fn add(&self, experiment: ExperimentId) -> bool {
        self.all().insert(experiment)
    }

    /// The writer of an experiment is gone.
    pub(super) fn remove(&self, experiment: ExperimentId) {
        self.all().remove(&experiment);
    }

    /// All of them. None begins and none ends as long as the guard is held.
    pub(super) fn all(&self) -> MutexGuard<'_, BTreeSet<ExperimentId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
