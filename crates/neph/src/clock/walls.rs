//! A wall clock beside the raw clock of its machine: how far apart they are, and when it was set.
//!
//! Each machine reads its own two clocks at one moment, so that no network is in between: a step shows
//! to the microsecond, and on which side.

use neph_model::{Anchor, Clock, Instant, Span, Wall};

/// The wall clock of one machine was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WallStep<C: Clock> {
    /// The last reading before.
    pub(super) after: Instant<C>,
    /// The first reading that shows it.
    pub(super) before: Instant<C>,
    /// By how much; what the clock was slewed by meanwhile is in it.
    pub(super) by: Span,
}

/// The latest readings of one machine's clocks.
#[derive(Debug)]
pub(super) struct WallClock<C: Clock> {
    readings: Vec<Anchor<C>>,
}

/// Readings that are looked at: messages that are told late are not later than this many.
const KEPT: usize = 4_096;

impl<C: Clock> WallClock<C> {
    pub(super) const fn new() -> Self {
        Self {
            readings: Vec::new(),
        }
    }

    /// The next reading; whether the clock was set since the last.
    pub(super) fn read(&mut self, reading: Anchor<C>) -> Option<WallStep<C>> {
        let last = self.readings.last().copied();
        if last.is_some_and(|last| reading.at.nanos() <= last.at.nanos()) {
            return None;
        }
        if self.readings.len() == 2 * KEPT {
            self.readings.drain(..KEPT);
        }
        self.readings.push(reading);
        let last = last.filter(|last| !last.is_steady(reading))?;
        Some(WallStep {
            after: last.at,
            before: reading.at,
            by: reading.offset() - last.offset(),
        })
    }

    /// Wall minus raw at a moment, by the readings around it; `None` before the first reading.
    pub(super) fn offset(&self, at: Instant<C>) -> Option<Span> {
        let next = self
            .readings
            .partition_point(|reading| reading.at.nanos() < at.nanos());
        let before = *self.readings.get(next.saturating_sub(1))?;
        let wall: Wall = match self.readings.get(next) {
            Some(after) if after.at.nanos() > before.at.nanos() => before.wall_between(*after, at),
            _ => before.to_wall(at),
        };
        Some(Span::from_nanos(
            wall.unix_nanos().saturating_sub(at.nanos()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use neph_model::Own;

    use super::*;

    fn reading(at: i64, offset: i64) -> Anchor<Own> {
        Anchor {
            at: Instant::from_nanos(at),
            wall: Wall::from_unix_nanos(at + offset),
        }
    }

    #[test]
    fn a_step_is_told_once_between_two_readings_and_slewing_is_none() {
        const SECOND: i64 = 1_000_000_000;
        let mut clock = WallClock::new();
        for second in 0..100 {
            // Slewed by 80 ppm all the time.
            let set = if second >= 60 { -3 * SECOND } else { 0 };
            let step = clock.read(reading(second * SECOND, 7 + second * 80_000 + set));
            let told = step.map(|step| (step.after.nanos(), step.before.nanos(), step.by.nanos()));
            let due = (second == 60).then_some((59 * SECOND, 60 * SECOND, 80_000 - 3 * SECOND));
            assert_eq!(told, due);
        }
        let offset = |at| clock.offset(Instant::from_nanos(at)).map(Span::nanos);
        assert_eq!(offset(SECOND / 2), Some(7 + 40_000));
        assert_eq!(offset(70 * SECOND), Some(7 + 70 * 80_000 - 3 * SECOND));
    }
}
