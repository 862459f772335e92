//! Collects the intervals that the threads of one end counted.

use std::sync::{Mutex, MutexGuard, PoisonError};

use neph_wire::throughput::Intervals;

/// Shared by the threads of one end.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Intervals>);

impl Board {
    /// Locks it to add intervals.
    pub(super) fn lock(&self) -> MutexGuard<'_, Intervals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns all intervals.
    pub(super) fn take(&self) -> Intervals {
        std::mem::take(&mut self.lock())
    }
}
