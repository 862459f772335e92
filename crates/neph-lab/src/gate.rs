//! The decision about each packet of one direction of a link: when it leaves, or why it does not.
//!
//! Owns the order of things: MTU, queue and transmission, then a path and its wire; and what
//! changes when. Reads no clock and
//! touches no packet: the engine tells it when a packet came and how long it is, tests do the same
//! in virtual time. The same seed and the same arrivals give the same fates, however late it is
//! asked for them.

mod change;
mod choice;
mod codel;
mod engineering;
mod fate;
mod fifo;
mod flow;
mod frame;
mod jitter;
mod loss;
mod moment;
mod pair;
mod partial;
mod random;
mod shape;
mod share;
mod splitting;
mod timetable;
mod transmitter;
mod way;
mod when;

use std::collections::VecDeque;

use neph_model::Span;

pub use change::{Change, Turn, What};
pub use codel::CoDel;
pub use engineering::Engineering;
pub use fate::{Arrival, Cause, Departure, Fate, Treatment};
pub(crate) use flow::flow;
pub use flow::{Flow, Reserved};
pub(crate) use frame::{ETHERNET, FULL_FRAME};
pub use jitter::{Jitter, Trace};
pub use loss::{GilbertElliott, Loss};
pub use moment::Moment;
pub(crate) use pair::both_ways;
pub use partial::{Partial, PartialWire};
use random::Random;
pub(crate) use random::mixed;
pub use shape::{Discipline, Path, QueueLimit, Shape, Wire, transmission_time};
pub use share::Share;
pub use splitting::Splitting;
pub use timetable::Step;
use timetable::Timetable;
use transmitter::Transmitter;
use way::Way;
pub(crate) use when::When;

/// One direction's state.
#[derive(Clone, Debug)]
pub struct Gate {
    /// What is asked while no change holds.
    base: Shape,
    shape: Shape,
    timetable: Timetable,
    random: Random,
    /// Seeds the choice of paths: as it was in the beginning, and since the last reshuffle.
    hash: [u64; 2],
    transmitter: Transmitter,
    ways: Vec<Way>,
    /// The fates of packets that stood in the queue, in the order in which they came.
    decided: VecDeque<Fate>,
    steps: VecDeque<Step>,
}

impl Gate {
    /// A gate that nothing has passed yet and that never changes.
    pub fn new(shape: Shape, seed: u64) -> Self {
        Self::scheduled(shape, Vec::new(), seed)
    }

    /// A gate that nothing has passed yet, with changes that each have a number.
    pub fn scheduled(shape: Shape, changes: Vec<(u16, Change)>, seed: u64) -> Self {
        let ways = (0..).zip(shape.wires());
        let ways = ways.map(|(number, wire)| Way::new(number, wire.clone()));
        Self {
            ways: ways.collect(),
            base: shape.clone(),
            shape,
            timetable: Timetable::new(changes, seed),
            random: Random::new(seed),
            hash: [seed; 2],
            transmitter: Transmitter::new(),
            decided: VecDeque::new(),
            steps: VecDeque::new(),
        }
    }

    /// The same gate, with other draws: the paths stay as they are chosen.
    #[must_use]
    pub(crate) fn drawing(mut self, seed: u64) -> Self {
        self.random = Random::new(seed);
        self
    }

    /// The same gate, without anything that chance has a say in but the choice of paths and what
    /// changes bring.
    #[must_use]
    pub(crate) fn certain(mut self) -> Self {
        let certain = |wire: &Wire| Wire {
            delay: wire.delay,
            ..Wire::default()
        };
        self.base.wire = certain(&self.base.wire);
        for path in &mut self.base.paths {
            path.wire = certain(&path.wire);
        }
        self.take_shape(self.base.clone());
        self
    }

    /// The index of the path that a flow takes now.
    pub(crate) fn path_of(&self, flow: Option<Flow>) -> usize {
        if self.ways.len() == 1 {
            return 0;
        }
        let Shape {
            paths, splitting, ..
        } = &self.shape;
        choice::choose(flow, self.hash[1], paths, *splitting)
    }

    /// How many paths flows of UDP are spread over now.
    pub(crate) fn open_to_udp(&self) -> usize {
        choice::open_to(Some(Reserved::Udp), &self.shape.paths)
    }

