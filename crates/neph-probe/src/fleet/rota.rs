//! Whose turn it is when: sends spread evenly over the interval, and flows that take turns in a lane.
//!
//! Where the next send is near, a few go together: to wake costs several times what a send does, and
//! planned so, neither is late.
//!
//! Arithmetic only. Messages of a fleet are numbered through: message `number` is message
//! `number / lanes` of lane `number mod lanes`.

use neph_model::{Fleet, Instant, Lane, Own, Span};

/// So many go together at most: more would wait for each other on their way.
const MOST_TOGETHER: i64 = 4;
/// A message goes so much earlier at most than it would alone, ...
const MOST_SHIFT: Span = Span::from_micros(400);
/// ... and by no more than one part in so many of the interval.
const SHIFT_PARTS: i64 = 500;

/// A fleet's order of sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rota {
    lanes: u64,
    interval: Span,
    /// How many messages go together.
    together: u32,
    /// How many messages a flow has before its lane takes a new port.
    life: Option<u64>,
    /// How many messages there are in all.
    total: Option<u64>,
}

/// A message's place in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) lane: Lane,
    /// Its number within the lane.
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

impl Rota {
    /// The order of `fleet`, each lane with `count` messages.
    pub(crate) fn new(fleet: &Fleet, count: Option<u64>) -> Self {
        let interval = fleet.interval.nanos().max(1);
        let lanes = u64::from(fleet.lanes.max(1));
        let life = |renewal: Span| {
            let messages = renewal.nanos().max(1).unsigned_abs();
            messages.div_ceil(interval.unsigned_abs())
        };
        Self {
            lanes,
            interval: Span::from_nanos(interval),
            together: together(interval, interval / i64::from(fleet.lanes.max(1))),
            life: fleet.renewal.map(life),
            total: count.map(|count| count.saturating_mul(lanes)),
        }
    }

    /// When message `number` is due in a fleet that began at `start`; `None` after the last.
    pub(crate) fn due(&self, start: Instant<Own>, number: u64) -> Option<Instant<Own>> {
        if self.total.is_some_and(|total| number >= total) {
            return None;
        }
        let signed = |whole: u64| i64::try_from(whole).unwrap_or(i64::MAX);
        let whole = self.interval.times(signed(number / self.lanes));
        let (interval, lanes) = (self.interval.nanos(), signed(self.lanes));
        let lane = number % self.lanes;
        let lane = signed(lane - lane % u64::from(self.together));
        // The short way holds for intervals below a day, and this is asked for each message.
        let part = match interval.checked_mul(lane) {
            Some(product) => product / lanes,
            None => interval / lanes * lane,
        };
        let part = Span::from_nanos(part);
        Some(start + whole + part)
    }

    /// Nothing is due from `number` on.
    pub(crate) const fn end_at(&mut self, number: u64) {
        self.total = Some(number);
    }

