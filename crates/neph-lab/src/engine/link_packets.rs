//! A link's packets between the input ring and the output interface.
//!
//! Owns the gates of both directions, the waiting packets, and the records about each packet. Reads no clock:
//! the engine's loop passes the time.

use std::collections::VecDeque;
use std::sync::Arc;

use neph_sys::clock;
use neph_sys::ring::{Frame, PacketRing};

use super::bit_error::flip_bit;
use crate::counters::LinkCounters;
use crate::direction::Direction;
use crate::gate::{Arrival, Departure, Gate, Moment, PacketOutcome, flow_of_frame};
use crate::packet_queue::{PacketQueue, Slot};
use crate::truth::{Identity, PacketHandling, PacketPassage, Record, Recorder, Verdict};

/// The packets of one link.
#[derive(Debug)]
pub(super) struct LinkPackets {
    gates: [Gate; 2],
    pending_packets: PacketQueue,
    /// The storage of the packets in each gate's queue, in its order; `None` for a packet that found no
    /// memory.
    gate_queues: [VecDeque<Option<Slot>>; 2],
    counters: Arc<LinkCounters>,
    recorder: Option<Recorder>,
    /// The last cue that was applied.
    cue: Option<Moment>,
}

impl LinkPackets {
    pub(super) fn new(
        gates: [Gate; 2],
        counters: Arc<LinkCounters>,
        recorder: Option<Recorder>,
    ) -> Self {
        Self {
            gates,
            pending_packets: PacketQueue::new(),
            gate_queues: Default::default(),
            counters,
            recorder,
            cue: None,
        }
    }

    /// Restarts the schedules if this cue was not applied yet.
    pub(super) fn apply_cue(&mut self, cue: Option<Moment>) {
        let Some(at) = cue.filter(|_| self.cue != cue) else {
            return;
        };
        self.cue = cue;
        let wall = at.0 + clock::pair().offset();
        self.write_record(Record::Cue { at: wall });
        for direction in Direction::BOTH {
            self.gates[direction.index()].apply_cue(at);
            self.apply_decisions(direction);
        }
    }

    /// The next time at which a packet is due or a gate must advance.
    pub(super) fn next_due(&self) -> Option<Moment> {
        let deadlines = self.gates.iter().filter_map(Gate::next_deadline);
        self.pending_packets
            .next_due()
            .into_iter()
            .chain(deadlines)
            .min()
    }

    /// Adds a frame that arrived at `at`.
    pub(super) fn add_frame(&mut self, direction: Direction, frame: &Frame<'_>, at: Moment) {
        let passage = self.recorder.as_ref().and_then(|recorder| {
            let identity = Identity::from_frame(frame.bytes());
            recorder.is_sampled(&identity).then(|| PacketPassage {
                direction: u8::from(direction == Direction::BToA),
                length: frame.wire_length(),
                arrival: frame.stamp(),
                identity,
            })
        });
        let default_handling = PacketHandling::default();
        if frame.is_cut() {
            self.drop_packet(direction, passage, Verdict::TooLong, default_handling);
            return;
        }
        let length = frame.wire_length();
        let gate = &mut self.gates[direction.index()];
        let flow = if gate.has_paths() {
            flow_of_frame(frame.bytes())
        } else {
            None
        };
        let outcome = gate.admit(Arrival { at, length, flow });
        self.apply_decisions(direction);
        if let Some(PacketOutcome::Dropped(cause, path)) = outcome {
            self.drop_packet(direction, passage, cause.into(), handling_on_path(path));
            return;
        }
        let slot = self
            .pending_packets
            .store(frame.bytes(), direction, passage);
        if slot.is_none() {
            self.drop_packet(direction, passage, Verdict::Overflow, default_handling);
        }
        match (outcome, slot) {
            (Some(PacketOutcome::Forwarded(departure)), Some(slot)) => {
                self.schedule_departure(slot, departure);
            }
            (None, slot) => self.gate_queues[direction.index()].push_back(slot),
            _ => {}
        }
    }

    /// Advances a direction's gate to `now`: no earlier packet may arrive after this.
    pub(super) fn advance(&mut self, direction: Direction, now: Moment) {
        let gate = &mut self.gates[direction.index()];
        if gate.next_deadline().is_some_and(|deadline| deadline <= now) {
            gate.advance(now);
            self.apply_decisions(direction);
        }
    }

