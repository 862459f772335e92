//! Owns the packets that wait for transmission, and how many bytes they have.

use std::collections::VecDeque;

use super::Arrival;

/// Packets in the order in which they came, without the one that is being sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    pub(super) packets: VecDeque<Arrival>,
    bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, packet: Arrival) {
        self.bytes += u64::from(packet.length);
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<Arrival> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.length);
        Some(packet)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
