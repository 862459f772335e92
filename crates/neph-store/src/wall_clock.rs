//! Turns an experiment's monotonic marks into wall-clock time, through its anchors.

use neph_model::{Anchor, Experiment, Instant, Own, Wall};

/// An experiment's own clock, readable as wall-clock time.
#[derive(Clone, Debug)]
pub struct WallClock {
    start: Anchor<Own>,
    anchors: Vec<Anchor<Own>>,
}

impl WallClock {
    /// From the experiment's anchors; its start is one of them.
    pub fn of(experiment: &Experiment) -> Self {
        let start = Anchor {
            at: Instant::from_nanos(0),
            wall: experiment.started,
        };
        let mut anchors: Vec<_> = experiment.anchors().collect();
        anchors.sort_by_key(|anchor| anchor.at);
        Self { start, anchors }
    }

    /// The wall-clock time of an instant, by the anchor nearest to it: a step of the wall clock
    /// between two anchors then spoils the instants near the step only.
    pub fn wall(&self, at: Instant<Own>) -> Wall {
        let after = self.anchors.partition_point(|anchor| anchor.at < at);
        let near = &self.anchors[after.saturating_sub(1)..(after + 1).min(self.anchors.len())];
        near.iter()
            .fold(self.start, |best, anchor| {
                let nearer = (anchor.at - at).abs() < (best.at - at).abs();
                if nearer { *anchor } else { best }
            })
            .to_wall(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_for_tests::experiment;

    #[test]
    fn the_nearest_anchor_decides() {
        let mut of = experiment();
        of.started = Wall::from_unix_nanos(1_000);
        // The wall clock stepped by 500 between 100 and 200.
        of.anchors = vec![(100, 1_100), (200, 1_700)];
        let clock = WallClock::of(&of);
        let told = |at| clock.wall(Instant::from_nanos(at)).unix_nanos();
        assert_eq!(
            [told(-5), told(0), told(149), told(151)],
            [995, 1_000, 1_149, 1_651]
        );
        assert_eq!(told(10_000), 11_500);
    }
}
