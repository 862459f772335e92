//! A flag that ends what runs: set once, by ctrl-C or by a caller that has measured enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Span;

/// Shared by everything that one command runs.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// Shares an existing flag.
impl From<Arc<AtomicBool>> for Stop {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

impl Stop {
    /// How long a waiting thread may take to notice.
    pub const POLL_INTERVAL: Span = Span::from_millis(50);

    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets it, for good.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    /// The flag itself, for a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
