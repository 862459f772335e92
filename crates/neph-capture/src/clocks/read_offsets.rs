//! The offset of two clocks from readings of both against a third clock.
//!
//! Owns how fast a reading ages. Two readings that contradict each other give nothing between them: a clock
//! was set. Does not own the limits from packets (neph-stats).

use neph_model::{ClockOffset, ClockReading, Span};

/// Largest drift between two clocks, in ppm.
const DRIFT_PPM: i64 = 100;

/// The later point's clock minus the earlier one's, from readings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOffsets {
    /// Ascending in time.
    readings: Vec<Reading>,
}

/// The offset at a moment of the earlier point's clock, combined from all readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    at: i64,
    min_offset: i64,
    max_offset: i64,
    /// It contradicts the reading before: a clock was set between them.
    contradicts_previous: bool,
}

impl Reading {
    /// The reading with the error bound that it has at this age, later or earlier.
    const fn widened_by_age(self, age: i64) -> Self {
        let max_drift = age / 1_000_000 * DRIFT_PPM + DRIFT_PPM;
        Self {
            at: self.at,
            min_offset: self.min_offset.saturating_sub(max_drift),
            max_offset: self.max_offset.saturating_add(max_drift),
            contradicts_previous: self.contradicts_previous,
        }
    }

    /// The intersection with another reading. `None` where they contradict each other.
    fn intersect(self, other: Self) -> Option<Self> {
        let intersection = Self {
            min_offset: self.min_offset.max(other.min_offset),
            max_offset: self.max_offset.min(other.max_offset),
            ..self
        };
        (intersection.min_offset <= intersection.max_offset).then_some(intersection)
    }

    const fn distance(&self, at: i64) -> i64 {
        self.at.saturating_sub(at).saturating_abs()
    }
}

impl ReadOffsets {
    /// Combines the readings at two points. Empty where one of them has none.
    pub fn combine(earlier: &[ClockReading], later: &[ClockReading]) -> Self {
        let mut readings: Vec<Reading> = earlier
            .iter()
            .filter_map(|reading| combine_reading(reading, later))
            .collect();
        readings.sort_by_key(|reading| reading.at);
        for index in 1..readings.len() {
            let (before, current) = (readings[index - 1], readings[index]);
            match current.intersect(before.widened_by_age(before.distance(current.at))) {
                Some(intersection) => readings[index] = intersection,
                None => readings[index].contradicts_previous = true,
            }
        }
        for index in (1..readings.len()).rev() {
            let (current, next) = (readings[index - 1], readings[index]);
            if !next.contradicts_previous
                && let Some(intersection) =
                    current.intersect(next.widened_by_age(next.distance(current.at)))
            {
                readings[index - 1] = intersection;
            }
        }
        Self { readings }
    }

    /// The offset at a moment of the earlier point's clock. `None` without a reading, and where a clock was
    /// set.
    fn reading_at(&self, at: i64) -> Option<Reading> {
        let next = self.readings.partition_point(|reading| reading.at <= at);
        let aged = |reading: &Reading| reading.widened_by_age(reading.distance(at));
        let before = next.checked_sub(1).and_then(|last| self.readings.get(last));
        match (before, self.readings.get(next)) {
            (Some(_), Some(after)) if after.contradicts_previous => None,
            (Some(before), Some(after)) => aged(before).intersect(aged(after)),
            (Some(only), None) | (None, Some(only)) => Some(aged(only)),
            (None, None) => None,
        }
    }

    /// The offset from packets at this moment, narrowed by the readings. Where both contradict each other,
    /// the packets count.
    pub(crate) fn narrowed(&self, at: i64, proved: ClockOffset) -> ClockOffset {
        let (value, bound) = (proved.value().nanos(), proved.bound().nanos());
        let packets = Reading {
            at,
            min_offset: value.saturating_sub(bound),
            max_offset: value.saturating_add(bound),
            contradicts_previous: false,
        };
        let narrowed_reading = self
            .reading_at(at)
            .and_then(|reading| packets.intersect(reading));
        let Some(narrowed_reading) = narrowed_reading.filter(|reading| {
            (reading.min_offset, reading.max_offset) != (packets.min_offset, packets.max_offset)
        }) else {
            return proved;
        };
        let middle = narrowed_reading
            .min_offset
            .midpoint(narrowed_reading.max_offset);
        let bound = narrowed_reading
            .max_offset
            .saturating_sub(middle)
            .max(middle.saturating_sub(narrowed_reading.min_offset));
        ClockOffset::new(Span::from_nanos(middle), Span::from_nanos(bound))
    }
}

