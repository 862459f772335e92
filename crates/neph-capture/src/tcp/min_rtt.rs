//! The recent shortest round trip, and whether longer ones waited for a timer or in a queue.
//!
//! Owns the detection of delayed acknowledgements, by the usual timers of stacks. Reads no clock.

use neph_model::Wall;

/// Length of an interval in ticks of 2^30 ns, a little more than a second. The shortest round trip is that
/// of the current interval and of the one before.
const INTERVAL_TICKS: u32 = 10;
/// Nanoseconds of a tick, as a power of two.
const TICK_SHIFT: u32 = 30;
/// A later acknowledgement waited for something, in nanoseconds.
const MIN_LATENESS_NANOS: i64 = 25_000_000;
/// Timers for delayed acknowledgements: 40 ms (Linux, FreeBSD, Windows since 10) and 200 ms (older Windows
/// and BSD). Timers end with a tick of up to 10 ms, never early; a part of a millisecond is added for the
/// path.
const TIMERS: [std::ops::Range<i64>; 2] = [38_000_000..52_000_000, 195_000_000..215_000_000];
/// Late acknowledgements that count for or against a timer.
const MAX_VOTES: i8 = 4;
/// After this silence, and two round trips, a side acknowledges at once if it ever does: Linux after its
/// retransmission timeout, which is no shorter. Others delay each time.
const MIN_IDLE_NANOS: i64 = 250_000_000;
/// No round trip.
const NONE: u32 = u32::MAX;

/// Shortest recent round trip to one side, in nanoseconds; longer ones count as 4 s.
#[derive(Debug, Clone)]
pub(super) struct MinRtt {
    /// The shortest of the path, in the current interval and in the one before.
    current: u32,
    previous: u32,
    /// The shortest that a timer seemed to delay in the current interval.
    shortest_delayed: u32,
    /// The tick in which the interval began.
    interval_start: u32,
    /// Above 0: late acknowledgements match timers. Below 0: they match a queue.
    timer_votes: i8,
    /// Whether the other side acknowledged at once after an idle period.
    is_prompt_after_idle: bool,
}

impl Default for MinRtt {
    fn default() -> Self {
        Self {
            current: NONE,
            previous: NONE,
            shortest_delayed: NONE,
            interval_start: 0,
            timer_votes: 0,
            is_prompt_after_idle: false,
        }
    }
}

fn saturated_nanos(nanos: i64) -> u32 {
    u32::try_from(nanos).unwrap_or(NONE).min(NONE - 1)
}

impl MinRtt {
    /// The shortest round trip of the last 10 to 20 s, or of the latest such interval.
    #[inline]
    pub(super) fn get(&self) -> Option<i64> {
        let minimum = self.current.min(self.previous);
        (minimum != NONE).then(|| i64::from(minimum))
    }

    /// Adds a round trip of the path.
    #[inline]
    pub(super) fn add_path_round_trip(&mut self, at: Wall, nanos: i64) {
        self.update_interval(at);
        self.current = self.current.min(saturated_nanos(nanos));
    }

    /// Adds a round trip that a timer may have delayed. If an interval has no others, the path itself takes so
    /// long.
    pub(super) fn add_delayed(&mut self, at: Wall, nanos: i64) {
        self.update_interval(at);
        self.shortest_delayed = self.shortest_delayed.min(saturated_nanos(nanos));
    }

    #[inline]
    fn update_interval(&mut self, at: Wall) {
        let tick = u32::try_from((at.unix_nanos() >> TICK_SHIFT) & 0xffff_ffff).unwrap_or(0);
        if tick.wrapping_sub(self.interval_start) >= INTERVAL_TICKS {
            self.start_interval(tick);
        }
    }

    #[cold]
    fn start_interval(&mut self, tick: u32) {
        let ended = if self.current == NONE {
            self.shortest_delayed
        } else {
            self.current
        };
        if ended != NONE {
            self.previous = ended;
        }
        (self.current, self.shortest_delayed, self.interval_start) = (NONE, NONE, tick);
    }

