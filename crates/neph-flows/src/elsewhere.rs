//! For how long flows lay at latencies that lasted and were taken for queues, without the time of
//! queues that all flows shared. Adds up stays; finds neither levels nor queues.
//!
//! When a stay is over, the queue that it was in may not be known yet: it waits for a minute.

use std::collections::VecDeque;

use neph_model::{Instant, Own, Span};

use crate::blind::Blind;

/// So long after a stay the queues of its time are known.
const KNOWN: Span = Span::from_secs(60);
/// Stays that wait at most; of more, the oldest are held against the queues known so far.
const MOST: usize = 1 << 16;

/// Messages in a row at one latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// When the first of them was sent.
    pub(crate) from: Instant<Own>,
    /// When the last of them was.
    pub(crate) until: Instant<Own>,
    /// How many.
    pub(crate) messages: u32,
}

/// The stays of the flows to one endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elsewhere {
    waiting: VecDeque<Row>,
    time: Span,
}

impl Elsewhere {
    /// A stay that is over and was told as no path.
    pub(crate) fn push(&mut self, row: Row) {
        self.waiting.push_back(row);
    }

    /// Whether it is time to hold stays against the queues: about once a minute.
    pub(crate) fn is_due(&self, now: Instant<Own>) -> bool {
        let oldest = self.waiting.front();
        oldest.is_some_and(|row| now - row.until > KNOWN.times(2)) || self.waiting.len() > MOST
    }

    /// Holds against the queues' times what has waited; all of it without a moment.
    pub(crate) fn settle(&mut self, now: Option<Instant<Own>>, interval: Span, queued: &Blind) {
        while let Some(row) = self.waiting.front() {
            let is_known = now.is_none_or(|now| now - row.until > KNOWN);
            if !is_known && self.waiting.len() <= MOST / 2 {
                break;
            }
            let all = interval.times(row.messages.into());
            let hidden = queued.within(row.from, row.until + interval);
            self.time += (all - hidden).max(Span::ZERO);
            self.waiting.pop_front();
        }
    }

    /// The time, of all flows together; less what still waits.
    pub(crate) const fn time(&self) -> Span {
        self.time
    }
}

#[cfg(test)]
mod tests {
    use neph_model::FleetOutcome;

    use super::*;
    use crate::digest::Digest;
    use crate::settings::Settings;
    use crate::world::World;

    fn at(seconds: i64) -> Instant<Own> {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn row(from: i64, until: i64) -> Row {
        Row {
            from: at(from),
            until: at(until),
            messages: u32::try_from(until - from + 1).unwrap(),
        }
    }

    /// A queue of a minute says nothing of a stay that began when it was over.
    #[test]
    fn what_queues_hid_is_left_out_of_the_stays_that_lay_in_them_only() {
        let queues = [(at(100), at(158))];
        let blind = Blind::new(&queues, Span::from_secs(2));
        let time = |rows: &[Row]| {
            let mut elsewhere = Elsewhere::default();
            for row in rows {
                elsewhere.push(*row);
            }
            elsewhere.settle(None, Span::from_secs(1), &blind);
            elsewhere.time()
        };
        assert_eq!(time(&[row(200, 219)]), Span::from_secs(20));
        assert_eq!(time(&[row(120, 139)]), Span::ZERO);
        assert_eq!(time(&[row(150, 169)]), Span::from_secs(10));
        assert_eq!(time(&[row(90, 99), row(150, 169)]), Span::from_secs(20));
    }

    #[test]
    fn a_stay_waits_until_the_queue_that_it_was_in_is_known() {
        let mut elsewhere = Elsewhere::default();
        elsewhere.push(row(100, 119));
        assert!(!elsewhere.is_due(at(239)) && elsewhere.is_due(at(240)));
        elsewhere.push(row(150, 169));
        let queued = Blind::new(&[(at(90), at(140))], Span::ZERO);
        elsewhere.settle(Some(at(190)), Span::from_secs(1), &queued);
        assert_eq!(elsewhere.time(), Span::ZERO);
        elsewhere.settle(None, Span::from_secs(1), &queued);
        assert_eq!(elsewhere.time(), Span::from_secs(20));
    }

    /// Every eighth of 128 flows is 50 ms up for 20 s, where no other path is; a queue of 30 ms in
    /// front of all flows stands for 12 s a minute later, which is longer for all of them together.
    #[test]
    fn a_queue_of_all_flows_takes_nothing_from_stays_at_other_times() {
        let world = World {
            lanes: 128,
            reshuffle: 0,
            seconds: 180,
            ..World::default()
        };
        let taken_for_queues = |queue: std::ops::Range<i64>| {
            let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
            world.messages(&world.truth(), |message| {
                let mut message = *message;
                let second = message.sent.nanos() / 1_000_000_000;
                let alone = message.lane.0 % 8 == 0 && (60..80).contains(&second);
                let late = i64::from(alone) * 50 + i64::from(queue.contains(&second)) * 30;
                if let FleetOutcome::Reply(reply) = &mut message.outcome {
                    reply.round_trip += Span::from_millis(late);
                }
                digest.push(&message);
            });
            digest.finish();
            let view = digest.view();
            (view.pairs[0].elsewhere, view.pairs[0].hidden.time)
        };
        let (alone, none) = taken_for_queues(0..0);
        assert!(alone > Span::from_secs(16 * 18), "{alone}");
        let (with_a_queue, hidden) = taken_for_queues(130..142);
        assert!(none < hidden && alone < hidden, "{hidden}");
        assert!(
            (with_a_queue - alone).abs() < Span::from_secs(32),
            "{with_a_queue} {alone}"
        );
    }
}
