//! When something was by the clock on the wall: each time by the reading of both clocks that held
//! then. The wall clock is set and steered while a fleet runs.
//!
//! Readings that say the same as the one before are not kept, so that weeks take no more room than
//! the bound.

use neph_model::{Anchor, Instant, Own, Span, Wall};

/// Readings that are kept at most; of more, those that differ least from the one before go.
const MOST: usize = 4096;
/// A reading says the same as another where both clocks are no farther apart than this.
const SAME: Span = Span::from_micros(1);

/// A reading, and from when on it is the nearest.
#[derive(Clone, Copy, Debug)]
struct Held {
    from: Instant<Own>,
    anchor: Anchor<Own>,
}

/// The wall clock beside our own.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    held: Vec<Held>,
    most: usize,
    same: Span,
    /// When both clocks were read last.
    latest: Option<Instant<Own>>,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            held: Vec::new(),
            most: MOST,
            same: SAME,
            latest: None,
        }
    }
}

impl Clock {
    /// The next reading of both clocks.
    pub(super) fn read(&mut self, anchor: Anchor<Own>) {
        let before = self.latest.replace(anchor.at).unwrap_or(anchor.at);
        let says_new = |last: &Held| (last.anchor.offset() - anchor.offset()).abs() > self.same;
        if !self.held.last().is_none_or(says_new) {
            return;
        }
        // Half way between two readings nobody knows: each time goes by the nearer one.
        let from = before + Span::from_nanos((anchor.at - before).nanos() / 2);
        self.held.push(Held { from, anchor });
        while self.held.len() > self.most {
            self.thin();
        }
    }

    /// The time on the wall, nanoseconds since 1970; `None` before the first reading.
    pub(super) fn unix_nanos(&self, at: Instant<Own>) -> Option<i64> {
        self.wall(at).map(Wall::unix_nanos)
    }

    fn wall(&self, at: Instant<Own>) -> Option<Wall> {
        let next = self.held.partition_point(|held| held.from <= at);
        let held = self.held.get(next.saturating_sub(1))?;
        Some(held.anchor.to_wall(at))
    }

    /// Keeps only readings that differ by more than twice as much as before.
    fn thin(&mut self) {
        self.same = self.same.times(2);
        let same = self.same;
        self.held
            .dedup_by(|next, kept| (next.anchor.offset() - kept.anchor.offset()).abs() <= same);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn anchor(second: i64, offset: i64) -> Anchor<Own> {
        let at = second * SECOND;
        Anchor {
            at: Instant::from_nanos(at),
            wall: Wall::from_unix_nanos(at + offset),
        }
    }

    fn told(clock: &Clock, at: i64) -> Option<i64> {
        clock.unix_nanos(Instant::from_nanos(at))
    }

    #[test]
    fn a_step_of_the_wall_clock_leaves_the_times_before_it_alone() {
        let mut clock = Clock::default();
        assert_eq!(told(&clock, 5), None);
        for second in 0..100 {
            // Set by an hour between the 50th and the 51st second, and back in the end.
            let set = if (51..90).contains(&second) {
                3600 * SECOND
            } else {
                0
            };
            clock.read(anchor(second, 7 + set));
        }
        let hour = 3600 * SECOND;
        for (at, offset) in [
            (-3, 7),
            (10, 7),
            (50, 7),
            (51, 7 + hour),
            (89, 7 + hour),
            (99, 7),
        ] {
            assert_eq!(told(&clock, at * SECOND), Some(at * SECOND + offset));
        }
        assert_eq!(clock.held.len(), 3);
    }

    #[test]
    fn a_clock_that_is_steered_is_followed() {
        let mut clock = Clock::default();
        for second in 0..10_000 {
            clock.read(anchor(second, second * 300));
        }
        for second in [0, 1, 500, 9_999] {
            let off = told(&clock, second * SECOND).map(|told| told - second * (SECOND + 300));
            assert!(off.is_some_and(|off| off.abs() <= SAME.nanos()), "{off:?}");
        }
    }

    #[test]
    fn weeks_of_readings_stay_within_the_bound_and_keep_the_steps() {
        let mut clock = Clock {
            most: 64,
            ..Clock::default()
        };
        for second in 0..100_000 {
            let set = if second >= 70_000 { SECOND } else { 0 };
            clock.read(anchor(second, set + second * 50_000));
        }
        assert!(clock.held.len() <= 64);
        for second in [0, 33_333, 69_999, 70_000, 99_999] {
            let set = if second >= 70_000 { SECOND } else { 0 };
            let truth = second * SECOND + set + second * 50_000;
            let off = told(&clock, second * SECOND).map(|told| (told - truth).abs());
            assert!(off.is_some_and(|off| off <= clock.same.nanos()), "{off:?}");
            assert!(clock.same < Span::from_millis(200), "{}", clock.same);
        }
    }
}
