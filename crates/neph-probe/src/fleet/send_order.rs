//! The order of sends: spread evenly over the interval, with flows that follow each other in a slot.
//!
//! Dense sends go a few together: to wake costs several times a send, and planned together none is late.
//!
//! Arithmetic only. Messages of a fleet are numbered: message `number` is message `number / slots` of slot
//! `number mod slots`.

use neph_model::{Fleet, Instant, Local, Slot, Span};

/// Most sends together: more would delay each other in the network.
const MAX_TOGETHER: i64 = 4;
/// A message is sent at most this much earlier than alone.
const MAX_SHIFT: Span = Span::from_micros(400);
/// It is also sent no earlier than this part of the interval: one in so many.
const SHIFT_PARTS: i64 = 500;

/// A fleet's order of sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendOrder {
    slots: u64,
    interval: Span,
    /// How many messages go together.
    together: u32,
    /// How many messages a flow has before its slot takes a new port.
    life: Option<u64>,
    /// Number of messages in all.
    total: Option<u64>,
}

/// A message's place in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) slot: Slot,
    /// Its number within the slot.
    pub(crate) round: u64,
    /// Its number within its flow.
    pub(crate) seq: u64,
}

impl Turn {
    /// The round in which its flow began.
    pub(crate) const fn began(&self) -> u64 {
        self.round - self.seq
    }
}

impl SendOrder {
    /// The order of `fleet`, each slot with `count` messages.
    pub(crate) fn new(fleet: &Fleet, count: Option<u64>) -> Self {
        let interval = fleet.interval.nanos().max(1);
        let slots = u64::from(fleet.slots.max(1));
        let life = |lifetime: Span| {
            let messages = lifetime.nanos().max(1).unsigned_abs();
            messages.div_ceil(interval.unsigned_abs())
        };
        Self {
            slots,
            interval: Span::from_nanos(interval),
            together: together(interval, interval / i64::from(fleet.slots.max(1))),
            life: fleet.lifetime.map(life),
            total: count.map(|count| count.saturating_mul(slots)),
        }
    }

    /// When message `number` is due in a fleet that began at `start`; `None` after the last.
    pub(crate) fn due(&self, start: Instant<Local>, number: u64) -> Option<Instant<Local>> {
        if self.total.is_some_and(|total| number >= total) {
            return None;
        }
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let rounds_time = self.interval.times(signed(number / self.slots));
        let (interval, slots) = (self.interval.nanos(), signed(self.slots));
        let slot = number % self.slots;
        let slot = signed(slot - slot % u64::from(self.together));
        // The fast calculation is valid for intervals below a day, and this runs for each message.
        let part = match interval.checked_mul(slot) {
            Some(product) => product / slots,
            None => interval / slots * slot,
        };
        let part = Span::from_nanos(part);
        Some(start + rounds_time + part)
    }

    /// No message from `number` on is due.
    pub(crate) const fn end_at(&mut self, number: u64) {
        self.total = Some(number);
    }

    /// The turn of message `number`. Slots do not replace their flows all at once: each is a part of a flow's
    /// life ahead of the slot before, so a first flow may be shorter.
    pub(crate) fn turn(&self, number: u64) -> Turn {
        let (round, slot) = (number / self.slots, number % self.slots);
        let seq = match self.life {
            None => round,
            Some(life) => {
                let ahead = u128::from(slot) * u128::from(life) / u128::from(self.slots);
                let ahead = u64::try_from(ahead).unwrap_or(0);
                let through = round + ahead;
                if through < life {
                    round
                } else {
                    through % life
                }
            }
        };
        Turn {
            slot: Slot(u32::try_from(slot).unwrap_or(u32::MAX)),
            round,
            seq,
        }
    }

    /// The number of a slot's message.
    pub(crate) const fn number(&self, slot: Slot, round: u64) -> u64 {
        round * self.slots + slot.0 as u64
    }

    /// The latest round of a slot, when `next` is the next message of the fleet.
    pub(crate) const fn latest_round(&self, slot: Slot, next: u64) -> u64 {
        let rounds = next / self.slots;
        if next % self.slots > slot.0 as u64 {
            rounds
        } else {
            rounds.saturating_sub(1)
        }
    }

    /// How many messages are due at the same moment at most.
    pub(crate) const fn together(&self) -> u32 {
        self.together
    }

    /// Mean time between two sends.
    pub(crate) fn gap(&self) -> Span {
        Span::from_nanos(self.interval.nanos() / i64::try_from(self.slots).unwrap_or(1))
    }
}