    /// Applies a gate's decisions about the packets in its queue, and records changes.
    fn apply_decisions(&mut self, direction: Direction) {
        while let Some(step) = self.gates[direction.index()].next_step() {
            self.write_record(Record::Step {
                direction: u8::from(direction == Direction::BToA),
                number: step.number,
                event: step.event,
                at: step.at.0 + clock::pair().offset(),
            });
        }
        while let Some(outcome) = self.gates[direction.index()].next_outcome() {
            let packet = self.gate_queues[direction.index()].pop_front();
            // A packet without memory was counted on its arrival.
            let Some(slot) = packet.flatten() else {
                continue;
            };
            match outcome {
                PacketOutcome::Forwarded(departure) => self.schedule_departure(slot, departure),
                PacketOutcome::Dropped(cause, path) => {
                    let passage = self.pending_packets.packet(slot).passage;
                    self.pending_packets.release(slot);
                    self.drop_packet(direction, passage, cause.into(), handling_on_path(path));
                }
            }
        }
    }

    fn schedule_departure(&mut self, slot: Slot, departure: Departure) {
        let Departure {
            due,
            path,
            treatment,
        } = departure;
        let packet = self.pending_packets.packet(slot);
        packet.handling = PacketHandling {
            path: Some(path),
            flipped: treatment
                .corrupt
                .and_then(|draw| flip_bit(packet.frame_mut(), draw)),
            is_copy: false,
            is_early: treatment.is_early,
        };
        let (direction, passage) = (packet.direction, packet.passage);
        let handling = PacketHandling {
            is_copy: true,
            ..packet.handling
        };
        self.pending_packets.schedule(slot, due);
        if !treatment.is_duplicated {
            return;
        }
        match self.pending_packets.store_copy(slot) {
            Some(copy) => self.pending_packets.schedule(copy, due),
            None => self.drop_packet(direction, passage, Verdict::Overflow, handling),
        }
    }

    /// Sends the next packet if it is due by `now`, through the ring on the other side. Returns whether it
    /// was.
    pub(super) fn send_next(&mut self, now: Moment, rings: &[PacketRing; 2]) -> bool {
        if self.pending_packets.next_due().is_none_or(|due| due > now) {
            return false;
        }
        let Some((due, packet)) = self.pending_packets.take_next() else {
            return false;
        };
        let direction = packet.direction;
        let sent = rings[1 - direction.index()].send(packet.frame());
        let verdict = if sent.is_ok() {
            self.counters.record_delivery(direction, packet.handling);
            Verdict::Delivered
        } else {
            self.counters.count(direction, Verdict::Refused);
            Verdict::Refused
        };
        let delay = self.gates[direction.index()].delay(packet.handling.path.unwrap_or(0));
        self.counters.record_departure(direction, now - due, delay);
        if let (Some(passage), Some(recorder)) = (packet.passage, &self.recorder) {
            let offset = clock::pair().offset();
            let record = Record::Packet {
                passage,
                handling: packet.handling,
                verdict,
                due: due.0 + offset,
                left: now.0 + offset,
            };
            write_record(recorder, record, &self.counters);
        }
        true
    }

    /// Records a moment on both clocks.
    pub(super) fn record_anchor(&self) {
        let pair = clock::pair();
        self.write_record(Record::Anchor {
            wall: pair.wall.0,
            raw: pair.raw.0,
        });
    }

    /// Counts packets that the kernel dropped before they could be read.
    pub(super) fn count_ring_drops(&self, direction: Direction, packets: u32) {
        self.counters.ring_dropped(direction, packets);
    }

    fn drop_packet(
        &self,
        direction: Direction,
        passage: Option<PacketPassage>,
        verdict: Verdict,
        handling: PacketHandling,
    ) {
        self.counters.count(direction, verdict);
        if let Some(passage) = passage {
            self.write_record(Record::Packet {
                passage,
                handling,
                verdict,
                due: 0,
                left: 0,
            });
        }
    }

    fn write_record(&self, record: Record) {
        if let Some(recorder) = &self.recorder {
            write_record(recorder, record, &self.counters);
        }
    }
}

/// The handling of a packet that was dropped, with its path if it had one.
fn handling_on_path(path: Option<u8>) -> PacketHandling {
    PacketHandling {
        path,
        ..PacketHandling::default()
    }
}

fn write_record(recorder: &Recorder, record: Record, counters: &LinkCounters) {
    if !recorder.record(record) {
        counters.record_missed();
    }
}

#[cfg(test)]
#[path = "link_packets_tests.rs"]
mod tests;
