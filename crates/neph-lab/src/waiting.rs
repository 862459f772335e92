//! The packets on a link that have not left yet, in the order in which they are due.
//!
//! Owns their bytes (in slots that are used again) and the heap. Does not decide when they leave
//! and does not send them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use neph_sys::ring::LONGEST_FRAME;

use crate::counters::Direction;
use crate::gate::Moment;
use crate::truth::Passing;

/// Slots made at the start; more are made as needed.
const FIRST_SLOTS: usize = 512;
/// The most slots: 128 MiB, or 320 ms at 200,000 packets/s.
const MOST_SLOTS: usize = 65_536;

/// A packet that waits to leave.
#[derive(Debug)]
pub(crate) struct Packet {
    /// Which way it goes.
    pub(crate) direction: Direction,
    /// What the truth will say about it, if it is among those recorded.
    pub(crate) passing: Option<Passing>,
    length: usize,
    bytes: Box<[u8; LONGEST_FRAME]>,
}

impl Packet {
    /// The frame, Ethernet header first.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// All packets that wait on one link.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Due moment, then order of arrival (so that equals leave in order), then slot.
    heap: BinaryHeap<Reverse<(Moment, u64, usize)>>,
    slots: Vec<Packet>,
    free: Vec<usize>,
    arrived: u64,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::with_capacity(MOST_SLOTS),
            slots: (0..FIRST_SLOTS).map(|_| empty()).collect(),
            free: (0..FIRST_SLOTS).collect(),
            arrived: 0,
        }
    }

    /// Keeps a copy of `frame` until `due`; false when there is no room for it.
    pub(crate) fn keep(
        &mut self,
        due: Moment,
        frame: &[u8],
        (direction, passing): (Direction, Option<Passing>),
    ) -> bool {
        let Some(slot) = self.free.pop().or_else(|| self.grow()) else {
            return false;
        };
        let packet = &mut self.slots[slot];
        packet.direction = direction;
        packet.passing = passing;
        packet.length = frame.len();
        packet.bytes[..frame.len()].copy_from_slice(frame);
        self.arrived += 1;
        self.heap.push(Reverse((due, self.arrived, slot)));
        true
    }

    /// When the next packet is due.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse((due, _, _))| *due)
    }

    /// Takes the next packet out; its bytes stay readable until the next [`Self::keep`].
    pub(crate) fn take(&mut self) -> Option<(Moment, &Packet)> {
        let Reverse((due, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        Some((due, &self.slots[slot]))
    }

    fn grow(&mut self) -> Option<usize> {
        let slot = self.slots.len();
        (slot < MOST_SLOTS).then(|| self.slots.push(empty()))?;
        Some(slot)
    }
}

fn empty() -> Packet {
    // Touched here, so that no page fault delays the first packet in it.
    let bytes = Box::new([1; LONGEST_FRAME]);
    Packet {
        direction: Direction::AToB,
        passing: None,
        length: 0,
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_when_due_and_equals_in_order() {
        let mut waiting = Waiting::new();
        for (due, byte) in [(30, 1), (10, 2), (30, 3), (20, 4)] {
            assert!(waiting.keep(Moment(due), &[byte; 60], (Direction::AToB, None)));
        }
        assert_eq!(waiting.next_due(), Some(Moment(10)));
        let order: Vec<u8> =
            std::iter::from_fn(|| waiting.take().map(|(_, p)| p.frame()[0])).collect();
        assert_eq!(order, [2, 4, 1, 3]);
        assert_eq!(waiting.next_due(), None);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_slots_are_used_again() {
        let mut waiting = Waiting::new();
        let mut keep = |due| waiting.keep(Moment(due), &[0; 60], (Direction::BToA, None));
        assert!((0..65_536).all(&mut keep));
        assert!(!keep(0));
        assert!(waiting.take().is_some());
        assert!(waiting.keep(Moment(0), &[0; 60], (Direction::BToA, None)));
    }
}