    /// Whether an acknowledgement that was not due at once was delayed, by its round trip: it is late by the
    /// time of a timer, like most late ones. `silence_nanos` is how long the other side had sent nothing. Everything
    /// that it sends acknowledges all data, so a timer begins after that.
    pub(super) fn is_delayed(&mut self, at: Wall, nanos: i64, silence_nanos: Option<i64>) -> bool {
        self.update_interval(at);
        let min_nanos = self.get().unwrap_or(0);
        let lateness_nanos = nanos - min_nanos;
        let is_idle = silence_nanos
            .is_some_and(|silence_nanos| silence_nanos >= MIN_IDLE_NANOS + 2 * min_nanos);
        if lateness_nanos < MIN_LATENESS_NANOS {
            self.is_prompt_after_idle |= is_idle;
            return false;
        }
        let may_wait = !(is_idle && self.is_prompt_after_idle)
            && silence_nanos.is_none_or(|silence_nanos| silence_nanos >= TIMERS[0].start);
        self.is_by_timer(lateness_nanos, may_wait)
    }

    fn is_by_timer(&mut self, lateness_nanos: i64, may_wait: bool) -> bool {
        let is_timer = may_wait && TIMERS.iter().any(|timer| timer.contains(&lateness_nanos));
        let step = if is_timer { 1 } else { -1 };
        self.timer_votes = (self.timer_votes + step).clamp(-MAX_VOTES, MAX_VOTES);
        is_timer && self.timer_votes > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: i64 = 1_000_000;

    fn at(millis: i64) -> Wall {
        Wall::from_unix_nanos(1_700_000_000_000_000_000 + millis * MILLISECOND)
    }

    /// How many of these round trips in milliseconds, one each 500 ms, were delayed.
    fn count_delayed(durations: impl IntoIterator<Item = i64>) -> usize {
        let mut min_rtt = MinRtt::default();
        let mut delayed_count = 0;
        for (n, duration) in (0..).zip(durations) {
            let nanos = duration * MILLISECOND;
            if min_rtt.is_delayed(at(n * 500), nanos, None) {
                delayed_count += 1;
                min_rtt.add_delayed(at(n * 500), nanos);
            } else {
                min_rtt.add_path_round_trip(at(n * 500), nanos);
            }
        }
        delayed_count
    }

    #[test]
    fn acknowledgements_as_late_as_a_delay_timer_are_delayed() {
        assert_eq!(count_delayed([10, 50, 10, 53, 55, 10, 211, 10]), 4);
    }

    #[test]
    fn a_path_that_becomes_longer_is_no_timer() {
        assert_eq!(count_delayed([10; 5].into_iter().chain([70; 15])), 0);
        // By the time of a timer: until nothing shorter was seen for two intervals.
        let delayed_count = count_delayed([10; 5].into_iter().chain([50; 60]));
        assert!((30..45).contains(&delayed_count), "{delayed_count}");
    }

    #[test]
    fn a_queue_is_not_mistaken_for_a_delay_timer() {
        let queue = |n: i64| 20 + n * 7_919 % 320;
        let delayed_count = count_delayed((0..400).map(queue));
        assert!(delayed_count <= 4, "{delayed_count}");
    }

    #[test]
    fn a_side_that_sent_meanwhile_did_not_delay_its_acknowledgement() {
        let mut min_rtt = MinRtt::default();
        min_rtt.add_path_round_trip(at(0), 10 * MILLISECOND);
        assert!(!min_rtt.is_delayed(at(500), 51 * MILLISECOND, Some(20 * MILLISECOND)));
        let mut min_rtt = MinRtt::default();
        min_rtt.add_path_round_trip(at(0), 10 * MILLISECOND);
        assert!(min_rtt.is_delayed(at(500), 51 * MILLISECOND, Some(41 * MILLISECOND)));
    }

    #[test]
    fn a_side_that_acknowledged_at_once_after_a_pause_does_not_delay() {
        let mut min_rtt = MinRtt::default();
        let pause = Some(500 * MILLISECOND);
        assert!(!min_rtt.is_delayed(at(0), 10 * MILLISECOND, pause));
        min_rtt.add_path_round_trip(at(0), 10 * MILLISECOND);
        assert!(!min_rtt.is_delayed(at(500), 50 * MILLISECOND, pause));
        // A side that never did may delay each time.
        let mut min_rtt = MinRtt::default();
        min_rtt.add_path_round_trip(at(0), 10 * MILLISECOND);
        assert!(min_rtt.is_delayed(at(500), 50 * MILLISECOND, pause));
    }
}
