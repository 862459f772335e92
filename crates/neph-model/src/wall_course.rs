//! A wall clock against the raw clock of its machine, over weeks: their difference at any moment,
//! and when the wall clock was set. It is set and steered meanwhile. A time is on the line between
//! the readings around it. If the clock was set between them, the nearer reading counts.
//!
//! Each machine reads its own two clocks at one moment, with no network in between: a step shows to
//! the microsecond. Readings on the line between others are not kept, so that memory is bounded
//! even over weeks. Owns which readings are kept; the line itself is [`Anchor`]'s.

use crate::{Anchor, Clock, Instant, Span, Wall};

/// Maximum number of stored readings; beyond it, those nearest to the line between others are
/// dropped.
const MAX_READINGS: usize = 4096;

/// A stored reading.
#[derive(Clone, Copy, Debug)]
struct StoredReading<C: Clock> {
    anchor: Anchor<C>,
    /// Whether the wall clock was set between the one before and this.
    set: bool,
}

/// The wall clock of one machine was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallStep<C: Clock> {
    /// The last reading before.
    pub after: Instant<C>,
    /// The first reading that shows it.
    pub before: Instant<C>,
    /// The size of the step; includes the slewing in between.
    pub by: Span,
}

/// The wall clock of one machine against its raw one.
#[derive(Clone, Debug)]
pub struct WallCourse<C: Clock> {
    knots: Vec<StoredReading<C>>,
    /// The latest reading; it may be the last knot too.
    latest: Option<Anchor<C>>,
    slopes: SlopeRange,
    max_readings: usize,
    /// A reading lies on a line where it is no farther from it than this.
    tolerance: Span,
    /// Readings lie no farther from the lines than this.
    within: Span,
}

impl<C: Clock> WallCourse<C> {
    /// Without a reading. Readings within `tolerance` (a nanosecond or more) of a line are not stored.
    pub fn within(tolerance: Span) -> Self {
        let tolerance = tolerance.max(Span::from_nanos(1));
        Self {
            knots: Vec::new(),
            latest: None,
            slopes: SlopeRange::default(),
            max_readings: MAX_READINGS,
            tolerance,
            within: tolerance,
        }
    }

    /// Adds a reading of both clocks; returns the step if the wall clock was set since the last
    /// one. A reading that is not later than the last is ignored.
    pub fn read(&mut self, anchor: Anchor<C>) -> Option<WallStep<C>> {
        let latest = self.latest;
        if latest.is_some_and(|latest| anchor.at.nanos() <= latest.at.nanos()) {
            return None;
        }
        let step = latest
            .filter(|latest| !latest.is_steady(anchor))
            .map(|latest| WallStep {
                after: latest.at,
                before: anchor.at,
                by: anchor.offset() - latest.offset(),
            });
        let set = step.is_some();
        self.add(StoredReading { anchor, set });
        while self.knots.len() > self.max_readings {
            self.thin();
        }
        step
    }

    /// The time on the wall at a moment; `None` before the first reading.
    pub fn wall(&self, at: Instant<C>) -> Option<Wall> {
        let next = self
            .knots
            .partition_point(|knot| knot.anchor.at.nanos() < at.nanos());
        let before = self.knots.get(next.saturating_sub(1))?.anchor;
        let after = self.knots.get(next);
        let (after_it, set) = match after {
            Some(knot) => (knot.anchor, knot.set),
            None => (self.latest?, false),
        };
        Some(if at.nanos() <= before.at.nanos() {
            before.to_wall(at)
        } else if at.nanos() >= after_it.at.nanos() {
            after_it.to_wall(at)
        } else if set {
            before.by_the_nearer(after_it, at)
        } else {
            before.interpolate(after_it, at)
        })
    }

    /// The same, in nanoseconds since 1970.
    pub fn unix_nanos(&self, at: Instant<C>) -> Option<i64> {
        self.wall(at).map(Wall::unix_nanos)
    }

