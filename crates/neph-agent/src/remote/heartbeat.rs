//! Heartbeats: the state of an agent, and its clock offset to the controller.
//!
//! Owns when one is due and how its answer updates the clock offset. The controller reads its clock between
//! the agent's sending and receiving. The offset is therefore known to within half of that time, for any
//! forward and reverse delay (RFC 5905, 8, uses the same four timestamps).

use std::collections::BTreeMap;

use neph_model::{Span, Wall};
use neph_sys::clock::RawNanos;

use super::message::{AgentClockOffset, Beat};

/// Time between two heartbeats, nanoseconds.
const BEAT_INTERVAL: i64 = 5_000_000_000;
/// Time without an answer after which the connection counts as lost, nanoseconds.
const SILENCE_TIMEOUT: i64 = 20_000_000_000;

/// The heartbeats on one connection.
#[derive(Debug, Default)]
pub(super) struct Beats {
    next_at: Option<RawNanos>,
    /// Send time of the unanswered heartbeat, by both clocks.
    sent_beat: Option<(Wall, RawNanos)>,
    /// Send time of the first heartbeat after the last answer.
    unanswered_since: Option<RawNanos>,
    best_reading: Option<ClockReading>,
}

#[derive(Clone, Copy, Debug)]
struct ClockReading {
    clock: AgentClockOffset,
    at: RawNanos,
}

impl ClockReading {
    /// The offset at `now`, with the error bound of its age.
    fn now(&self, now: RawNanos) -> AgentClockOffset {
        let age = Span::from_nanos(now.0.saturating_sub(self.at.0));
        self.clock.after(age)
    }
}

impl Beats {
    /// The next heartbeat, if it is due at `now`, which is `wall` by the wall clock.
    pub(super) fn next_due(&mut self, now: RawNanos, wall: Wall, running: u32) -> Option<Beat> {
        if self.next_at.is_some_and(|next_at| now.0 < next_at.0) {
            return None;
        }
        self.next_at = Some(RawNanos(now.0 + BEAT_INTERVAL));
        self.sent_beat = Some((wall, now));
        self.unanswered_since.get_or_insert(now);
        let clock = self.clock(now);
        Some(Beat {
            sent: wall,
            running,
            clock,
            refusals: BTreeMap::new(),
        })
    }

    /// The clock offset to the controller's clock, as far as it is known by now.
    pub(super) fn clock(&self, now: RawNanos) -> Option<AgentClockOffset> {
        self.best_reading.map(|reading| reading.now(now))
    }

    /// Whether the controller has answered nothing for long: a connection does not show by itself that
    /// its other end has lost its power.
    pub(super) fn is_silent(&self, now: RawNanos) -> bool {
        let since = self.unanswered_since;
        since.is_some_and(|since| now.0.saturating_sub(since.0) > SILENCE_TIMEOUT)
    }

