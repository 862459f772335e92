//! The decision about each packet of one direction of a link: when it leaves, or why it does not.
//!
//! Owns the order of things: MTU, queue and transmission, then the wire. Reads no clock and
//! touches no packet: the engine tells it when a packet came and how long it is, tests do the same
//! in virtual time. The same seed and the same arrivals give the same fates, however late it is
//! asked for them.

mod fate;
mod jitter;
mod loss;
mod moment;
mod partial;
mod random;
mod shape;
mod share;
mod transmitter;
mod way;

use std::collections::VecDeque;

use neph_model::Span;

pub use fate::{Arrival, Cause, Departure, Fate, Treatment};
pub use jitter::{Jitter, Trace};
pub use loss::{GilbertElliott, Loss};
pub use moment::Moment;
pub use partial::{Partial, PartialWire};
use random::Random;
pub(crate) use shape::{ETHERNET, FULL_FRAME};
pub use shape::{QueueLimit, Shape, Wire, transmission_time};
pub use share::Share;
use transmitter::Transmitter;
use way::Way;

/// One direction's state.
#[derive(Clone, Debug)]
pub struct Gate {
    shape: Shape,
    random: Random,
    transmitter: Transmitter,
    way: Way,
    /// The fates of packets that stood in the queue, in the order in which they came.
    decided: VecDeque<Fate>,
}

impl Gate {
    /// A gate that nothing has passed yet.
    pub fn new(shape: Shape, seed: u64) -> Self {
        let way = Way::new(shape.wire.clone());
        Self {
            shape,
            random: Random::new(seed),
            transmitter: Transmitter::new(),
            way,
            decided: VecDeque::new(),
        }
    }

    /// How long it keeps a packet, apart from jitter, transmission and queue.
    pub(crate) const fn delay(&self) -> Span {
        self.way.wire.delay
    }

    /// Decides about a packet; none while it stands in the queue. What was decided meanwhile about
    /// those that stood there is [`Self::next_decided`].
    pub fn admit(&mut self, packet: Arrival) -> Option<Fate> {
        self.advance(packet.at);
        let mtu = self.shape.mtu;
        if mtu.is_some_and(|mtu| packet.length > mtu + ETHERNET) {
            return Some(Fate::Dropped(Cause::OverMtu));
        }
        let Some(rate) = self.shape.rate else {
            return Some(self.way.pass(packet.at, &mut self.random));
        };
        let limits = (self.shape.queue, rate);
        if !self.transmitter.has_room(packet, limits) {
            return Some(Fate::Dropped(Cause::QueueFull));
        }
        if self.transmitter.is_busy(packet.at) {
            self.transmitter.push(packet);
            return None;
        }
        Some(self.transmit(packet, packet.at))
    }

    /// Lets time pass until `now`: transmissions that began by then are decided about.
    pub fn advance(&mut self, now: Moment) {
        while let Some(start) = self.transmitter.next_start().filter(|start| *start <= now) {
            if let Some(packet) = self.transmitter.pop() {
                let fate = self.transmit(packet, start);
                self.decided.push_back(fate);
            }
        }
    }

    /// The fate of the next packet that left the queue, in the order in which they came.
    pub fn next_decided(&mut self) -> Option<Fate> {
        self.decided.pop_front()
    }

    /// When it must be told that time has passed, at the latest, so that no packet leaves late.
    pub fn next_turn(&self) -> Option<Moment> {
        let start = self.transmitter.next_start()?;
        Some(start + self.way.least())
    }

    fn transmit(&mut self, packet: Arrival, start: Moment) -> Fate {
        let sent = self.transmitter.send(start, packet.length, self.shape.rate);
        self.way.pass(sent, &mut self.random)
    }
}

#[cfg(test)]
#[path = "gate/tests.rs"]
mod tests;
