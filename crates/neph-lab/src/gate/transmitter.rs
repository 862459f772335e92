//! The queue in front of a wire, and the packet in transmission.
//!
//! Owns the waiting packets, and the end of the current transmission. Time advances only by calls. A packet
//! is taken at the moment at which its transmission begins, even if the call comes later.

use neph_model::{BitRate, Span};

use super::codel::{CoDelState, DequeuedPacket};
use super::fifo::Fifo;
use super::shape::{Discipline, QueueLimit, transmission_time};
use super::{Arrival, Moment};

/// The transmitter of one direction.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    queue: Fifo,
    codel: CoDelState,
    busy_until: Moment,
}

impl Transmitter {
    pub(super) fn new() -> Self {
        Self {
            queue: Fifo::default(),
            codel: CoDelState::default(),
            busy_until: Moment::DISTANT_PAST,
        }
    }

    /// When the transmission of the first packet in the queue begins.
    pub(super) fn next_transmission_start(&self) -> Option<Moment> {
        let first = self.queue.packets.front()?;
        Some(self.busy_until.max(first.at))
    }

    /// Whether `packet` fits into the queue.
    pub(super) fn has_room(
        &self,
        packet: Arrival,
        limit: QueueLimit,
        rate: Option<BitRate>,
    ) -> bool {
        match limit {
            QueueLimit::Bytes(limit) => {
                let rate = rate.unwrap_or(BitRate(0));
                let unsent = transmitted_bits(self.busy_until - packet.at, rate) / 8;
                let queued = unsent + u128::from(self.queue.bytes());
                queued + u128::from(packet.length) <= u128::from(limit.0)
            }
            QueueLimit::Packets(limit) => {
                let unsent = usize::from(self.busy_until > packet.at);
                u32::try_from(self.queue.packets.len() + unsent).unwrap_or(u32::MAX) < limit
            }
        }
    }

    pub(super) fn push(&mut self, packet: Arrival) {
        self.queue.push(packet);
    }

    /// Takes the packet that is sent from `start` on, and those that are dropped instead.
    pub(super) fn take(&mut self, start: Moment, discipline: Discipline) -> DequeuedPacket {
        match discipline {
            Discipline::DropTail => DequeuedPacket {
                dropped: 0,
                packet: self.queue.pop(),
            },
            Discipline::CoDel(parameters) => self.codel.dequeue(&mut self.queue, start, parameters),
        }
    }

    /// Sends a packet of `length` bytes from `start` on; returns when its last bit is on the wire.
    pub(super) fn send(&mut self, start: Moment, length: u32, rate: BitRate) -> Moment {
        self.busy_until = start + transmission_time(length, rate);
        self.busy_until
    }

    /// Whether it transmits, or has a packet to transmit, at `now`.
    pub(super) fn is_busy(&self, now: Moment) -> bool {
        !self.queue.packets.is_empty() || self.busy_until > now
    }
}

fn transmitted_bits(span: Span, rate: BitRate) -> u128 {
    let nanos = u128::try_from(span.nanos()).unwrap_or(0);
    nanos * u128::from(rate.0) / 1_000_000_000
}