    /// Wall minus raw at a moment; `None` before the first reading.
    pub fn offset(&self, at: Instant<C>) -> Option<Span> {
        let wall = self.unix_nanos(at)?;
        Some(Span::from_nanos(wall.saturating_sub(at.nanos())))
    }

    /// Largest difference between a reported time and the reading.
    pub const fn doubt(&self) -> Span {
        self.within
    }

    fn add(&mut self, knot: StoredReading<C>) {
        let (Some(latest), Some(&last)) = (self.latest, self.knots.last()) else {
            self.latest = Some(knot.anchor);
            return self.knots.push(knot);
        };
        let step = Step::between(last.anchor, knot.anchor);
        if knot.set || !self.slopes.allows(step) {
            self.slopes = SlopeRange::default();
            if last.anchor.at.nanos() < latest.at.nanos() {
                let (anchor, set) = (latest, false);
                self.knots.push(StoredReading { anchor, set });
            }
        }
        if knot.set {
            self.knots.push(knot);
        } else if let Some(last) = self.knots.last() {
            let step = Step::between(last.anchor, knot.anchor);
            self.slopes.narrow(step, self.tolerance);
        }
        self.latest = Some(knot.anchor);
    }

    /// Stores only readings that are farther from the lines than twice the previous distance.
    fn thin(&mut self) {
        self.tolerance = self.tolerance.times(2);
        // Of a line through what lies on lines.
        self.within += self.tolerance;
        let knots = std::mem::take(&mut self.knots);
        let latest = self.latest.take();
        self.slopes = SlopeRange::default();
        let offset = |knot: &StoredReading<C>| knot.anchor.offset();
        let mut before = None;
        for mut knot in knots {
            let offset_change = before.map_or(Span::ZERO, |before| (offset(&knot) - before).abs());
            before = Some(offset(&knot));
            knot.set &= offset_change > self.tolerance;
            self.add(knot);
        }
        let newer = |anchor: &Anchor<C>| {
            self.latest
                .is_none_or(|known| known.at.nanos() < anchor.at.nanos())
        };
        if let Some(anchor) = latest.filter(newer) {
            self.add(StoredReading { anchor, set: false });
        }
    }
}

/// From one reading to a later one: how far the wall clock moved against the raw clock, in how
/// long.
#[derive(Clone, Copy, Debug)]
struct Step {
    offset_change: i64,
    time: i64,
}

impl Step {
    fn between<C: Clock>(from: Anchor<C>, to: Anchor<C>) -> Self {
        Self {
            offset_change: (to.offset() - from.offset()).nanos(),
            time: to.at.nanos().saturating_sub(from.at.nanos()),
        }
    }

    /// Whether it is no steeper than the other.
    fn is_below(self, other: Self) -> bool {
        i128::from(self.offset_change) * i128::from(other.time)
            <= i128::from(other.offset_change) * i128::from(self.time)
    }
}

/// The lines from a knot that pass all readings since then closely enough.
#[derive(Clone, Copy, Debug, Default)]
struct SlopeRange(Option<(Step, Step)>);

impl SlopeRange {
    fn allows(&self, step: Step) -> bool {
        self.0
            .is_none_or(|(low, high)| low.is_below(step) && step.is_below(high))
    }

