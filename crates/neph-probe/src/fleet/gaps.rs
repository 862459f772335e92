//! How close to each other a fleet's messages may follow, whatever is due.
//!
//! Owns the rate cap's gap, and how fast who was held up catches up. When a message is due is the
//! rota's.

use neph_model::{Instant, Own, Span};

/// What a few sends at a time, after a sleep that was a little long, may be late together.
const FORGIVEN: Span = Span::from_micros(120);

#[derive(Debug)]
pub(super) struct Gaps {
    /// From one send to the next, whatever is due; those that go together may come so much earlier.
    least: Span,
    together: Span,
    /// When the last message was to go, or not much before it went; none did yet.
    slot: Option<Instant<Own>>,
}

impl Gaps {
    /// For a schedule with a message each `gap`, of which `at_once` go together, under a cap that
    /// allows one each `capped`.
    pub(super) fn new(gap: Span, at_once: u32, capped: Span) -> Self {
        Self {
            least: capped.max(catching_up(gap)),
            together: gap.times(i64::from(at_once) - 1),
            slot: None,
        }
    }

    /// When the message that is due then may go.
    pub(super) fn earliest(&self, due: Instant<Own>) -> Instant<Own> {
        self.next()
            .map_or(due, |next| due.max(next - self.together))
    }

    /// The message that was due then goes.
    pub(super) fn go(&mut self, due: Instant<Own>, at: Instant<Own>) {
        let slot = self.next().map_or(due, |next| due.max(next));
        self.slot = Some(slot.max(at - FORGIVEN));
    }

    fn next(&self) -> Option<Instant<Own>> {
        self.slot.map(|slot| slot + self.least)
    }
}

/// Who was held up catches up a quarter faster than the schedule, not all at once: a burst would
/// measure itself.
fn catching_up(gap: Span) -> Span {
    Span::from_nanos(gap.nanos() / 5 * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Span = Span::from_secs(5);

    fn at(millis: i64) -> Instant<Own> {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// When messages go that are due each gap from 20 ms on, where nothing may go before `held`.
    fn course(mut gaps: Gaps, held: i64, count: i64) -> Vec<i64> {
        let mut went = Vec::new();
        for due in (0..count).map(|n| at(20 + n * GAP.nanos() / 1_000_000)) {
            let goes = gaps.earliest(due).max(at(held));
            gaps.go(due, goes);
            went.push(goes.nanos() / 1_000_000);
        }
        went
    }

    #[test]
    fn who_was_not_held_up_sends_each_message_when_it_is_due() {
        let gaps = Gaps::new(GAP, 1, Span::from_micros(20));
        assert_eq!(course(gaps, 0, 4), [20, 5_020, 10_020, 15_020]);
    }

    #[test]
    fn who_was_held_up_catches_up_a_quarter_faster() {
        let gaps = Gaps::new(GAP, 1, Span::from_micros(20));
        let went = course(gaps, 2_500, 5);
        assert_eq!(went[..3], [2_500, 6_499, 10_499], "120 us are forgiven");
        assert_eq!(went[3..], [15_020, 20_020]);
    }

    #[test]
    fn the_cap_stands_above_what_is_due() {
        let gaps = Gaps::new(Span::from_micros(10), 1, Span::from_millis(1));
        let mut gaps = gaps;
        gaps.go(at(0), at(0));
        assert_eq!(gaps.earliest(at(0)), at(1));
    }
}