    /// The answer to the one that was sent at `sent`: the controller had it at `received`, by its own clock.
    pub(super) fn take_answer(&mut self, sent: Wall, received: Wall, now: RawNanos) {
        let Some((_, sent_at)) = self.sent_beat.filter(|(wall, _)| *wall == sent) else {
            return;
        };
        self.sent_beat = None;
        self.unanswered_since = None;
        let half_round_trip = now.0.saturating_sub(sent_at.0) / 2;
        let midpoint = sent.unix_nanos().saturating_add(half_round_trip);
        let clock = AgentClockOffset {
            offset: Span::from_nanos(midpoint.saturating_sub(received.unix_nanos())),
            bound: Span::from_nanos(half_round_trip),
        };
        let is_better = self.best_reading.is_none_or(|best| {
            let best = best.now(now);
            let difference = (best.offset - clock.offset).nanos().saturating_abs();
            // Both cannot be true where a clock was set in between.
            let was_clock_set = difference > best.bound.nanos().saturating_add(clock.bound.nanos());
            was_clock_set || clock.bound <= best.bound
        });
        if is_better {
            self.best_reading = Some(ClockReading { clock, at: now });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIFT_PPM: i64 = 100;

    const SECOND: i64 = 1_000_000_000;
    const MS: i64 = 1_000_000;

    fn wall(nanos: i64) -> Wall {
        Wall::from_unix_nanos(nanos)
    }

    /// The agent's clock is 3 s ahead of the controller's; the directions take this long.
    fn exchange_beat(beats: &mut Beats, at: i64, forward: i64, reverse: i64) {
        let agent_time = wall(at + 3 * SECOND);
        let beat = beats
            .next_due(RawNanos(at), agent_time, 0)
            .expect("it is due");
        beats.take_answer(
            beat.sent,
            wall(at + forward),
            RawNanos(at + forward + reverse),
        );
    }

    #[test]
    fn the_clock_offset_is_within_its_bound_for_asymmetric_delays() {
        for (forward, reverse) in [(MS, MS), (0, 40 * MS), (40 * MS, 0), (7 * MS, 13 * MS)] {
            let mut beats = Beats::default();
            exchange_beat(&mut beats, 0, forward, reverse);
            let clock = beats
                .next_due(RawNanos(BEAT_INTERVAL), wall(BEAT_INTERVAL), 0)
                .expect("due")
                .clock;
            let clock = clock.expect("it was answered");
            let difference = clock.offset.nanos() - 3 * SECOND;
            assert!(
                difference.abs() <= clock.bound.nanos(),
                "{forward} {reverse}: {clock:?}"
            );
            assert!(
                clock.bound.nanos()
                    <= i64::midpoint(forward, reverse) + BEAT_INTERVAL / 1_000_000 * DRIFT_PPM
            );
        }
    }

    /// But for the drift of the milliseconds that the exchange took.
    fn assert_near(bound: i64, expected: i64) {
        assert!((expected - 10_000..=expected).contains(&bound), "{bound}");
    }

    #[test]
    fn a_stepped_agent_clock_is_accepted_immediately() {
        let mut beats = Beats::default();
        exchange_beat(&mut beats, 0, MS, MS);
        // 100 ms further ahead, read within 5 ms.
        let agent_time = wall(BEAT_INTERVAL + 3 * SECOND + 100 * MS);
        let beat = beats
            .next_due(RawNanos(BEAT_INTERVAL), agent_time, 0)
            .expect("it is due");
        let (forward, reverse) = (5 * MS, 5 * MS);
        beats.take_answer(
            beat.sent,
            wall(BEAT_INTERVAL + forward),
            RawNanos(BEAT_INTERVAL + forward + reverse),
        );
        let clock = beats
            .clock(RawNanos(BEAT_INTERVAL + forward + reverse))
            .expect("known");
        let offset_error = clock.offset.nanos() - 3 * SECOND - 100 * MS;
        assert!(offset_error.abs() <= clock.bound.nanos(), "{clock:?}");
    }

    #[test]
    fn the_best_clock_reading_is_kept_until_its_aged_bound_is_worse() {
        let mut beats = Beats::default();
        exchange_beat(&mut beats, 0, MS, MS);
        // Within 5 s a bound of 1 ms became 1.5 ms: 20 ms are worse.
        exchange_beat(&mut beats, BEAT_INTERVAL, 20 * MS, 20 * MS);
        let bound = |beats: &mut Beats, at| {
            let beat = beats.next_due(RawNanos(at), wall(at), 0).expect("due");
            beat.clock.expect("known").bound.nanos()
        };
        assert_near(bound(&mut beats, 2 * BEAT_INTERVAL), 2 * MS);
        // After more than three minutes it is the better one.
        exchange_beat(&mut beats, 41 * BEAT_INTERVAL, 20 * MS, 20 * MS);
        assert_near(bound(&mut beats, 42 * BEAT_INTERVAL), 20 * MS + MS / 2);
    }

    #[test]
    fn a_controller_silent_for_20_s_is_disconnected() {
        let mut beats = Beats::default();
        exchange_beat(&mut beats, 0, MS, MS);
        for beat in 1..=5 {
            assert!(!beats.is_silent(RawNanos(beat * BEAT_INTERVAL)), "{beat}");
            let _ = beats.next_due(
                RawNanos(beat * BEAT_INTERVAL),
                wall(beat * BEAT_INTERVAL),
                0,
            );
        }
        assert!(!beats.is_silent(RawNanos(BEAT_INTERVAL + SILENCE_TIMEOUT)));
        assert!(beats.is_silent(RawNanos(BEAT_INTERVAL + SILENCE_TIMEOUT + 1)));
    }

    #[test]
    fn an_unexpected_answer_adds_no_clock_reading_to_a_beat() {
        let mut beats = Beats::default();
        beats.take_answer(wall(1), wall(2), RawNanos(3));
        let beat = beats.next_due(RawNanos(4), wall(4), 2).expect("due");
        assert_eq!((beat.clock, beat.running), (None, 2));
        assert!(
            beats.next_due(RawNanos(5), wall(5), 0).is_none(),
            "not before five seconds"
        );
    }
}
