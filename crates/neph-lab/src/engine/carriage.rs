//! A link's packets between the ring they came by and the interface they leave by.
//!
//! Owns the gates of both directions, what waits, and what is written down about each packet. Reads
//! no clock: the engine's loop says how late it is.

use std::collections::VecDeque;
use std::sync::Arc;

use neph_sys::clock;
use neph_sys::ring::{Frame, PacketRing};

use super::flip::flip;
use crate::counters::LinkCounters;
use crate::direction::Direction;
use crate::gate::{Arrival, Departure, Fate, Gate, Moment, flow};
use crate::truth::{Handling, Identity, Passing, Record, Recorder, Verdict};
use crate::waiting::{Slot, Waiting};

/// The packets of one link.
#[derive(Debug)]
pub(super) struct Carriage {
    gates: [Gate; 2],
    waiting: Waiting,
    /// Where the packets are kept that stand in each gate's queue, in its order; none for one that
    /// there was no room for.
    queued: [VecDeque<Option<Slot>>; 2],
    counters: Arc<LinkCounters>,
    recorder: Option<Recorder>,
    /// The cue that was heeded last.
    cue: Option<Moment>,
}

impl Carriage {
    pub(super) fn new(
        gates: [Gate; 2],
        counters: Arc<LinkCounters>,
        recorder: Option<Recorder>,
    ) -> Self {
        Self {
            gates,
            waiting: Waiting::new(),
            queued: Default::default(),
            counters,
            recorder,
            cue: None,
        }
    }

    /// Lets the schedules begin anew if this cue was not heeded yet.
    pub(super) fn heed(&mut self, cue: Option<Moment>) {
        let Some(at) = cue.filter(|_| self.cue != cue) else {
            return;
        };
        self.cue = cue;
        let wall = at.0 + clock::pair().offset();
        self.write_down(Record::Cue { at: wall });
        for direction in Direction::BOTH {
            self.gates[direction.index()].cue(at);
            self.settle(direction);
        }
    }

    /// When there is something to do, at the latest: a packet is due, or a gate has its turn.
    pub(super) fn next_due(&self) -> Option<Moment> {
        let turns = self.gates.iter().filter_map(Gate::next_turn);
        self.waiting.next_due().into_iter().chain(turns).min()
    }

    /// Takes in a frame that came at `at`.
    pub(super) fn take_in(&mut self, direction: Direction, frame: &Frame<'_>, at: Moment) {
        let passing = self.recorder.as_ref().and_then(|recorder| {
            let identity = Identity::of(frame.bytes());
            recorder.wants(&identity).then(|| Passing {
                direction: u8::from(direction == Direction::BToA),
                length: frame.wire_length(),
                arrival: frame.stamp(),
                identity,
            })
        });
        let untouched = Handling::default();
        if frame.is_cut() {
            self.drop_packet(direction, passing, Verdict::TooLong, untouched);
            return;
        }
        let length = frame.wire_length();
        let gate = &mut self.gates[direction.index()];
        let flow = if gate.has_paths() {
            flow(frame.bytes())
        } else {
            None
        };
        let fate = gate.admit(Arrival { at, length, flow });
        self.settle(direction);
        if let Some(Fate::Dropped(cause, path)) = fate {
            self.drop_packet(direction, passing, cause.into(), on(path));
            return;
        }
        let slot = self.waiting.keep(frame.bytes(), direction, passing);
        if slot.is_none() {
            self.drop_packet(direction, passing, Verdict::Overflow, untouched);
        }
        match (fate, slot) {
            (Some(Fate::Leaves(departure)), Some(slot)) => self.leave(slot, departure),
            (None, slot) => self.queued[direction.index()].push_back(slot),
            _ => {}
        }
    }

    /// Lets time pass in a direction's gate until `now`: nothing may come any more that came
    /// before.
    pub(super) fn advance(&mut self, direction: Direction, now: Moment) {
        let gate = &mut self.gates[direction.index()];
        if gate.next_turn().is_some_and(|turn| turn <= now) {
            gate.advance(now);
            self.settle(direction);
        }
    }

