//! The shortest round trip of late, and whether what takes longer waited for a timer or in a queue.
//!
//! Owns how an acknowledgement that was held back is known: by the time that stacks hold them back for.
//! Reads no clock.

use neph_model::Wall;

use super::marks::Nanos;

/// Seconds of a stretch: the floor is that of the running stretch and of the one before.
const STRETCH: u32 = 10;
/// Whoever acknowledges later than this waited for something (nanoseconds).
const LATE: i64 = 25_000_000;
/// For how long stacks hold acknowledgements back: 40 ms (Linux, FreeBSD, Windows since 10) and 200 ms (RFC
/// 1122's ancestors, macOS, older Windows). Timers end with a tick of up to 10 ms, never early; a part of a
/// millisecond is left for the path.
const TIMERS: [std::ops::Range<i64>; 2] = [38_000_000..52_000_000, 195_000_000..215_000_000];
/// Late acknowledgements that count for or against a timer.
const SURE: i8 = 4;

/// Of the round trips to one side.
#[derive(Debug, Clone, Default)]
pub(super) struct Floor {
    /// The shortest of the path, in the running stretch and in the one before.
    now: Nanos,
    before: Nanos,
    /// The shortest that a timer seemed to hold back in the running stretch.
    held: Nanos,
    /// When the stretch began (seconds).
    since: u32,
    /// Above 0 late acknowledgements come when timers end; below, whenever a queue lets them.
    timer: i8,
}

fn shorter(one: Nanos, other: Nanos) -> Nanos {
    match (one.get(), other.get()) {
        (Some(one), Some(other)) => Nanos::of(one.min(other)),
        (None, _) => other,
        (_, None) => one,
    }
}

impl Floor {
    /// The shortest round trip of the last 10 to 20 s, or of the latest such stretch.
    #[inline]
    pub(super) fn get(&self) -> Option<i64> {
        shorter(self.now, self.before).get()
    }

    /// A round trip of the path took so many nanoseconds.
    #[inline]
    pub(super) fn path(&mut self, at: Wall, nanos: i64) {
        self.turn(at);
        self.now = shorter(self.now, Nanos::of(nanos));
    }

    /// One took so long that a timer may have held it back. Where nothing else is seen for a stretch it is
    /// the path that takes so long.
    pub(super) fn held_back(&mut self, at: Wall, nanos: i64) {
        self.turn(at);
        self.held = shorter(self.held, Nanos::of(nanos));
    }

    #[inline]
    fn turn(&mut self, at: Wall) {
        let seconds = u32::try_from(at.unix_nanos() / 1_000_000_000 & 0xffff_ffff).unwrap_or(0);
        if seconds.wrapping_sub(self.since) < STRETCH {
            return;
        }
        let ended = if self.now.get().is_some() {
            self.now
        } else {
            self.held
        };
        if ended.get().is_some() {
            self.before = ended;
        }
        (self.now, self.held) = (Nanos::default(), Nanos::default());
        self.since = seconds;
    }

    /// Whether an acknowledgement that nothing forced was held back, by a round trip of so many nanoseconds:
    /// it is late by what a timer takes, as most late ones are. `quiet` is for how long the other side had
    /// sent nothing: all that it sends acknowledges what it has, so that a timer begins behind that.
    pub(super) fn is_held_back(&mut self, at: Wall, nanos: i64, quiet: Option<i64>) -> bool {
        self.turn(at);
        let late = nanos - self.get().unwrap_or(0);
        if late < LATE {
            return false;
        }
        let least = TIMERS[0].start;
        let is_timer = TIMERS.iter().any(|timer| timer.contains(&late))
            && quiet.is_none_or(|quiet| quiet >= least);
        let step = if is_timer { 1 } else { -1 };
        self.timer = (self.timer + step).clamp(-SURE, SURE);
        is_timer && self.timer > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: i64 = 1_000_000;

    fn at(millis: i64) -> Wall {
        Wall::from_unix_nanos(1_700_000_000_000_000_000 + millis * MILLISECOND)
    }

    /// How many of round trips of these milliseconds, one each half a second, were held back.
    fn held(trips: impl IntoIterator<Item = i64>) -> usize {
        let mut floor = Floor::default();
        let mut held = 0;
        for (n, trip) in (0..).zip(trips) {
            let nanos = trip * MILLISECOND;
            if floor.is_held_back(at(n * 500), nanos, None) {
                held += 1;
                floor.held_back(at(n * 500), nanos);
            } else {
                floor.path(at(n * 500), nanos);
            }
        }
        held
    }

    #[test]
    fn what_takes_as_long_as_a_timer_was_held_back() {
        assert_eq!(held([10, 50, 10, 53, 55, 10, 211, 10]), 4);
    }

    #[test]
    fn a_path_that_becomes_longer_is_no_timer() {
        assert_eq!(held([10; 5].into_iter().chain([70; 15])), 0);
        // By as much as a timer takes: until nothing shorter was seen for two stretches.
        assert_eq!(held([10; 5].into_iter().chain([50; 60])), 35);
    }

    #[test]
    fn a_queue_of_any_length_is_no_timer_where_few_wait_as_long_as_one_takes() {
        let queue = |n: i64| 20 + n * 7_919 % 320;
        let held = held((0..400).map(queue));
        assert!(held <= 4, "{held}");
    }

    #[test]
    fn who_sent_something_meanwhile_held_nothing_back() {
        let mut floor = Floor::default();
        floor.path(at(0), 10 * MILLISECOND);
        assert!(!floor.is_held_back(at(500), 51 * MILLISECOND, Some(20 * MILLISECOND)));
        let mut floor = Floor::default();
        floor.path(at(0), 10 * MILLISECOND);
        assert!(floor.is_held_back(at(500), 51 * MILLISECOND, Some(41 * MILLISECOND)));
    }
}
