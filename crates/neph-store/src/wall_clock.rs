//! Converts an experiment's monotonic timestamps to wall-clock time, with its anchors.

use neph_model::{Anchor, Experiment, Instant, Local, Wall};

/// Converts an experiment's clock to wall-clock time.
#[derive(Clone, Debug)]
pub struct WallClock {
    /// By time, including the experiment's start.
    anchors: Vec<Anchor<Local>>,
}

impl WallClock {
    /// From the experiment's anchors and its start.
    pub fn of(experiment: &Experiment) -> Self {
        let start = Anchor {
            at: Instant::from_nanos(0),
            wall: experiment.started,
        };
        let mut anchors = vec![start];
        anchors.extend(experiment.anchors());
        anchors.sort_by_key(|anchor| anchor.at);
        anchors.dedup_by_key(|anchor| anchor.at);
        Self { anchors }
    }

    /// The wall-clock time of an instant, interpolated between the anchors around it. The nearer
    /// anchor alone counts if the wall clock was stepped between them, and outside of all anchors.
    pub fn wall(&self, at: Instant<Local>) -> Wall {
        let after = self.anchors.partition_point(|anchor| anchor.at < at);
        let before = self.anchors[after.saturating_sub(1)];
        match self.anchors.get(after) {
            Some(next) => before.wall_between(*next, at),
            None => before.to_wall(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_for_tests::experiment as samples_experiment;

    const SECOND: i64 = 1_000_000_000;

    /// Clock with these anchors (the first one is the start), as a function of whole seconds.
    fn wall_times(anchors: &[(i64, i64)]) -> impl Fn(i64) -> i64 {
        let mut experiment = samples_experiment();
        experiment.started = Wall::from_unix_nanos(anchors[0].1 * SECOND);
        let later = anchors[1..].iter();
        experiment.anchors = later
            .map(|(at, wall)| (at * SECOND, wall * SECOND))
            .collect();
        let clock = WallClock::of(&experiment);
        move |at| clock.wall(Instant::from_nanos(at * SECOND)).unix_nanos() / SECOND
    }

    #[test]
    fn near_a_clock_step_the_nearer_anchor_applies() {
        // The wall clock stepped by 500 s between the seconds 100 and 200.
        let wall_seconds = wall_times(&[(0, 1_000), (100, 1_100), (200, 1_700)]);
        assert_eq!(
            [
                wall_seconds(-5),
                wall_seconds(0),
                wall_seconds(149),
                wall_seconds(151)
            ],
            [995, 1_000, 1_149, 1_651]
        );
        assert_eq!(wall_seconds(10_000), 11_500);
    }

    #[test]
    fn a_fast_wall_clock_is_interpolated_between_anchors() {
        let fast_wall_ns = |at: i64| 1_700_000_000 * SECOND + at + at / 50_000; // 20 ppm
        let mut experiment = samples_experiment();
        experiment.started = Wall::from_unix_nanos(fast_wall_ns(0));
        let late_samples = [512, 1_024].map(|second| second * SECOND);
        experiment.anchors = late_samples.map(|at| (at, fast_wall_ns(at))).to_vec();
        let clock = WallClock::of(&experiment);
        for second in [0, 1, 255, 257, 512, 768, 1_023, 1_024] {
            let at = second * SECOND + 7;
            let error_ns = clock.wall(Instant::from_nanos(at)).unix_nanos() - fast_wall_ns(at);
            assert!(error_ns.abs() <= 1_000, "{second} s: {error_ns} ns");
        }
    }
}
