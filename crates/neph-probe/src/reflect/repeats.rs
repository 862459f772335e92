//! Detects packet loops of a STAMP session by its sequence numbers: a program that answers replies would
//! exchange packets with the reflector without end (CVE-2024-2169).
//!
//! Does not look at fields or source ports of packets: `neph_wire::stamp` and [`super::ports`] do.

use neph_model::{Instant, Local, Span};

/// Repeated requests in a row that are answered.
const CREDIT: u8 = 8;
/// Credit for a new number: a path that triples every packet closes no session.
const CREDIT_PER_NEW_NUMBER: u8 = 2;
/// Credit that a restart at 0 costs.
const RESTART_COST: u8 = 4;
/// A session that is silent for this long is in no loop: no path has so long a round trip.
const SILENCE_TIMEOUT: Span = Span::from_secs(1);
/// Remembered numbers up to the newest, so that reordered requests do not count as repeated.
const WINDOW: u32 = u128::BITS;

/// The numbers that one session sent, and the credit for repeated ones.
#[derive(Debug)]
pub(crate) struct Repeats {
    highest_seq: u32,
    /// Bit 0 is the newest number, bit 1 the one before.
    received: u128,
    latest_seq: u32,
    credit: u8,
    at: Instant<Local>,
}

/// The kind of a request's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    New,
    /// Received before, or too old to decide.
    Repeated,
    /// Another run of the sender.
    Beginning,
}

impl Repeats {
    /// For a new session.
    pub(crate) const fn new(now: Instant<Local>) -> Self {
        Self {
            highest_seq: 0,
            received: 0,
            latest_seq: 0,
            credit: CREDIT,
            at: now,
        }
    }

    /// When the session last sent something.
    pub(crate) const fn at(&self) -> Instant<Local> {
        self.at
    }

    /// Whether request `seq` is answered. After too many repeated ones nothing is, until the session has been
    /// silent. A loop ends with the first packet that is not answered.
    pub(crate) fn admit(&mut self, seq: u32, now: Instant<Local>) -> bool {
        if now - self.at >= SILENCE_TIMEOUT {
            *self = Self::new(now);
        }
        self.at = now;
        if self.credit == 0 {
            return false;
        }
        let number = self.number(seq);
        self.latest_seq = seq;
        self.credit = match number {
            Number::New => self
                .credit
                .saturating_add(CREDIT_PER_NEW_NUMBER)
                .min(CREDIT),
            Number::Repeated => self.credit - 1,
            Number::Beginning => self.credit.saturating_sub(RESTART_COST),
        };
        match number {
            Number::New => self.advance(seq),
            Number::Repeated => self.mark(seq),
            Number::Beginning => (self.highest_seq, self.received) = (seq, 1),
        }
        true
    }

    fn number(&self, seq: u32) -> Number {
        let distance = self.highest_seq.wrapping_sub(seq);
        if self.received == 0 || is_ahead(distance) {
            Number::New
        } else if distance < WINDOW && self.received >> distance & 1 == 0 {
            // It arrived after others that were sent after it.
            Number::New
        } else if seq == 0 && self.highest_seq != 0 {
            Number::Beginning
        } else if distance >= WINDOW && seq == self.latest_seq.wrapping_add(1) {
            // Its request 0 was lost.
            Number::Beginning
        } else {
            Number::Repeated
        }
    }

    fn advance(&mut self, seq: u32) {
        let distance = self.highest_seq.wrapping_sub(seq);
        if self.received == 0 {
            (self.highest_seq, self.received) = (seq, 1);
        } else if is_ahead(distance) {
            let steps = seq.wrapping_sub(self.highest_seq);
            self.received = self.received.checked_shl(steps).unwrap_or(0) | 1;
            self.highest_seq = seq;
        } else {
            self.mark(seq);
        }
    }

    fn mark(&mut self, seq: u32) {
        let distance = self.highest_seq.wrapping_sub(seq);
        self.received |= 1_u128.checked_shl(distance).unwrap_or(0);
    }
}

/// Whether such a distance is a number ahead of the newest one: numbers wrap.
const fn is_ahead(distance: u32) -> bool {
    distance > u32::MAX / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Instant<Local> {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// How many of these numbers are answered, one each millisecond.
    fn answered(numbers: impl IntoIterator<Item = u32>) -> usize {
        let mut repeats = Repeats::new(at(0));
        let admitted = numbers.into_iter().zip(1..);
        admitted
            .filter(|(seq, millis)| repeats.admit(*seq, at(*millis)))
            .count()
    }

    #[test]
    fn repeated_sequence_numbers_are_soon_left_unanswered() {
        for same in [0, 1, 7, u32::MAX] {
            assert_eq!(answered(std::iter::repeat_n(same, 1_000)), 9, "{same}");
        }
        let two = (0..1_000).map(|at| at % 2);
        assert!(answered(two) <= 10);
    }

    #[test]
    fn requests_are_answered_despite_duplicates_and_reordering() {
        assert_eq!(answered(0..1_000), 1_000);
        for copies in [2, 3] {
            let copied = (0..1_000).flat_map(|seq| std::iter::repeat_n(seq, copies));
            assert_eq!(answered(copied), 1_000 * copies);
        }
        // Each hundred comes in reverse order, then every second one later than the window.
        let reversed = (0..1_000).map(|seq| seq / 100 * 100 + 99 - seq % 100);
        assert_eq!(answered(reversed), 1_000);
        let late = (0..1_000).flat_map(|seq| [seq + 500, seq]);
        assert_eq!(answered(late), 2_000);
        assert_eq!(
            answered((0..2_000).map(|seq| (u32::MAX - 999).wrapping_add(seq))),
            2_000
        );
    }

    #[test]
    fn a_restarted_sender_is_answered() {
        assert_eq!(answered((0..50).chain(0..50).chain(0..50)), 150);
        let first_was_lost = (0..5_000).chain(1..5_000);
        assert_eq!(answered(first_was_lost), 5_000 + 4_999);
    }

    #[test]
    fn a_blocked_flow_is_answered_after_a_second_of_silence() {
        let mut repeats = Repeats::new(at(0));
        let open = (0..100)
            .filter(|millis| repeats.admit(5, at(*millis)))
            .count();
        assert_eq!(open, 9);
        assert!(!repeats.admit(6, at(1_098)), "not a whole second later");
        assert!(repeats.admit(6, at(2_098)));
    }

    proptest! {
        #[test]
        fn increasing_sequence_numbers_are_all_answered(
            steps in prop::collection::vec((1_u32..1_000_000, 0_i64..3_000), 1..300),
            first in any::<u32>(),
        ) {
            let (mut repeats, mut seq, mut time) = (Repeats::new(at(0)), first, 0);
            for (step, pause) in steps {
                time += pause;
                prop_assert!(repeats.admit(seq, at(time)));
                seq = seq.wrapping_add(step);
            }
        }
    }
}