    /// Carries out what a gate decided about the packets in its queue, and writes down what
    /// changed.
    fn settle(&mut self, direction: Direction) {
        while let Some(step) = self.gates[direction.index()].next_step() {
            self.write_down(Record::Step {
                direction: u8::from(direction == Direction::BToA),
                number: step.number,
                turn: step.turn,
                at: step.at.0 + clock::pair().offset(),
            });
        }
        while let Some(fate) = self.gates[direction.index()].next_decided() {
            let kept = self.queued[direction.index()].pop_front();
            // One that there was no room for was counted when it came.
            let Some(slot) = kept.flatten() else { continue };
            match fate {
                Fate::Leaves(departure) => self.leave(slot, departure),
                Fate::Dropped(cause, path) => {
                    let passing = self.waiting.packet(slot).passing;
                    self.waiting.forget(slot);
                    self.drop_packet(direction, passing, cause.into(), on(path));
                }
            }
        }
    }

    fn leave(&mut self, slot: Slot, departure: Departure) {
        let Departure {
            due,
            path,
            treatment,
        } = departure;
        let packet = self.waiting.packet(slot);
        packet.handling = Handling {
            path: Some(path),
            flipped: treatment
                .corrupt
                .and_then(|draw| flip(packet.frame_mut(), draw)),
            copy: false,
            early: treatment.early,
        };
        let (direction, passing) = (packet.direction, packet.passing);
        let handling = Handling {
            copy: true,
            ..packet.handling
        };
        self.waiting.leave(slot, due);
        if !treatment.duplicate {
            return;
        }
        match self.waiting.keep_copy(slot) {
            Some(copy) => self.waiting.leave(copy, due),
            None => self.drop_packet(direction, passing, Verdict::Overflow, handling),
        }
    }

    /// Sends the next packet if it is due by `now`, out of the ring on the other side; whether it
    /// was.
    pub(super) fn send_next(&mut self, now: Moment, rings: &[PacketRing; 2]) -> bool {
        if self.waiting.next_due().is_none_or(|due| due > now) {
            return false;
        }
        let Some((due, packet)) = self.waiting.take() else {
            return false;
        };
        let direction = packet.direction;
        let sent = rings[1 - direction.index()].send(packet.frame());
        let verdict = if sent.is_ok() {
            self.counters.deliver(direction, packet.handling);
            Verdict::Delivered
        } else {
            self.counters.count(direction, Verdict::Refused);
            Verdict::Refused
        };
        let delay = self.gates[direction.index()].delay(packet.handling.path.unwrap_or(0));
        self.counters.left(direction, now - due, delay);
        if let (Some(passing), Some(recorder)) = (packet.passing, &self.recorder) {
            let offset = clock::pair().offset();
            let record = Record::Packet {
                passing,
                handling: packet.handling,
                verdict,
                due: due.0 + offset,
                left: now.0 + offset,
            };
            write_down(recorder, record, &self.counters);
        }
        true
    }

    /// Writes a moment on both clocks down.
    pub(super) fn anchor(&self) {
        let pair = clock::pair();
        self.write_down(Record::Anchor {
            wall: pair.wall.0,
            raw: pair.raw.0,
        });
    }

    /// What the kernel dropped before it could be taken in.
    pub(super) fn ring_dropped(&self, direction: Direction, packets: u32) {
        self.counters.ring_dropped(direction, packets);
    }

    fn drop_packet(
        &self,
        direction: Direction,
        passing: Option<Passing>,
        verdict: Verdict,
        handling: Handling,
    ) {
        self.counters.count(direction, verdict);
        if let Some(passing) = passing {
            self.write_down(Record::Packet {
                passing,
                handling,
                verdict,
                due: 0,
                left: 0,
            });
        }
    }

    fn write_down(&self, record: Record) {
        if let Some(recorder) = &self.recorder {
            write_down(recorder, record, &self.counters);
        }
    }
}

/// What was done to a packet that was dropped on this path, if it was on one by then.
fn on(path: Option<u8>) -> Handling {
    Handling {
        path,
        ..Handling::default()
    }
}

fn write_down(recorder: &Recorder, record: Record, counters: &LinkCounters) {
    if !recorder.record(record) {
        counters.record_missed();
    }
}

#[cfg(test)]
#[path = "carriage_tests.rs"]
mod tests;
