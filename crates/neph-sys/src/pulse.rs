//! Whether the loop of a thread still turns: it leaves a time at each turn, and another thread reads it.
//!
//! Owns one number for each loop. What follows from a loop that stands still, its reader decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::clock;

/// The last turn of one loop; clones are the same loop.
#[derive(Clone, Debug)]
pub struct Pulse {
    name: &'static str,
    last: Arc<AtomicI64>,
}

impl Pulse {
    /// Of a loop of this name, which has turned just now.
    pub fn new(name: &'static str) -> Self {
        let last = Arc::new(AtomicI64::new(clock::raw().0));
        Self { name, last }
    }

    /// The name of the loop.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The loop turns. Costs a reading of the clock (25 ns).
    pub fn beat(&self) {
        self.last.store(clock::raw().0, Ordering::Relaxed);
    }

    /// The time since the last turn.
    pub fn silence(&self) -> Duration {
        let nanos = clock::raw()
            .0
            .saturating_sub(self.last.load(Ordering::Relaxed));
        Duration::from_nanos(nanos.try_into().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::wait_until;

    #[test]
    fn a_stalled_loop_is_reported_until_its_next_beat() {
        let pulse = Pulse::new("loop");
        let observed = pulse.clone();
        let long = Duration::from_millis(20);
        assert!(wait_until(Duration::from_secs(20), || observed.silence() > long));
        pulse.beat();
        assert!(observed.silence() < Duration::from_secs(10));
        assert_eq!(observed.name(), "loop");
    }
}