    /// How long the path with this index keeps a packet, apart from jitter.
    pub(crate) fn delay(&self, path: u8) -> Span {
        let way = self.ways.get(usize::from(path));
        way.map_or(Span::ZERO, |way| way.wire.delay)
    }

    /// Whether it wants to know a packet's flow.
    pub(crate) const fn has_paths(&self) -> bool {
        self.ways.len() > 1
    }

    /// Lets the schedule and the traces begin anew at `at`, with the paths as they were chosen in
    /// the beginning.
    pub fn cue(&mut self, at: Moment) {
        self.advance(at);
        self.timetable.restart(at);
        self.ways.iter_mut().for_each(Way::rewind);
        self.hash[1] = self.hash[0];
        self.take_shape(self.base.clone());
    }

    /// Decides about a packet; none while it stands in the queue. What was decided meanwhile about
    /// those that stood there is [`Self::next_decided`].
    pub fn admit(&mut self, packet: Arrival) -> Option<Fate> {
        self.advance(packet.at);
        let mtu = self.shape.mtu;
        if mtu.is_some_and(|mtu| packet.length > mtu + ETHERNET) {
            return Some(Fate::Dropped(Cause::OverMtu, None));
        }
        if !self.transmitter.is_busy(packet.at) {
            return Some(self.transmit(packet, packet.at));
        }
        // Without a rate it is busy no longer than it takes to empty the queue of one that was.
        let Shape { queue, rate, .. } = self.shape;
        if !self.transmitter.has_room(packet, queue, rate) {
            return Some(Fate::Dropped(Cause::QueueFull, None));
        }
        self.transmitter.push(packet);
        None
    }

    /// Lets time pass until `now`: what changed by then has changed, and transmissions that began
    /// are decided about.
    pub fn advance(&mut self, now: Moment) {
        loop {
            let turn = self.timetable.next().filter(|turn| *turn <= now);
            let start = self.transmitter.next_start();
            let start = start.filter(|start| *start <= now);
            match (turn, start) {
                (None, None) => return,
                (Some(turn), start) if start.is_none_or(|start| turn <= start) => self.turn(turn),
                (_, Some(start)) => self.begin(start),
                (Some(turn), None) => self.turn(turn),
            }
        }
    }

    /// The fate of the next packet that left the queue, in the order in which they came.
    pub fn next_decided(&mut self) -> Option<Fate> {
        self.decided.pop_front()
    }

    /// The next change that came about.
    pub fn next_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// When it must be told that time has passed, at the latest, so that no packet leaves late.
    pub fn next_turn(&self) -> Option<Moment> {
        let least = || self.ways.iter().map(Way::least).min().unwrap_or_default();
        let start = self.transmitter.next_start();
        let start = start.map(|start| start + least());
        match (start, self.timetable.next()) {
            (Some(start), Some(turn)) => Some(start.min(turn)),
            (start, turn) => start.or(turn),
        }
    }

    fn turn(&mut self, at: Moment) {
        self.steps.extend(self.timetable.turn());
        self.hash[1] = match self.timetable.reshuffles(at) {
            0 => self.hash[0],
            times => choice::reshuffled(self.hash[0], times),
        };
        self.take_shape(self.timetable.shape(&self.base, at));
    }

    fn take_shape(&mut self, shape: Shape) {
        for (way, wire) in self.ways.iter_mut().zip(shape.wires()) {
            way.wire = wire.clone();
        }
        self.shape = shape;
    }

    /// The next packet of the queue begins to be sent; CoDel may drop some before.
    fn begin(&mut self, start: Moment) {
        let taken = self.transmitter.take(start, self.shape.discipline);
        for _ in 0..taken.dropped {
            self.decided.push_back(Fate::Dropped(Cause::CoDel, None));
        }
        if let Some(packet) = taken.packet {
            let fate = self.transmit(packet, start);
            self.decided.push_back(fate);
        }
    }

    fn transmit(&mut self, packet: Arrival, start: Moment) -> Fate {
        let sent = match self.shape.rate {
            None => start,
            Some(rate) => self.transmitter.send(start, packet.length, rate),
        };
        let chosen = self.path_of(packet.flow);
        self.ways[chosen].pass(sent, &mut self.random)
    }
}

#[cfg(test)]
#[path = "gate/tests.rs"]
mod tests;

#[cfg(test)]
#[path = "gate/paths_tests.rs"]
mod paths_tests;
