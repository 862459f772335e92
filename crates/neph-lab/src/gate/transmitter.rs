//! The queue in front of a wire, and the one packet that is being put on it.
//!
//! Owns what waits, and until when the transmitter is busy. Time passes only when it is told: a
//! packet is taken out at the moment at which its transmission begins, however much later it is
//! asked.

use std::collections::VecDeque;

use neph_model::{BitRate, Span};

use super::shape::{QueueLimit, transmission_time};
use super::{Arrival, Moment};

/// One direction's transmitter.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    queue: VecDeque<Arrival>,
    /// Bytes in the queue; what is being sent is not in it.
    bytes: u64,
    busy_until: Moment,
}

impl Transmitter {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
            busy_until: Moment::DAWN,
        }
    }

    /// When the first of the queue begins to be sent.
    pub(super) fn next_start(&self) -> Option<Moment> {
        let first = self.queue.front()?;
        Some(self.busy_until.max(first.at))
    }

    /// Whether `packet` fits beside what waits already.
    pub(super) fn has_room(
        &self,
        packet: Arrival,
        (limit, rate): (QueueLimit, Option<BitRate>),
    ) -> bool {
        match limit {
            QueueLimit::Bytes(limit) => {
                let rate = rate.unwrap_or(BitRate(0));
                let sending = bits_in(self.busy_until - packet.at, rate) / 8;
                let waiting = sending + u128::from(self.bytes);
                waiting + u128::from(packet.length) <= u128::from(limit.0)
            }
            QueueLimit::Packets(limit) => {
                let sending = usize::from(self.busy_until > packet.at);
                u32::try_from(self.queue.len() + sending).unwrap_or(u32::MAX) < limit
            }
        }
    }

    pub(super) fn push(&mut self, packet: Arrival) {
        self.bytes += u64::from(packet.length);
        self.queue.push_back(packet);
    }

    /// Takes the first out of the queue, if there is one.
    pub(super) fn pop(&mut self) -> Option<Arrival> {
        let packet = self.queue.pop_front()?;
        self.bytes -= u64::from(packet.length);
        Some(packet)
    }

    /// Sends a packet of `length` bytes from `start` on; says when its last bit is on the wire.
    pub(super) fn send(&mut self, start: Moment, length: u32, rate: BitRate) -> Moment {
        self.busy_until = start + transmission_time(length, rate);
        self.busy_until
    }

    /// Whether it sends or has anything to send at `now`.
    pub(super) fn is_busy(&self, now: Moment) -> bool {
        !self.queue.is_empty() || self.busy_until > now
    }
}

fn bits_in(span: Span, rate: BitRate) -> u128 {
    let nanos = u128::try_from(span.nanos()).unwrap_or(0);
    nanos * u128::from(rate.0) / 1_000_000_000
}
