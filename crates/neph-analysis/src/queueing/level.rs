//! A level: the rates and times of a closed loop with some number of workers.

/// What was measured at a level, in one block or as a mean over blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Number of workers.
    pub workers: f64,
    /// Mean think time of a worker.
    pub think: f64,
    /// Successful responses per second.
    pub rate: f64,
    /// Mean response time of successful responses.
    pub response: f64,
}

/// Largest relative difference that a measurement may have.
const TOLERANCE: f64 = 0.05;

impl Level {
    /// Workers by Little's law: the rate times the mean length of a cycle, response and think time.
    pub fn workers_by_little(&self) -> f64 {
        self.rate * (self.response + self.think)
    }

    /// Whether the measurement contradicts Little's law by more than 5 %: then it is wrong, whatever the
    /// service does. Requests without success are not part of the cycle, so `unsuccessful_share` (0 to 1)
    /// is tolerated in addition.
    pub fn violates_little(&self, unsuccessful_share: f64) -> bool {
        let difference = (self.workers_by_little() / self.workers - 1.0).abs();
        difference > TOLERANCE + unsuccessful_share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn littles_law_holds_or_the_measurement_is_wrong() {
        let level = Level {
            workers: 12.0,
            think: 0.005,
            rate: 200.0,
            response: 0.055,
        };
        assert!((level.workers_by_little() - 12.0).abs() < 1e-9);
        assert!(!level.violates_little(0.0));
        let wrong = Level {
            rate: 180.0,
            ..level
        };
        assert!(wrong.violates_little(0.0));
        assert!(!wrong.violates_little(0.1));
    }
}
