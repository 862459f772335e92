//! When a load works: once all of its threads or connections do. Who measures under it waits for that.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The word for it between processes, a line on standard error.
pub const WORKS: &str = "neph stress: it works";

/// How many parts of a load do not work yet, and what is done when all do.
pub struct Beginning<'a> {
    works: &'a (dyn Fn() + Sync),
    idle: AtomicUsize,
}

impl fmt::Debug for Beginning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beginning")
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

impl<'a> Beginning<'a> {
    /// Of a load of so many parts; `works` is called once, when the last of them does.
    pub const fn of(parts: usize, works: &'a (dyn Fn() + Sync)) -> Self {
        Self {
            works,
            idle: AtomicUsize::new(parts),
        }
    }

    /// One of them works from now on.
    pub(crate) fn one_works(&self) {
        if self.idle.fetch_sub(1, Ordering::Relaxed) == 1 {
            (self.works)();
        }
    }
}
