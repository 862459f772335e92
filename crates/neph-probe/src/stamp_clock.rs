//! From the kernel's wall-clock stamps to our monotonic clock, without trusting the wall clock to
//! run evenly: both are read anew each time the thread wakes, so that a stamp is converted within
//! microseconds of being taken, and a step between two readings is seen.

use neph_model::{Anchor, Instant, Own, Span, Wall};
use neph_sys::clock::{self, Pair, WallNanos};

/// What the clock may be slewed beside the rate that the kernel tells (`adjtime`: 500 ppm), and
/// room for reading both clocks.
const SLEW_PPM: i64 = 500;
const READING: i64 = 20_000;
/// A stamp is read at most this long after it was taken, unless the thread was kept from running.
const STALE: i64 = 1_000_000;

/// Now, on our clock.
pub(crate) fn now() -> Instant<Own> {
    Instant::from_nanos(clock::raw().0)
}

/// The latest pair of readings.
#[derive(Debug)]
pub(crate) struct StampClock {
    pair: Pair,
    /// The wall clock stepped: stamps read before this moment may be older than the step.
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
        let pair = clock::pair();
        let step = step_between(self.pair, pair, told_rate);
        if step.is_some() {
            self.suspect_until = Some(pair.raw.0 + STALE);
        } else if self.suspect_until.is_some_and(|until| until <= pair.raw.0) {
            self.suspect_until = None;
        }
        self.pair = pair;
        step
    }

    /// A stamp on our clock; `None` where a step makes it meaningless.
    pub(crate) fn own(&self, stamp: WallNanos) -> Option<Instant<Own>> {
        let own = || Instant::from_nanos(self.pair.to_raw(stamp).0);
        self.suspect_until.is_none().then(own)
    }

    /// The latest readings.
    pub(crate) const fn anchor(&self) -> Anchor<Own> {
        Anchor {
            at: Instant::from_nanos(self.pair.raw.0),
            wall: Wall::from_unix_nanos(self.pair.wall.0),
        }
    }
}

/// By how much the wall clock stepped; `rate_ppm` tells how fast it is being slewed, and is asked
/// only when it looks like a step.
fn step_between(before: Pair, after: Pair, rate_ppm: impl FnOnce() -> i64) -> Option<Span> {
    let apart = after.offset() - before.offset();
    let elapsed = after.raw.0 - before.raw.0;
    let slewed = |ppm: i64| elapsed / 1_000_000 * ppm + elapsed % 1_000_000 * ppm / 1_000_000;
    if apart.abs() <= slewed(SLEW_PPM) + READING {
        return None;
    }
    // Not exactly that rate: it may have changed since the first reading.
    let bound = slewed(2 * rate_ppm().abs() + SLEW_PPM) + READING;
    (apart.abs() > bound).then_some(Span::from_nanos(apart))
}

fn told_rate() -> i64 {
    clock::sync_status().map_or(0, |status| status.rate_ppm)
}

#[cfg(test)]
mod tests {
    use neph_sys::clock::RawNanos;

    use super::*;

    #[test]
    fn slewing_is_no_step_and_a_millisecond_is() {
        let at = |raw: i64, wall: i64| Pair {
            raw: RawNanos(raw),
            wall: WallNanos(wall),
        };
        let second = 1_000_000_000;
        let still = || 0;
        let step = |after| step_between(at(0, 0), after, still);
        assert_eq!(step(at(second, second + 500_000)), None);
        assert_eq!(step(at(1_000, 15_000)), None);
        let stepped = step(at(second, second - 1_000_000));
        assert_eq!(stepped, Some(Span::from_millis(-1)));
    }

    #[test]
    fn a_daemon_that_slews_by_eight_per_cent_steps_nothing() {
        let at = |raw: i64, wall: i64| Pair {
            raw: RawNanos(raw),
            wall: WallNanos(wall),
        };
        let chrony = || 83_333;
        let slewed = at(10_000_000, 10_833_330);
        assert_eq!(step_between(at(0, 0), slewed, chrony), None);
        let stepped = at(10_000_000, 12_000_000);
        assert!(step_between(at(0, 0), stepped, chrony).is_some());
    }
}
