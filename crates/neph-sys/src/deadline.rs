//! How long something took, how long is left, and waiting for a fact with a deadline.
//!
//! Owns the polling that a wait needs where the kernel has nothing to wait on. A wait that a
//! descriptor can end belongs to [`crate::ppoll`].

use std::time::Duration;

use crate::clock::{self, RawNanos};

/// How long [`wait_until`] waits between two questions.
const PACE: Duration = Duration::from_millis(5);

/// Measures time from its start.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(RawNanos);

impl Stopwatch {
    /// Begins now.
    pub fn start() -> Self {
        Self(clock::raw())
    }

    /// The time since the start.
    pub fn elapsed(self) -> Duration {
        let nanos = clock::raw().0.saturating_sub(self.0.0);
        Duration::from_nanos(nanos.try_into().unwrap_or(0))
    }
}

/// A moment by which something must have happened.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(RawNanos);

impl Deadline {
    /// The moment `wait` from now.
    pub fn after(wait: Duration) -> Self {
        let nanos = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        Self(RawNanos(clock::raw().0.saturating_add(nanos)))
    }

    /// Whether the moment is over.
    pub fn has_passed(self) -> bool {
        clock::raw() >= self.0
    }

    /// The time until the moment; zero when it is over.
    pub fn left(self) -> Duration {
        let nanos = self.0.0.saturating_sub(clock::raw().0);
        Duration::from_nanos(nanos.try_into().unwrap_or(0))
    }
}

/// Asks every 5 ms until `fact` is true; false when it was not within `limit`. Asks at least once.
pub fn wait_until(limit: Duration, fact: impl FnMut() -> bool) -> bool {
    poll(PACE, limit, fact)
}

/// As [`wait_until`], at another pace: where asking is expensive.
pub fn poll(pace: Duration, limit: Duration, mut fact: impl FnMut() -> bool) -> bool {
    let deadline = Deadline::after(limit);
    loop {
        if fact() {
            return true;
        }
        if deadline.has_passed() {
            return false;
        }
        clock::nap(pace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_its_condition_or_its_deadline() {
        let mut requested = 0;
        let mut third = || {
            requested += 1;
            requested == 3
        };
        assert!(wait_until(Duration::from_mins(1), &mut third));
        assert!(!wait_until(Duration::ZERO, || false));
        assert!(wait_until(Duration::ZERO, || true), "asked at least once");
    }

    #[test]
    fn a_passed_deadline_has_no_time_left() {
        let passed = Deadline::after(Duration::ZERO);
        assert!(passed.has_passed());
        assert_eq!(passed.left(), Duration::ZERO);
        let unlimited = Deadline::after(Duration::MAX);
        assert!(!unlimited.has_passed());
        assert!(unlimited.left() > Duration::from_mins(1));
    }
}
