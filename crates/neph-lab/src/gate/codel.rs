//! Controlled delay: a queue that drops at its head once packets have stood too long for too long.
//!
//! RFC 8289, section 5, in its words: `dodequeue`, `control_law`. Owns the state of one queue. Told
//! the moment at which the transmitter would take the next packet, it says which one that is.

use neph_model::Span;

use super::fifo::Fifo;
use super::frame::FULL_FRAME;
use super::{Arrival, Moment};

/// How much standing is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// The standing that is fine: 5 ms in the RFC.
    pub target: Span,
    /// For how long it may be more before packets are dropped: 100 ms in the RFC, about the worst
    /// round trip.
    pub interval: Span,
}

impl Default for CoDel {
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
        }
    }
}

/// The state of one queue; the RFC's variables by its names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Controller {
    first_above_time: Option<Moment>,
    drop_next: Moment,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

/// What the transmitter takes: how many were dropped at the head, and the one behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) dropped: u32,
    pub(super) packet: Option<Arrival>,
}

impl Controller {
    /// The packet that is sent from `now` on.
    pub(super) fn dequeue(&mut self, queue: &mut Fifo, now: Moment, asked: CoDel) -> Taken {
        let mut dropped = 0;
        let (mut packet, mut ok_to_drop) = self.dodequeue(queue, now, asked);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                dropped += 1;
                self.count += 1;
                (packet, ok_to_drop) = self.dodequeue(queue, now, asked);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, self.count, asked);
                }
            }
        } else if ok_to_drop {
            dropped += 1;
            (packet, _) = self.dodequeue(queue, now, asked);
            self.dropping = true;
            // Where it dropped not long ago, it goes on at about the rate that controlled the
            // queue then.
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = now - self.drop_next < asked.interval.times(16);
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = control_law(now, self.count, asked);
            self.lastcount = self.count;
        }
        Taken { dropped, packet }
    }

    /// The packet at the head, and whether the queue has been above the target for an interval.
    fn dodequeue(
        &mut self,
        queue: &mut Fifo,
        now: Moment,
        asked: CoDel,
    ) -> (Option<Arrival>, bool) {
        let Some(packet) = queue.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        let sojourn = now - packet.at;
        if sojourn < asked.target || queue.bytes() <= u64::from(FULL_FRAME) {
            self.first_above_time = None;
            return (Some(packet), false);
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + asked.interval);
                (Some(packet), false)
            }
            Some(first_above_time) => (Some(packet), now >= first_above_time),
        }
    }
}

/// When to drop next: the more were dropped, the sooner.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a square root of a small number needs no last nanosecond"
)]
fn control_law(t: Moment, count: u32, asked: CoDel) -> Moment {
    let step = asked.interval.nanos() as f64 / f64::from(count.max(1)).sqrt();
    t + Span::from_nanos(step as i64)
}

#[cfg(test)]
#[path = "codel/tests.rs"]
mod tests;