    fn narrow(&mut self, step: Step, tolerance: Span) {
        let shifted = |by: i64| Step {
            offset_change: step.offset_change.saturating_add(by),
            ..step
        };
        let (low, high) = (shifted(-tolerance.nanos()), shifted(tolerance.nanos()));
        self.0 = Some(self.0.map_or((low, high), |(lowest, highest)| {
            let low = if lowest.is_below(low) { low } else { lowest };
            let high = if high.is_below(highest) {
                high
            } else {
                highest
            };
            (low, high)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Local;

    /// The precision of reported times of flows.
    const SAME: Span = Span::from_micros(1);
    const SECOND: i64 = 1_000_000_000;

    fn anchor(second: i64, offset: i64) -> Anchor<Local> {
        let at = second * SECOND;
        Anchor {
            at: Instant::from_nanos(at),
            wall: Wall::from_unix_nanos(at + offset),
        }
    }

    fn wall_nanos(clock: &WallCourse<Local>, at: i64) -> Option<i64> {
        clock.unix_nanos(Instant::from_nanos(at))
    }

    #[test]
    fn a_wall_clock_step_does_not_alter_earlier_times() {
        let mut clock = WallCourse::within(SAME);
        assert_eq!(wall_nanos(&clock, 5), None);
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
            assert_eq!(wall_nanos(&clock, at * SECOND), Some(at * SECOND + offset));
        }
        assert_eq!(clock.knots.len(), 5, "both sides of each step");
    }

    #[test]
    fn a_constantly_fast_clock_needs_two_readings() {
        let mut clock = WallCourse::within(SAME);
        // 20 ppm, and from the 700,000th second on slewed back at 400 ppm.
        let offset =
            |second: i64| second.min(700_000) * 20_000 - (second - 700_000).max(0) * 400_000;
        for second in 0..800_000 {
            clock.read(anchor(second, offset(second)));
        }
        assert!(clock.knots.len() <= 3, "{}", clock.knots.len());
        for second in [0, 1, 350_000, 699_999, 700_001, 750_000, 799_999, 800_000] {
            let truth = second * SECOND + offset(second.min(799_999));
            let error = wall_nanos(&clock, second * SECOND).map(|nanos| nanos - truth);
            assert!(
                error.is_some_and(|error| error.abs() <= SAME.nanos()),
                "{second}: {error:?}"
            );
        }
    }

    #[test]
    fn readings_of_an_unsteady_clock_are_bounded_and_keep_the_steps() {
        let mut clock = WallCourse {
            max_readings: 64,
            ..WallCourse::within(SAME)
        };
        let offset = |second: i64| {
            let set = if second >= 70_000 { SECOND } else { 0 };
            set + second * 50_000 + second * second % 977 * 1_000
        };
        for second in 0..100_000 {
            clock.read(anchor(second, offset(second)));
        }
        assert!(clock.knots.len() <= 64);
        assert!(
            clock.tolerance < Span::from_millis(5),
            "{}",
            clock.tolerance
        );
        for second in [0, 33_333, 69_999, 70_000, 99_999] {
            let truth = second * SECOND + offset(second);
            let error = wall_nanos(&clock, second * SECOND).map(|nanos| (nanos - truth).abs());
            assert!(
                error.is_some_and(|error| error <= clock.doubt().nanos()),
                "{error:?}"
            );
        }
    }

    #[test]
    fn readings_of_a_repeatedly_stepped_clock_are_bounded() {
        let mut clock = WallCourse {
            max_readings: 64,
            ..WallCourse::within(SAME)
        };
        for second in 0..10_000 {
            clock.read(anchor(second, second % 2 * SECOND));
            assert!(clock.knots.len() <= 64);
        }
    }

    #[test]
    fn a_clock_step_is_reported_once_and_slewing_is_no_step() {
        let mut clock = WallCourse::within(SAME);
        for second in 0..100 {
            // Slewed by 80 ppm all the time.
            let set = if second >= 60 { -3 * SECOND } else { 0 };
            let step = clock.read(anchor(second, 7 + second * 80_000 + set));
            let step_nanos =
                step.map(|step| (step.after.nanos(), step.before.nanos(), step.by.nanos()));
            let due = (second == 60).then_some((59 * SECOND, 60 * SECOND, 80_000 - 3 * SECOND));
            assert_eq!(step_nanos, due);
            assert_eq!(clock.read(anchor(second, 0)), None, "it is not later");
        }
        let offset = |at| clock.offset(Instant::from_nanos(at)).map(Span::nanos);
        assert_eq!(offset(SECOND / 2), Some(7 + 40_000));
        assert_eq!(offset(70 * SECOND), Some(7 + 70 * 80_000 - 3 * SECOND));
    }
}