    /// Whose turn message `number` is. Lanes do not renew all at once: each is a part of a flow's
    /// life ahead of the one before it, so that a first flow may be shorter.
    pub(crate) fn turn(&self, number: u64) -> Turn {
        let (round, lane) = (number / self.lanes, number % self.lanes);
        let seq = match self.life {
            None => round,
            Some(life) => {
                let ahead = u128::from(lane) * u128::from(life) / u128::from(self.lanes);
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
            lane: Lane(u32::try_from(lane).unwrap_or(u32::MAX)),
            round,
            seq,
        }
    }

    /// The number of a lane's message.
    pub(crate) const fn number(&self, lane: Lane, round: u64) -> u64 {
        round * self.lanes + lane.0 as u64
    }

    /// The latest round of a lane, when `next` is the next message of the fleet.
    pub(crate) const fn latest_round(&self, lane: Lane, next: u64) -> u64 {
        let rounds = next / self.lanes;
        if next % self.lanes > lane.0 as u64 {
            rounds
        } else {
            rounds.saturating_sub(1)
        }
    }

    /// How many messages are due at the same moment at most.
    pub(crate) const fn together(&self) -> u32 {
        self.together
    }

    /// From one send to the next, on average.
    pub(crate) fn gap(&self) -> Span {
        Span::from_nanos(self.interval.nanos() / i64::try_from(self.lanes).unwrap_or(1))
    }
}

/// How many go together where sends lie `gap` apart, both in nanoseconds.
fn together(interval: i64, gap: i64) -> u32 {
    let shift = MOST_SHIFT.nanos().min(interval / SHIFT_PARTS);
    let others = (shift / gap.max(1)).min(MOST_TOGETHER - 1);
    u32::try_from(1 + others).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use neph_model::ProbeKind;
    use proptest::prelude::*;

    use super::*;

    fn fleet(lanes: u32, interval: Span, renewal: Option<Span>) -> Fleet {
        Fleet {
            probe: ProbeKind::Udp,
            lanes,
            endpoints: Vec::new(),
            interval,
            renewal,
            criteria: None,
        }
    }

    #[test]
    fn four_lanes_share_an_interval_evenly() {
        let rota = Rota::new(&fleet(4, Span::from_millis(200), None), Some(2));
        let start = Instant::from_nanos(0);
        let due = |number| rota.due(start, number).map(|at| at.nanos() / 1_000_000);
        let all: Vec<_> = (0..9).map(due).collect();
        let expected = [0, 50, 100, 150, 200, 250, 300, 350].map(Some);
        assert_eq!(all[..8], expected);
        assert_eq!(all[8], None);
    }

    #[test]
    fn two_of_many_go_together_and_nothing_else_moves() {
        let rota = Rota::new(&fleet(512, Span::from_millis(200), None), None);
        let start = Instant::from_nanos(0);
        let due = |number| rota.due(start, number).map(Instant::nanos);
        let all: Vec<_> = (0..5).filter_map(due).collect();
        assert_eq!(all, [0, 0, 781_250, 781_250, 1_562_500]);
        assert_eq!(due(512), Some(200_000_000));
        // One each 2 ms, each alone; and 50,000 a second, no more than a few.
        for (lanes, together) in [(512, 1), (50_000, 4)] {
            let rota = Rota::new(&fleet(lanes, Span::from_secs(1), None), None);
            assert_eq!(rota.together(), together);
        }
    }

    #[test]
    fn lanes_renew_one_after_the_other() {
        let renewal = Some(Span::from_millis(400));
        let rota = Rota::new(&fleet(4, Span::from_millis(100), renewal), None);
        let seqs = |lane| -> Vec<u64> {
            let rounds = (0..10).map(|round| rota.turn(rota.number(Lane(lane), round)));
            rounds.map(|turn| turn.seq).collect()
        };
        assert_eq!(seqs(0), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
        assert_eq!(seqs(1), [0, 1, 2, 0, 1, 2, 3, 0, 1, 2]);
        assert_eq!(seqs(3), [0, 0, 1, 2, 3, 0, 1, 2, 3, 0]);
    }

    proptest! {
        #[test]
        fn numbers_and_turns_are_two_names_of_one_thing(
            lanes in 1_u32..60_000, life in 1_i64..1_000, number in 0_u64..1 << 40,
        ) {
            let renewal = Some(Span::from_secs(life));
            let rota = Rota::new(&fleet(lanes, Span::from_secs(1), renewal), None);
            let turn = rota.turn(number);
            prop_assert_eq!(rota.number(turn.lane, turn.round), number);
            prop_assert!(turn.seq <= turn.round && turn.seq < life.unsigned_abs());
            prop_assert_eq!(rota.latest_round(turn.lane, number + 1), turn.round);
            let begins = rota.turn(rota.number(turn.lane, turn.began()));
            prop_assert_eq!(begins.seq, 0);
        }

        #[test]
        fn no_send_is_far_from_where_an_even_spread_has_it(
            lanes in 1_u32..60_000, millis in 1_i64..10_000, number in 0_u64..1 << 32,
        ) {
            let interval = Span::from_millis(millis);
            let rota = Rota::new(&fleet(lanes, interval, None), None);
            let start = Instant::from_nanos(0);
            let (round, lane) = (number / u64::from(lanes), number % u64::from(lanes));
            let even = i128::from(interval.nanos())
                * (i128::from(round) * i128::from(lanes) + i128::from(lane))
                / i128::from(lanes);
            let due = i128::from(rota.due(start, number).expect("no end").nanos());
            let early = even - due;
            prop_assert!((0..=400_000.min(interval.nanos().into())).contains(&early), "{early}");
            prop_assert!(early <= i128::from(interval.nanos()) / 500 + 1, "{early}");
            let next = rota.due(start, number + u64::from(rota.together()));
            prop_assert!(next.expect("no end") > rota.due(start, number).expect("no end"));
        }
    }
}
