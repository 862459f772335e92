//! The mapping between flows and ports, by slot and by port.

use neph_model::Slot;

use super::send_order::Turn;

/// No flow was opened there yet.
const NONE: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Flows {
    slots: Vec<SlotFlow>,
    /// By port: its latest flow.
    ports: Vec<Option<Holder>>,
}

#[derive(Clone, Copy, Debug)]
struct SlotFlow {
    port: u16,
    /// The round in which its flow began.
    began: u64,
    /// The first round that is not reported.
    unreported: u64,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    slot: Slot,
    began: u64,
}

impl Flows {
    pub(crate) fn new(slots: u32) -> Self {
        let empty = SlotFlow {
            port: 0,
            began: NONE,
            unreported: 0,
        };
        Self {
            slots: vec![empty; slots.max(1) as usize],
            ports: vec![None; 1 << 16],
        }
    }

    /// The port of this turn's flow, if it has one already.
    pub(crate) fn port(&self, turn: &Turn) -> Option<u16> {
        let slot = self.slots.get(turn.slot.0 as usize)?;
        (slot.began == turn.began()).then_some(slot.port)
    }

    /// Assigns this port to this turn's flow.
    pub(crate) fn open(&mut self, turn: &Turn, port: u16) {
        let Some(slot) = self.slots.get_mut(turn.slot.0 as usize) else {
            return;
        };
        slot.port = port;
        slot.began = turn.began();
        self.ports[usize::from(port)] = Some(Holder {
            slot: turn.slot,
            began: slot.began,
        });
    }

    /// The latest slot with this port, and the round in which its flow began.
    pub(crate) fn of(&self, port: u16) -> Option<(Slot, u64)> {
        self.ports[usize::from(port)].map(|holder| (holder.slot, holder.began))
    }

    /// The first round of a slot that is not reported.
    pub(crate) fn unreported(&self, slot: Slot) -> u64 {
        self.slots
            .get(slot.0 as usize)
            .map_or(0, |slot| slot.unreported)
    }

    pub(crate) fn report(&mut self, slot: Slot) {
        if let Some(slot) = self.slots.get_mut(slot.0 as usize) {
            slot.unreported += 1;
        }
    }
}
