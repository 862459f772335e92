//! Readings of both clocks, one a second; fewer of them the longer an experiment lasts, so that a week
//! takes no more memory than an hour. Those around a step of the wall clock stay.

use neph_model::{Anchor, Instant, Local, Wall};

/// So many are kept at the most.
const MAXIMUM: usize = 4096;
/// How far apart they are once there are more, nanoseconds; then twice that, and so on up to the last.
const FIRST_APART: i64 = 2_000_000_000;
const LAST_APART: i64 = 512_000_000_000;

/// (own clock since the start, wall clock), nanoseconds, in their order.
type Reading = (i64, i64);

/// The latest reading is always among them.
#[derive(Debug)]
pub(super) struct Anchors {
    readings: Vec<Reading>,
    apart: i64,
}

impl Anchors {
    pub(super) fn starting_with(first: Reading) -> Self {
        Self {
            readings: vec![first],
            apart: 0,
        }
    }

    pub(super) fn add(&mut self, reading: Reading) {
        self.keep(reading);
        if self.readings.len() < MAXIMUM {
            return;
        }
        self.apart = (2 * self.apart).clamp(FIRST_APART, LAST_APART);
        for reading in std::mem::take(&mut self.readings) {
            self.keep(reading);
        }
        // A clock that is stepped all the time, or months.
        if self.readings.len() > MAXIMUM / 4 * 3 {
            let last = self.readings.len() - 1;
            let mut indexes = 0..;
            self.readings.retain(|_| {
                let index = indexes.next().unwrap_or(0);
                index % 2 == 0 || index == last
            });
        }
    }

    /// The one before goes where its neighbours say as much: times between them are read along the line
    /// from one to the other (`neph-store`, `WallClock`).
    fn keep(&mut self, reading: Reading) {
        if let [.., before, last] = self.readings[..]
            && reading.0 - before.0 <= self.apart
            && is_steady(before, last)
            && is_steady(last, reading)
        {
            self.readings.pop();
        }
        self.readings.push(reading);
    }

    pub(super) fn into_readings(self) -> Vec<Reading> {
        self.readings
    }
}

fn is_steady(a: Reading, b: Reading) -> bool {
    let [a, b] = [a, b].map(|(at, wall)| Anchor::<Local> {
        at: Instant::from_nanos(at),
        wall: Wall::from_unix_nanos(wall),
    });
    a.is_steady(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const WEEK: i64 = 7 * 86_400;

    /// A wall clock that runs 20 ppm fast and was set back by 50 ms at second 300,000.
    fn reading_at(second: i64) -> Reading {
        let at = second * SECOND;
        let step = if second >= 300_000 { 50_000_000 } else { 0 };
        (at, 1_700_000_000 * SECOND + at + at / 50_000 - step)
    }

    #[test]
    fn clock_anchors_of_a_week_are_bounded_and_keep_both_ends() {
        let mut anchors = Anchors::starting_with(reading_at(0));
        for second in 1..=WEEK {
            anchors.add(reading_at(second));
            assert!(anchors.readings.len() < MAXIMUM);
        }
        let readings = anchors.into_readings();
        assert!(readings.len() > MAXIMUM / 4, "{}", readings.len());
        assert_eq!(
            (readings[0], readings[readings.len() - 1]),
            (reading_at(0), reading_at(WEEK))
        );
        for around in [299_999, 300_000] {
            assert!(readings.contains(&reading_at(around)), "{around}");
        }
        // None is farther from the next than a few minutes.
        let largest_gap = readings.windows(2).map(|two| two[1].0 - two[0].0).max();
        assert!(largest_gap <= Some(LAST_APART), "{largest_gap:?}");
    }

    #[test]
    fn clock_anchors_of_an_hour_are_all_stored() {
        let mut anchors = Anchors::starting_with(reading_at(0));
        let hour: Vec<Reading> = (0..3_600).map(reading_at).collect();
        hour[1..].iter().for_each(|reading| anchors.add(*reading));
        assert_eq!(anchors.into_readings(), hour);
    }

    #[test]
    fn clock_anchors_of_a_repeatedly_stepped_clock_are_bounded() {
        let mut anchors = Anchors::starting_with((0, 0));
        for second in 1..100_000 {
            anchors.add((second * SECOND, (second + second % 2) * SECOND));
            assert!(anchors.readings.len() < MAXIMUM);
        }
    }
}
