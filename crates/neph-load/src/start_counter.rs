//! Reports that a load is running: all of its threads or connections work. A measurement under load
//! waits for that.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The line on standard error that reports it to another process.
pub const RUNNING_LINE: &str = "neph stress: running";

/// Counts the parts of a load that do not work yet; calls a function when all do.
pub struct StartCounter<'a> {
    works: &'a (dyn Fn() + Sync),
    idle: AtomicUsize,
}

impl fmt::Debug for StartCounter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartCounter")
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

impl<'a> StartCounter<'a> {
    /// A load with this number of parts. `works` is called once, when the last part works.
    pub const fn of(parts: usize, works: &'a (dyn Fn() + Sync)) -> Self {
        Self {
            works,
            idle: AtomicUsize::new(parts),
        }
    }

    /// Reports that one part works.
    pub(crate) fn mark_running(&self) {
        if self.idle.fetch_sub(1, Ordering::Relaxed) == 1 {
            (self.works)();
        }
    }
}
