//! The least gap between a fleet's messages, even if more are due.
//!
//! Owns the rate cap's gap, and the pace of catching up after a delay. Does not own when a message is due
//! (rota).

use neph_model::{Instant, Local, Span};

/// Tolerated lateness of a few sends together after a sleep that was a little long.
const FORGIVEN: Span = Span::from_micros(120);

#[derive(Debug)]
pub(super) struct Gaps {
    /// From one send to the next, even if more are due. Messages that go together may be this much earlier.
    min_gap: Span,
    together: Span,
    /// The slot of the last message, at or shortly before its send; `None` before the first.
    slot: Option<Instant<Local>>,
}

impl Gaps {
    /// For a schedule with a message each `gap`, of which `at_once` go together, under a cap of one each
    /// `capped`.
    pub(super) fn new(gap: Span, at_once: u32, capped: Span) -> Self {
        Self {
            min_gap: capped.max(catching_up(gap)),
            together: gap.times(i64::from(at_once) - 1),
            slot: None,
        }
    }

    /// When the message due at this time may go.
    pub(super) fn earliest(&self, due: Instant<Local>) -> Instant<Local> {
        self.next()
            .map_or(due, |next| due.max(next - self.together))
    }

    /// The message due at this time is sent.
    pub(super) fn go(&mut self, due: Instant<Local>, at: Instant<Local>) {
        let slot = self.next().map_or(due, |next| due.max(next));
        self.slot = Some(slot.max(at - FORGIVEN));
    }

    fn next(&self) -> Option<Instant<Local>> {
        self.slot.map(|slot| slot + self.min_gap)
    }
}

/// After a delay, sends catch up a quarter faster than the schedule, not all at once: a burst would measure
/// itself.
fn catching_up(gap: Span) -> Span {
    Span::from_nanos(gap.nanos() / 5 * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Span = Span::from_secs(5);

    fn at(millis: i64) -> Instant<Local> {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Send times of messages due each gap from 20 ms on, if nothing may be sent before `held`.
    fn course(mut gaps: Gaps, hold_ns: i64, count: i64) -> Vec<i64> {
        let mut send_times = Vec::new();
        for due in (0..count).map(|n| at(20 + n * GAP.nanos() / 1_000_000)) {
            let send_time = gaps.earliest(due).max(at(hold_ns));
            gaps.go(due, send_time);
            send_times.push(send_time.nanos() / 1_000_000);
        }
        send_times
    }

    #[test]
    fn an_undelayed_fleet_sends_each_message_when_due() {
        let gaps = Gaps::new(GAP, 1, Span::from_micros(20));
        assert_eq!(course(gaps, 0, 4), [20, 5_020, 10_020, 15_020]);
    }

    #[test]
    fn a_delayed_fleet_catches_up_25_percent_faster() {
        let gaps = Gaps::new(GAP, 1, Span::from_micros(20));
        let send_times = course(gaps, 2_500, 5);
        assert_eq!(
            send_times[..3],
            [2_500, 6_499, 10_499],
            "120 us are forgiven"
        );
        assert_eq!(send_times[3..], [15_020, 20_020]);
    }

    #[test]
    fn the_rate_cap_overrides_due_times() {
        let gaps = Gaps::new(Span::from_micros(10), 1, Span::from_millis(1));
        let mut gaps = gaps;
        gaps.go(at(0), at(0));
        assert_eq!(gaps.earliest(at(0)), at(1));
    }
}
