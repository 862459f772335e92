//! CoDel (controlled delay): drops packets at the head of a queue if they have waited above the target for an
//! interval.
//!
//! RFC 8289, section 5, with its names: `dodequeue`, `control_law`. Owns the state of one queue. From the
//! moment at which the transmitter takes the next packet, it decides which packet that is.

use neph_model::Span;

use super::fifo::Fifo;
use super::frame::FULL_FRAME_BYTES;
use super::{Arrival, Moment};

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// The acceptable waiting time: 5 ms in the RFC.
    pub target: Span,
    /// How long it may be exceeded before packets are dropped: 100 ms in the RFC, about the worst round trip.
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

/// The state of one queue; the variables have the names of the RFC.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CoDelState {
    first_above_time: Option<Moment>,
    drop_next: Moment,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

/// The transmitter's next packet, and how many were dropped at the head before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DequeuedPacket {
    pub(super) dropped: u32,
    pub(super) packet: Option<Arrival>,
}

impl CoDelState {
    /// The packet that is sent from `now` on.
    pub(super) fn dequeue(
        &mut self,
        queue: &mut Fifo,
        now: Moment,
        parameters: CoDel,
    ) -> DequeuedPacket {
        let mut dropped = 0;
        let (mut packet, mut ok_to_drop) = self.dodequeue(queue, now, parameters);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                dropped += 1;
                self.count += 1;
                (packet, ok_to_drop) = self.dodequeue(queue, now, parameters);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, self.count, parameters);
                }
            }
        } else if ok_to_drop {
            dropped += 1;
            (packet, _) = self.dodequeue(queue, now, parameters);
            self.dropping = true;
            // If it dropped recently, it continues at about the rate that controlled the queue then.
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = now - self.drop_next < parameters.interval.times(16);
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = control_law(now, self.count, parameters);
            self.lastcount = self.count;
        }
        DequeuedPacket { dropped, packet }
    }

    /// The packet at the head, and whether the queue has been above the target for an interval.
    fn dodequeue(
        &mut self,
        queue: &mut Fifo,
        now: Moment,
        parameters: CoDel,
    ) -> (Option<Arrival>, bool) {
        let Some(packet) = queue.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        let sojourn = now - packet.at;
        if sojourn < parameters.target || queue.bytes() <= u64::from(FULL_FRAME_BYTES) {
            self.first_above_time = None;
            return (Some(packet), false);
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + parameters.interval);
                (Some(packet), false)
            }
            Some(first_above_time) => (Some(packet), now >= first_above_time),
        }
    }
}

/// When to drop next: sooner with more drops.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a square root of a small number needs no last nanosecond"
)]
fn control_law(t: Moment, count: u32, parameters: CoDel) -> Moment {
    let interval = parameters.interval.nanos() as f64 / f64::from(count.max(1)).sqrt();
    t + Span::from_nanos(interval as i64)
}

#[cfg(test)]
#[path = "codel/tests.rs"]
mod tests;
