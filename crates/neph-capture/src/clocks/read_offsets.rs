//! The offset of two clocks as it was read, where both were read against a third: a second opinion beside what packets
//! prove.
//!
//! Owns how much a reading is worth later and earlier, and that two which contradict each other are worth nothing
//! between them: a clock was set. Does not own what packets prove (neph-stats).

use neph_model::{ClockOffset, ClockReading, Span};

/// How fast two clocks may drift from each other, ppm.
const DRIFT_PPM: i64 = 100;

/// The later point's clock minus the earlier one's, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOffsets {
    /// Ascending in time.
    readings: Vec<Reading>,
}

/// What is known at a moment of the earlier point's clock, by all readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    at: i64,
    least: i64,
    most: i64,
    /// It contradicts the one before: a clock was set between them.
    is_apart: bool,
}

impl Reading {
    /// What is still known so much later, or earlier.
    const fn after(self, age: i64) -> Self {
        let drifted = age / 1_000_000 * DRIFT_PPM + DRIFT_PPM;
        Self {
            at: self.at,
            least: self.least.saturating_sub(drifted),
            most: self.most.saturating_add(drifted),
            is_apart: self.is_apart,
        }
    }

    /// The same, and what another one says; `None` where they contradict each other.
    fn and(self, other: Self) -> Option<Self> {
        let both = Self {
            least: self.least.max(other.least),
            most: self.most.min(other.most),
            ..self
        };
        (both.least <= both.most).then_some(both)
    }

    const fn distance(&self, at: i64) -> i64 {
        self.at.saturating_sub(at).saturating_abs()
    }
}

impl ReadOffsets {
    /// Of the readings at two points; nothing where one of them has none.
    pub fn between(earlier: &[ClockReading], later: &[ClockReading]) -> Self {
        let mut readings: Vec<Reading> = earlier
            .iter()
            .filter_map(|here| joined(here, later))
            .collect();
        readings.sort_by_key(|reading| reading.at);
        for place in 1..readings.len() {
            let (before, own) = (readings[place - 1], readings[place]);
            match own.and(before.after(before.distance(own.at))) {
                Some(both) => readings[place] = both,
                None => readings[place].is_apart = true,
            }
        }
        for place in (1..readings.len()).rev() {
            let (own, next) = (readings[place - 1], readings[place]);
            if !next.is_apart
                && let Some(both) = own.and(next.after(next.distance(own.at)))
            {
                readings[place - 1] = both;
            }
        }
        Self { readings }
    }

    /// At a moment of the earlier point's clock; `None` without a reading, and where a clock was set.
    fn at(&self, here: i64) -> Option<Reading> {
        let next = self.readings.partition_point(|reading| reading.at <= here);
        let aged = |reading: &Reading| reading.after(reading.distance(here));
        let before = next.checked_sub(1).and_then(|last| self.readings.get(last));
        match (before, self.readings.get(next)) {
            (Some(_), Some(after)) if after.is_apart => None,
            (Some(before), Some(after)) => aged(before).and(aged(after)),
            (Some(only), None) | (None, Some(only)) => Some(aged(only)),
            (None, None) => None,
        }
    }

    /// What packets prove at this moment, narrowed to what was read too. Where these contradict each other the packets
    /// are believed.
    pub(crate) fn narrowed(&self, here: i64, proved: ClockOffset) -> ClockOffset {
        let (value, bound) = (proved.value().nanos(), proved.bound().nanos());
        let packets = Reading {
            at: here,
            least: value.saturating_sub(bound),
            most: value.saturating_add(bound),
            is_apart: false,
        };
        let both = self.at(here).and_then(|read| packets.and(read));
        let Some(both) =
            both.filter(|both| (both.least, both.most) != (packets.least, packets.most))
        else {
            return proved;
        };
        let middle = both.least.midpoint(both.most);
        let bound = both
            .most
            .saturating_sub(middle)
            .max(middle.saturating_sub(both.least));
        ClockOffset::new(Span::from_nanos(middle), Span::from_nanos(bound))
    }
}

