//! The packets of a link that have not departed yet, ordered by due time.
//!
//! Owns their bytes (in reused slots) and the heap. Does not decide when they depart and does not send them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use neph_sys::ring::LONGEST_FRAME;

use crate::direction::Direction;
use crate::gate::Moment;
use crate::truth::{PacketHandling, PacketPassage};

/// Number of slots at the start; more are created as needed.
const FIRST_SLOTS: usize = 512;
/// Maximum number of slots: 128 MiB, or 320 ms at 200,000 packets/s.
const MAX_SLOTS: usize = 65_536;

/// A packet that waits for its departure.
#[derive(Debug)]
pub(crate) struct Packet {
    /// Its direction.
    pub(crate) direction: Direction,
    /// Its data for the truth record, if it is recorded.
    pub(crate) passage: Option<PacketPassage>,
    /// What is done to it.
    pub(crate) handling: PacketHandling,
    length: usize,
    bytes: Box<[u8; LONGEST_FRAME]>,
}

impl Packet {
    /// The frame, Ethernet header first.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// [`Self::frame`], mutable.
    pub(crate) fn frame_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

/// The storage of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(usize);

/// All packets that wait on one link.
#[derive(Debug)]
pub(crate) struct PacketQueue {
    /// Due time, then order of arrival (so that equal ones depart in order), then slot.
    heap: BinaryHeap<Reverse<(Moment, u64, Slot)>>,
    slots: Vec<Packet>,
    free_slots: Vec<Slot>,
    arrived: u64,
}

impl PacketQueue {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::with_capacity(MAX_SLOTS),
            slots: (0..FIRST_SLOTS).map(|_| empty_packet()).collect(),
            free_slots: (0..FIRST_SLOTS).map(Slot).collect(),
            arrived: 0,
        }
    }

    /// Stores a copy of `frame`, without a due time yet; `None` if there is no room.
    pub(crate) fn store(
        &mut self,
        frame: &[u8],
        direction: Direction,
        passage: Option<PacketPassage>,
    ) -> Option<Slot> {
        let slot = self.free_slots.pop().or_else(|| self.grow())?;
        let packet = self.packet(slot);
        packet.direction = direction;
        packet.passage = passage;
        packet.handling = PacketHandling::default();
        packet.length = frame.len();
        packet.bytes[..frame.len()].copy_from_slice(frame);
        Some(slot)
    }

    /// Stores a copy of the packet in `slot`; `None` if there is no room.
    pub(crate) fn store_copy(&mut self, slot: Slot) -> Option<Slot> {
        let copy = self.free_slots.pop().or_else(|| self.grow())?;
        // Two slots of one list: the bytes are copied out and in.
        let bytes = *self.packet(slot).bytes;
        let original = self.packet(slot);
        let (direction, passage) = (original.direction, original.passage);
        let (handling, length) = (original.handling, original.length);
        let packet = self.packet(copy);
        *packet.bytes = bytes;
        packet.direction = direction;
        packet.passage = passage;
        packet.length = length;
        packet.handling = PacketHandling {
            is_copy: true,
            ..handling
        };
        Some(copy)
    }

    /// The packet in `slot`.
    pub(crate) fn packet(&mut self, slot: Slot) -> &mut Packet {
        &mut self.slots[slot.0]
    }

    /// Sets the departure of the packet in `slot` to `due`.
    pub(crate) fn schedule(&mut self, slot: Slot, due: Moment) {
        self.arrived += 1;
        self.heap.push(Reverse((due, self.arrived, slot)));
    }

    /// Drops the packet in `slot`.
    pub(crate) fn release(&mut self, slot: Slot) {
        self.free_slots.push(slot);
    }

    /// When the next packet is due.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse((due, _, _))| *due)
    }

    /// Removes the next packet; its bytes stay readable until the next [`Self::store`].
    pub(crate) fn take_next(&mut self) -> Option<(Moment, &Packet)> {
        let Reverse((due, _, slot)) = self.heap.pop()?;
        self.free_slots.push(slot);
        Some((due, &self.slots[slot.0]))
    }

    fn grow(&mut self) -> Option<Slot> {
        let slot = self.slots.len();
        (slot < MAX_SLOTS).then(|| self.slots.push(empty_packet()))?;
        Some(Slot(slot))
    }
}

fn empty_packet() -> Packet {
    // Touched here, so that no page fault delays the first packet in it.
    let bytes = Box::new([1; LONGEST_FRAME]);
    Packet {
        direction: Direction::AToB,
        passage: None,
        handling: PacketHandling::default(),
        length: 0,
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTION: Direction = Direction::AToB;

    #[test]
    fn packets_leave_when_due_and_equal_times_in_order() {
        let mut queue = PacketQueue::new();
        for (due, byte) in [(30, 1), (10, 2), (30, 3), (20, 4)] {
            let slot = queue.store(&[byte; 60], DIRECTION, None).expect("room");
            queue.schedule(slot, Moment(due));
        }
        assert_eq!(queue.next_due(), Some(Moment(10)));
        let order: Vec<u8> =
            std::iter::from_fn(|| queue.take_next().map(|(_, p)| p.frame()[0])).collect();
        assert_eq!(order, [2, 4, 1, 3]);
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn a_full_store_refuses_packets_and_freed_slots_are_reused() {
        let mut queue = PacketQueue::new();
        let slots: Vec<Slot> =
            std::iter::from_fn(|| queue.store(&[0; 60], DIRECTION, None)).collect();
        assert_eq!(slots.len(), 65_536);
        assert_eq!(queue.store_copy(slots[0]), None);
        queue.schedule(slots[0], Moment(0));
        assert!(queue.take_next().is_some());
        assert!(queue.store(&[0; 60], DIRECTION, None).is_some());
        queue.release(slots[1]);
        assert!(queue.store(&[0; 60], DIRECTION, None).is_some());
    }

    #[test]
    fn a_copy_has_the_current_bytes_of_the_packet() {
        let mut queue = PacketQueue::new();
        let slot = queue.store(&[7; 60], DIRECTION, None).expect("room");
        queue.packet(slot).frame_mut()[59] = 8;
        let copy = queue.store_copy(slot).expect("room");
        let frame = queue.packet(slot).frame().to_vec();
        let copy = queue.packet(copy);
        assert_eq!(copy.frame(), frame);
        assert!(copy.handling.is_copy);
        assert!(!queue.packet(slot).handling.is_copy);
    }
}
