//! The queue in front of a wire, and the one packet that is being put on it.
//!
//! Owns what waits, and until when the transmitter is busy. Time passes only when it is told: a
//! packet is taken out at the moment at which its transmission begins, however much later it is
//! asked.

use neph_model::{BitRate, Span};

use super::codel::{Controller, Taken};
use super::fifo::Fifo;
use super::shape::{Discipline, QueueLimit, transmission_time};
use super::{Arrival, Moment};

/// One direction's transmitter.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    queue: Fifo,
    controller: Controller,
    busy_until: Moment,
}

impl Transmitter {
    pub(super) fn new() -> Self {
        Self {
            queue: Fifo::default(),
            controller: Controller::default(),
            busy_until: Moment::DAWN,
        }
    }

    /// When the first of the queue begins to be sent.
    pub(super) fn next_start(&self) -> Option<Moment> {
        let first = self.queue.packets.front()?;
        Some(self.busy_until.max(first.at))
    }

    /// Whether `packet` fits beside what waits already.
    pub(super) fn has_room(
        &self,
        packet: Arrival,
        limit: QueueLimit,
        rate: Option<BitRate>,
    ) -> bool {
        match limit {
            QueueLimit::Bytes(limit) => {
                let rate = rate.unwrap_or(BitRate(0));
                let sending = bits_in(self.busy_until - packet.at, rate) / 8;
                let waiting = sending + u128::from(self.queue.bytes());
                waiting + u128::from(packet.length) <= u128::from(limit.0)
            }
            QueueLimit::Packets(limit) => {
                let sending = usize::from(self.busy_until > packet.at);
                u32::try_from(self.queue.packets.len() + sending).unwrap_or(u32::MAX) < limit
            }
        }
    }

    pub(super) fn push(&mut self, packet: Arrival) {
        self.queue.push(packet);
    }

    /// Takes out what is to be sent from `start` on, and what is dropped instead.
    pub(super) fn take(&mut self, start: Moment, discipline: Discipline) -> Taken {
        match discipline {
            Discipline::DropTail => Taken {
                dropped: 0,
                packet: self.queue.pop(),
            },
            Discipline::CoDel(asked) => self.controller.dequeue(&mut self.queue, start, asked),
        }
    }

    /// Sends a packet of `length` bytes from `start` on; says when its last bit is on the wire.
    pub(super) fn send(&mut self, start: Moment, length: u32, rate: BitRate) -> Moment {
        self.busy_until = start + transmission_time(length, rate);
        self.busy_until
    }

    /// Whether it sends or has anything to send at `now`.
    pub(super) fn is_busy(&self, now: Moment) -> bool {
        !self.queue.packets.is_empty() || self.busy_until > now
    }
}

fn bits_in(span: Span, rate: BitRate) -> u128 {
    let nanos = u128::try_from(span.nanos()).unwrap_or(0);
    nanos * u128::from(rate.0) / 1_000_000_000
}