/// A reading of one clock, joined with the nearest one of the other.
fn combine_reading(earlier: &ClockReading, later: &[ClockReading]) -> Option<Reading> {
    // Compared on the clock that both were read against.
    let moment = |reading: &ClockReading| (reading.at + -reading.offset).unix_nanos();
    let distance = |other_reading: &&ClockReading| moment(earlier).abs_diff(moment(other_reading));
    let nearest = later.iter().min_by_key(distance)?;
    let bound = (earlier.bound + nearest.bound).nanos();
    let offset = (nearest.offset - earlier.offset).nanos();
    let reading = Reading {
        at: earlier.at.unix_nanos(),
        min_offset: offset.saturating_sub(bound),
        max_offset: offset.saturating_add(bound),
        contradicts_previous: false,
    };
    Some(reading.widened_by_age(i64::try_from(distance(&nearest)).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use neph_model::Wall;

    use super::*;

    const MS: i64 = 1_000_000;
    const SECOND: i64 = 1_000 * MS;

    /// Readings as (moment, offset, error bound).
    fn readings(values: &[(i64, i64, i64)]) -> Vec<ClockReading> {
        let reading = |&(at, offset, bound): &(i64, i64, i64)| ClockReading {
            at: Wall::from_unix_nanos(at),
            offset: Span::from_nanos(offset),
            bound: Span::from_nanos(bound),
        };
        values.iter().map(reading).collect()
    }

    /// Offset and error bound in microseconds, where packets give 2 ms ± 5 ms.
    fn offset_and_bound(read: &ReadOffsets, at: i64) -> (i64, i64) {
        let proved = ClockOffset::new(Span::from_millis(2), Span::from_millis(5));
        let offset = read.narrowed(at, proved);
        let micros = |span: Span| (span.nanos() + 5_000) / 10_000 * 10;
        (micros(offset.value()), micros(offset.bound()))
    }

    #[test]
    fn the_offset_of_two_clocks_is_bounded_by_both_and_the_reading_age() {
        let first = readings(&[(100 * MS, 10 * MS, MS)]);
        // 1000 s earlier, and at the same moment: 90 ms by the third clock.
        let second = readings(&[(-1_000 * SECOND, 0, 0), (101 * MS, 11 * MS, MS)]);
        let read = ReadOffsets::combine(&first, &second);
        assert_eq!(offset_and_bound(&read, 100 * MS), (1_000, 2_000));
        // A reading that is 10 s old loses 1 ms of accuracy.
        assert_eq!(
            offset_and_bound(&read, 100 * MS + 10 * SECOND),
            (1_000, 3_000)
        );
        let without_readings = ReadOffsets::combine(&first, &[]);
        assert_eq!(
            offset_and_bound(&without_readings, 100 * MS),
            (2_000, 5_000)
        );
    }

    #[test]
    fn the_most_accurate_reading_at_its_age_counts() {
        let first = readings(&[(0, 0, 0), (10 * SECOND, 0, 0), (20 * SECOND, 0, 0)]);
        let second = readings(&[
            (0, 0, 4 * MS),
            (10 * SECOND, MS, MS / 2),
            (20 * SECOND, 0, 4 * MS),
        ]);
        let read = ReadOffsets::combine(&first, &second);
        assert_eq!(offset_and_bound(&read, 10 * SECOND), (1_000, 500));
        assert_eq!(offset_and_bound(&read, 0), (1_000, 1_500));
        assert_eq!(offset_and_bound(&read, 15 * SECOND), (1_000, 1_000));
        assert_eq!(offset_and_bound(&read, 30 * SECOND), (1_000, 2_500));
    }

    #[test]
    fn readings_that_contradict_each_other_or_the_packets_are_ignored() {
        let first = readings(&[(0, 0, 0), (10 * SECOND, 0, 0)]);
        let second = readings(&[(0, MS, MS), (10 * SECOND, 5 * MS, MS)]);
        let read = ReadOffsets::combine(&first, &second);
        assert_eq!(offset_and_bound(&read, 5 * SECOND), (2_000, 5_000));
        assert_eq!(offset_and_bound(&read, 0), (2_000, 5_000));
        assert_eq!(offset_and_bound(&read, -SECOND), (1_000, 1_100));
        assert_eq!(offset_and_bound(&read, 10 * SECOND), (5_000, 1_000));
        let early_offsets = ReadOffsets::combine(&first[..1], &readings(&[(0, 50 * MS, MS)]));
        assert_eq!(offset_and_bound(&early_offsets, 0), (2_000, 5_000));
    }
}
