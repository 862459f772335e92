//! Where the threads of one end put what they counted, once an interval.

use std::sync::{Mutex, MutexGuard, PoisonError};

use neph_wire::throughput::Intervals;

/// Shared by the threads of one end.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Intervals>);

impl Board {
    /// For putting something on it.
    pub(super) fn lock(&self) -> MutexGuard<'_, Intervals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes everything from it.
    pub(super) fn take(&self) -> Intervals {
        std::mem::take(&mut self.lock())
    }
}
