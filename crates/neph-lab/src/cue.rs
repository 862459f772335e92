//! The moment from which the schedules of a lab's links count.

use std::sync::atomic::{AtomicI64, Ordering};

use neph_sys::clock;

use crate::gate::Moment;

const NOT_GIVEN: i64 = i64::MIN;

/// A moment that one sets and every engine of a lab looks at.
#[derive(Debug)]
pub struct Cue(AtomicI64);

impl Default for Cue {
    fn default() -> Self {
        Self(AtomicI64::new(NOT_GIVEN))
    }
}

impl Cue {
    /// Starts every schedule from its beginning, now.
    pub fn give(&self) {
        self.0.store(clock::raw().0, Ordering::Relaxed);
    }

    /// When it was given last, on `CLOCK_MONOTONIC_RAW`.
    pub fn last(&self) -> Option<Moment> {
        let at = self.0.load(Ordering::Relaxed);
        (at != NOT_GIVEN).then_some(Moment(at))
    }
}