/// How many go together where sends are `gap` apart, both in nanoseconds.
fn together(interval: i64, gap: i64) -> u32 {
    let shift = MAX_SHIFT.nanos().min(interval / SHIFT_PARTS);
    let others = (shift / gap.max(1)).min(MAX_TOGETHER - 1);
    u32::try_from(1 + others).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use neph_model::ProbeKind;
    use proptest::prelude::*;

    use super::*;

    fn fleet(slots: u32, interval: Span, lifetime: Option<Span>) -> Fleet {
        Fleet {
            probe: ProbeKind::Udp,
            slots,
            endpoints: Vec::new(),
            interval,
            lifetime,
            criteria: None,
        }
    }

    #[test]
    fn four_slots_share_an_interval_evenly() {
        let send_order = SendOrder::new(&fleet(4, Span::from_millis(200), None), Some(2));
        let start = Instant::from_nanos(0);
        let due = |number| {
            send_order
                .due(start, number)
                .map(|at| at.nanos() / 1_000_000)
        };
        let due_times: Vec<_> = (0..9).map(due).collect();
        let expected = [0, 50, 100, 150, 200, 250, 300, 350].map(Some);
        assert_eq!(due_times[..8], expected);
        assert_eq!(due_times[8], None);
    }

    #[test]
    fn pairing_two_sends_moves_no_other_send() {
        let send_order = SendOrder::new(&fleet(512, Span::from_millis(200), None), None);
        let start = Instant::from_nanos(0);
        let due = |number| send_order.due(start, number).map(Instant::nanos);
        let due_times: Vec<_> = (0..5).filter_map(due).collect();
        assert_eq!(due_times, [0, 0, 781_250, 781_250, 1_562_500]);
        assert_eq!(due(512), Some(200_000_000));
        // One every 2 ms, each alone; and 50,000 a second, at most a few together.
        for (slots, together) in [(512, 1), (50_000, 4)] {
            let send_order = SendOrder::new(&fleet(slots, Span::from_secs(1), None), None);
            assert_eq!(send_order.together(), together);
        }
    }

    #[test]
    fn slots_replace_their_flows_one_after_the_other() {
        let lifetime = Some(Span::from_millis(400));
        let send_order = SendOrder::new(&fleet(4, Span::from_millis(100), lifetime), None);
        let seqs = |slot| -> Vec<u64> {
            let rounds = (0..10).map(|round| send_order.turn(send_order.number(Slot(slot), round)));
            rounds.map(|turn| turn.seq).collect()
        };
        assert_eq!(seqs(0), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
        assert_eq!(seqs(1), [0, 1, 2, 0, 1, 2, 3, 0, 1, 2]);
        assert_eq!(seqs(3), [0, 0, 1, 2, 3, 0, 1, 2, 3, 0]);
    }

    proptest! {
        #[test]
        fn message_numbers_and_turns_map_one_to_one(
            slots in 1_u32..60_000, life in 1_i64..1_000, number in 0_u64..1 << 40,
        ) {
            let lifetime = Some(Span::from_secs(life));
            let send_order = SendOrder::new(&fleet(slots, Span::from_secs(1), lifetime), None);
            let turn = send_order.turn(number);
            prop_assert_eq!(send_order.number(turn.slot, turn.round), number);
            prop_assert!(turn.seq <= turn.round && turn.seq < life.unsigned_abs());
            prop_assert_eq!(send_order.latest_round(turn.slot, number + 1), turn.round);
            let begins = send_order.turn(send_order.number(turn.slot, turn.began()));
            prop_assert_eq!(begins.seq, 0);
        }

        #[test]
        fn each_send_is_near_its_evenly_spaced_time(
            slots in 1_u32..60_000, millis in 1_i64..10_000, number in 0_u64..1 << 32,
        ) {
            let interval = Span::from_millis(millis);
            let send_order = SendOrder::new(&fleet(slots, interval, None), None);
            let start = Instant::from_nanos(0);
            let (round, slot) = (number / u64::from(slots), number % u64::from(slots));
            let even = i128::from(interval.nanos())
                * (i128::from(round) * i128::from(slots) + i128::from(slot))
                / i128::from(slots);
            let due = i128::from(send_order.due(start, number).expect("no end").nanos());
            let early = even - due;
            prop_assert!((0..=400_000.min(interval.nanos().into())).contains(&early), "{early}");
            prop_assert!(early <= i128::from(interval.nanos()) / 500 + 1, "{early}");
            let next = send_order.due(start, number + u64::from(send_order.together()));
            prop_assert!(next.expect("no end") > send_order.due(start, number).expect("no end"));
        }
    }
}
