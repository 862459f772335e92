//! Conversion of the kernel's wall clock timestamps to the local monotonic clock. The wall clock need not run
//! evenly. Both clocks are read each time the thread wakes, so a timestamp is converted within microseconds,
//! and a step between two readings is detected.

use neph_model::{Anchor, Instant, Local, Span, Wall};
use neph_sys::clock::{self, Pair, WallNanos};

/// Tolerance for a slewed clock in addition to the rate that the kernel reports (`adjtime`: 500 ppm), and for
/// reading both clocks.
const SLEW_PPM: i64 = 500;
const MAX_READING_NANOS: i64 = 20_000;
/// A timestamp is at most this old when it is read, unless the thread was not scheduled.
const MAX_TIMESTAMP_AGE_NANOS: i64 = 1_000_000;

/// The current time on the local clock.
pub(crate) fn now() -> Instant<Local> {
    Instant::from_nanos(clock::raw().0)
}

/// The latest pair of readings.
#[derive(Debug)]
pub(crate) struct StampClock {
    pair: Pair,
    /// The wall clock stepped: timestamps read before this moment may be older than the step.
    suspect_until: Option<i64>,
}

impl StampClock {
    pub(crate) fn new() -> Self {
        Self {
            pair: clock::pair(),
            suspect_until: None,
        }
    }

    /// Reads both clocks. Returns by how much the wall clock stepped, if it did.
    pub(crate) fn refresh(&mut self) -> Option<Span> {
        let (pair, step) = after(self.pair, clock::pair(), reported_rate);
        if step.is_some() {
            self.suspect_until = Some(pair.raw.0 + MAX_TIMESTAMP_AGE_NANOS);
        } else if self.suspect_until.is_some_and(|until| until <= pair.raw.0) {
            self.suspect_until = None;
        }
        self.pair = pair;
        step
    }

    /// A timestamp on the local clock; `None` where a step makes it meaningless.
    pub(crate) fn own_instant(&self, stamp: WallNanos) -> Option<Instant<Local>> {
        let converted = || Instant::from_nanos(self.pair.to_raw(stamp).0);
        self.suspect_until.is_none().then(converted)
    }

    /// The latest readings.
    pub(crate) const fn anchor(&self) -> Anchor<Local> {
        Anchor {
            at: Instant::from_nanos(self.pair.raw.0),
            wall: Wall::from_unix_nanos(self.pair.wall.0),
        }
    }
}

/// The pair after another reading, and by how much the wall clock stepped. `rate_ppm` returns its slew rate,
/// and is called only if a step is likely.
///
/// If a reading takes long (a guest reads each clock by a system call, and a thread may be interrupted), the
/// earlier reading is better. A step exceeds the error bounds of both readings.
fn after(before: Pair, read: Pair, rate_ppm: impl FnOnce() -> i64) -> (Pair, Option<Span>) {
    let apart = read.offset() - before.offset();
    let elapsed = read.raw.0 - before.raw.0;
    let slewed = |ppm: i64| elapsed / 1_000_000 * ppm + elapsed % 1_000_000 * ppm / 1_000_000;
    let reading = MAX_READING_NANOS + before.doubt + read.doubt;
    if apart.abs() <= slewed(SLEW_PPM) + reading {
        let carried = Pair {
            raw: read.raw,
            wall: WallNanos(read.raw.0 + before.offset()),
            doubt: before.doubt + slewed(SLEW_PPM),
        };
        let better = if carried.doubt < read.doubt {
            carried
        } else {
            read
        };
        return (better, None);
    }
    // Not exactly that rate: it may have changed since the first reading.
    let bound = slewed(2 * rate_ppm().abs() + SLEW_PPM) + reading;
    let step = (apart.abs() > bound).then_some(Span::from_nanos(apart));
    (read, step)
}

fn reported_rate() -> i64 {
    clock::sync_status().map_or(0, |status| status.rate_ppm)
}

#[cfg(test)]
mod tests {
    use neph_sys::clock::RawNanos;

    use super::*;

    fn at(raw: i64, wall: i64) -> Pair {
        Pair {
            raw: RawNanos(raw),
            wall: WallNanos(wall),
            doubt: 40,
        }
    }

    #[test]
    fn slewing_is_no_clock_step_but_a_millisecond_jump_is() {
        let second = 1_000_000_000;
        let step = |read| after(at(0, 0), read, || 0).1;
        assert_eq!(step(at(second, second + 500_000)), None);
        assert_eq!(step(at(1_000, 15_000)), None);
        let stepped = step(at(second, second - 1_000_000));
        assert_eq!(stepped, Some(Span::from_millis(-1)));
    }

    #[test]
    fn slewing_by_eight_percent_is_no_clock_step() {
        let chrony = || 83_333;
        let slewed = at(10_000_000, 10_833_330);
        assert_eq!(after(at(0, 0), slewed, chrony), (slewed, None));
        let stepped = at(10_000_000, 12_000_000);
        assert!(after(at(0, 0), stepped, chrony).1.is_some());
    }

    #[test]
    fn a_slow_clock_reading_is_no_clock_step() {
        let millis = 10_000_000;
        let slow = Pair {
            doubt: 50_000,
            ..at(millis, millis + 60_000)
        };
        let (pair, step) = after(at(0, 0), slow, || 0);
        assert_eq!((pair.offset(), pair.raw, step), (0, slow.raw, None));
        // After 10 ms it is less exact, so that soon any reading is better.
        assert_eq!(pair.doubt, 40 + 5_000);
        let (pair, step) = after(pair, at(2 * millis, 2 * millis + 4_000), || 0);
        assert_eq!((pair.offset(), pair.doubt, step), (4_000, 40, None));
        let quick = Pair { doubt: 40, ..slow };
        assert!(after(at(0, 0), quick, || 0).1.is_some(), "that is a step");
    }
}
