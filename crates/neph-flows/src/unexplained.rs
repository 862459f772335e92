//! Time of flows at lasting latencies that were taken for queues, without queues that all flows shared. Sums
//! stays; detects neither levels nor queues.
//!
//! At the end of a stay its queue may not be known yet, so it waits for a minute.

use std::collections::VecDeque;

use neph_model::{Instant, Local, Span};

use crate::hidden::HiddenTimes;

/// After this time the queues during a stay are known.
const SETTLE_DELAY: Span = Span::from_secs(60);
/// Maximum number of waiting stays; beyond it, the oldest are compared with the queues known so far.
const MAX_QUEUE_LEN: usize = 1 << 16;

/// Consecutive messages at one latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// When the first of them was sent.
    pub(crate) from: Instant<Local>,
    /// When the last of them was.
    pub(crate) until: Instant<Local>,
    /// Number of messages.
    pub(crate) messages: u32,
}

/// The stays of the flows to one endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnexplainedTime {
    queue: VecDeque<Row>,
    time: Span,
}

impl UnexplainedTime {
    /// Adds a finished stay that was not reported as a path.
    pub(crate) fn push(&mut self, row: Row) {
        self.queue.push_back(row);
    }

    /// Whether stays should be compared with the queues now: about once a minute.
    pub(crate) fn is_due(&self, now: Instant<Local>) -> bool {
        let oldest = self.queue.front();
        oldest.is_some_and(|row| now - row.until > SETTLE_DELAY.times(2))
            || self.queue.len() > MAX_QUEUE_LEN
    }

    /// Compares the waiting stays with the times of queues; all of them if `now` is `None`.
    pub(crate) fn settle(
        &mut self,
        now: Option<Instant<Local>>,
        interval: Span,
        hidden_times: &HiddenTimes,
    ) {
        while let Some(row) = self.queue.front() {
            let is_settled = now.is_none_or(|now| now - row.until > SETTLE_DELAY);
            if !is_settled && self.queue.len() <= MAX_QUEUE_LEN / 2 {
                break;
            }
            let total = interval.times(row.messages.into());
            let hidden = hidden_times.hidden_between(row.from, row.until + interval);
            self.time += (total - hidden).max(Span::ZERO);
            self.queue.pop_front();
        }
    }

    /// The total over all flows, without stays that still wait.
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

    fn instant(seconds: i64) -> Instant<Local> {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn row(from: i64, until: i64) -> Row {
        Row {
            from: instant(from),
            until: instant(until),
            messages: u32::try_from(until - from + 1).unwrap(),
        }
    }

    /// A queue of a minute does not affect a stay that began after it.
    #[test]
    fn hidden_time_is_subtracted_only_from_the_stays_within_it() {
        let queues = [(instant(100), instant(158))];
        let hidden_times = HiddenTimes::new(&queues, Span::from_secs(2));
        let time = |rows: &[Row]| {
            let mut unexplained = UnexplainedTime::default();
            for row in rows {
                unexplained.push(*row);
            }
            unexplained.settle(None, Span::from_secs(1), &hidden_times);
            unexplained.time()
        };
        assert_eq!(time(&[row(200, 219)]), Span::from_secs(20));
        assert_eq!(time(&[row(120, 139)]), Span::ZERO);
        assert_eq!(time(&[row(150, 169)]), Span::from_secs(10));
        assert_eq!(time(&[row(90, 99), row(150, 169)]), Span::from_secs(20));
    }

    #[test]
    fn a_stay_is_settled_only_after_its_queue_is_known() {
        let mut unexplained = UnexplainedTime::default();
        unexplained.push(row(100, 119));
        assert!(!unexplained.is_due(instant(239)) && unexplained.is_due(instant(240)));
        unexplained.push(row(150, 169));
        let hidden_times = HiddenTimes::new(&[(instant(90), instant(140))], Span::ZERO);
        unexplained.settle(Some(instant(190)), Span::from_secs(1), &hidden_times);
        assert_eq!(unexplained.time(), Span::ZERO);
        unexplained.settle(None, Span::from_secs(1), &hidden_times);
        assert_eq!(unexplained.time(), Span::from_secs(20));
    }

    /// Every eighth of 128 flows is 50 ms higher for 20 s, where no other path is. A minute later all flows
    /// share a queue of 30 ms for 12 s, which is longer in total.
    #[test]
    fn a_queue_of_all_flows_reduces_no_stays_at_other_times() {
        let world = World {
            slots: 128,
            reshuffle_seconds: 0,
            seconds: 180,
            ..World::default()
        };
        let unexplained_and_hidden_time = |queue: std::ops::Range<i64>| {
            let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
            world.messages(&world.truth(), |message| {
                let mut message = *message;
                let second = message.sent.nanos() / 1_000_000_000;
                let is_alone = message.slot.0 % 8 == 0 && (60..80).contains(&second);
                let delay_ms = i64::from(is_alone) * 50 + i64::from(queue.contains(&second)) * 30;
                if let FleetOutcome::Reply(reply) = &mut message.outcome {
                    reply.round_trip += Span::from_millis(delay_ms);
                }
                digest.push(&message);
            });
            digest.finish();
            let view = digest.view();
            (view.pairs[0].unexplained, view.pairs[0].hidden.time)
        };
        let (alone_time, no_hidden_time) = unexplained_and_hidden_time(0..0);
        assert!(alone_time > Span::from_secs(16 * 18), "{alone_time}");
        let (time_with_queue, hidden) = unexplained_and_hidden_time(130..142);
        assert!(no_hidden_time < hidden && alone_time < hidden, "{hidden}");
        assert!(
            (time_with_queue - alone_time).abs() < Span::from_secs(32),
            "{time_with_queue} {alone_time}"
        );
    }
}