/// A reading of one clock with the nearest one of the other.
fn joined(here: &ClockReading, later: &[ClockReading]) -> Option<Reading> {
    // By the clock that both were read against.
    let moment = |one: &ClockReading| (one.at + -one.offset).unix_nanos();
    let away = |there: &&ClockReading| moment(here).abs_diff(moment(there));
    let there = later.iter().min_by_key(away)?;
    let bound = (here.bound + there.bound).nanos();
    let offset = (there.offset - here.offset).nanos();
    let reading = Reading {
        at: here.at.unix_nanos(),
        least: offset.saturating_sub(bound),
        most: offset.saturating_add(bound),
        is_apart: false,
    };
    Some(reading.after(i64::try_from(away(&there)).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use neph_model::Wall;

    use super::*;

    const MS: i64 = 1_000_000;
    const SECOND: i64 = 1_000 * MS;

    /// At a moment, so much ahead, within a bound.
    fn readings(all: &[(i64, i64, i64)]) -> Vec<ClockReading> {
        let reading = |&(at, offset, bound): &(i64, i64, i64)| ClockReading {
            at: Wall::from_unix_nanos(at),
            offset: Span::from_nanos(offset),
            bound: Span::from_nanos(bound),
        };
        all.iter().map(reading).collect()
    }

    /// Offset and bound where packets know it to within 5 ms of 2 ms; microseconds.
    fn told(read: &ReadOffsets, at: i64) -> (i64, i64) {
        let proved = ClockOffset::new(Span::from_millis(2), Span::from_millis(5));
        let told = read.narrowed(at, proved);
        let micros = |span: Span| (span.nanos() + 5_000) / 10_000 * 10;
        (micros(told.value()), micros(told.bound()))
    }

    #[test]
    fn the_offset_of_two_is_within_both_bounds_and_what_passed_between_the_readings() {
        let here = readings(&[(100 * MS, 10 * MS, MS)]);
        // 1000 s earlier, and at the same moment: 90 ms by the third clock.
        let there = readings(&[(-1_000 * SECOND, 0, 0), (101 * MS, 11 * MS, MS)]);
        let read = ReadOffsets::between(&here, &there);
        assert_eq!(told(&read, 100 * MS), (1_000, 2_000));
        // What is 10 s old is worth 1 ms less.
        assert_eq!(told(&read, 100 * MS + 10 * SECOND), (1_000, 3_000));
        let nothing = ReadOffsets::between(&here, &[]);
        assert_eq!(told(&nothing, 100 * MS), (2_000, 5_000));
    }

    #[test]
    fn the_best_reading_counts_until_its_age_has_made_it_worse() {
        let own = readings(&[(0, 0, 0), (10 * SECOND, 0, 0), (20 * SECOND, 0, 0)]);
        let there = readings(&[
            (0, 0, 4 * MS),
            (10 * SECOND, MS, MS / 2),
            (20 * SECOND, 0, 4 * MS),
        ]);
        let read = ReadOffsets::between(&own, &there);
        assert_eq!(told(&read, 10 * SECOND), (1_000, 500));
        assert_eq!(told(&read, 0), (1_000, 1_500));
        assert_eq!(told(&read, 15 * SECOND), (1_000, 1_000));
        assert_eq!(told(&read, 30 * SECOND), (1_000, 2_500));
    }

    #[test]
    fn readings_that_contradict_each_other_or_the_packets_are_worth_nothing() {
        let own = readings(&[(0, 0, 0), (10 * SECOND, 0, 0)]);
        let there = readings(&[(0, MS, MS), (10 * SECOND, 5 * MS, MS)]);
        let read = ReadOffsets::between(&own, &there);
        assert_eq!(told(&read, 5 * SECOND), (2_000, 5_000));
        assert_eq!(told(&read, 0), (2_000, 5_000));
        assert_eq!(told(&read, -SECOND), (1_000, 1_100));
        assert_eq!(told(&read, 10 * SECOND), (5_000, 1_000));
        let far = ReadOffsets::between(&own[..1], &readings(&[(0, 50 * MS, MS)]));
        assert_eq!(told(&far, 0), (2_000, 5_000));
    }
}
