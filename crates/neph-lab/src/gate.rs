//! Decides about each packet of one direction of a link: when it departs, or why it is dropped.
//!
//! Owns the order of effects: MTU, queue and transmission, then a path and its wire; and the scheduled
//! changes. Reads no clock and touches no packet: the engine passes arrival time and length, tests do so in
//! virtual time. The same seed and arrivals give the same outcomes, at any time of the calls.

mod change;
mod codel;
mod fifo;
mod flow;
mod frame;
mod jitter;
mod link_gates;
mod loss;
mod moment;
mod outcome;
mod partial;
mod path_choice;
mod path_state;
mod random;
mod recurrence;
mod shape;
mod share;
mod splitting;
mod timetable;
mod traffic_engineering;
mod transmitter;

use std::collections::VecDeque;

use neph_model::Span;

pub use change::{Change, ChangeAction, ScheduleEvent};
pub use codel::CoDel;
pub(crate) use flow::flow_of_frame;
pub use flow::{Flow, ReservedProtocol};
pub(crate) use frame::{ETHERNET_HEADER_BYTES, FULL_FRAME_BYTES};
pub use jitter::{Jitter, Trace};
pub(crate) use link_gates::gates_of_link;
pub use loss::{GilbertElliott, Loss};
pub use moment::Moment;
pub use outcome::{Arrival, Departure, DropCause, PacketOutcome, Treatment};
pub use partial::{PartialShape, PartialWire};
use path_state::PathState;
use random::Random;
pub(crate) use random::mix_bits;
pub(crate) use recurrence::Recurrence;
pub use shape::{Discipline, Path, QueueLimit, Shape, Wire, transmission_time};
pub use share::Share;
pub use splitting::Splitting;
pub use timetable::ScheduleStep;
use timetable::Timetable;
pub use traffic_engineering::TrafficEngineering;
use transmitter::Transmitter;

/// The state of one direction.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The shape while no change is active.
    base_shape: Shape,
    shape: Shape,
    timetable: Timetable,
    random: Random,
    /// Seeds of the choice of paths: initially, and since the last reshuffle.
    path_seeds: [u64; 2],
    transmitter: Transmitter,
    paths: Vec<PathState>,
    /// Outcomes of packets that were in the queue, in the order of arrival.
    outcomes: VecDeque<PacketOutcome>,
    steps: VecDeque<ScheduleStep>,
}

impl Gate {
    /// A gate without changes over time.
    pub fn new(shape: Shape, seed: u64) -> Self {
        Self::with_schedule(shape, Vec::new(), seed)
    }

    /// A gate with scheduled changes, each with its number.
    pub fn with_schedule(shape: Shape, changes: Vec<(u16, Change)>, seed: u64) -> Self {
        let numbered = (0..).zip(shape.wires());
        let paths = numbered.map(|(number, wire)| PathState::new(number, wire.clone()));
        Self {
            paths: paths.collect(),
            base_shape: shape.clone(),
            shape,
            timetable: Timetable::new(changes, seed),
            random: Random::new(seed),
            path_seeds: [seed; 2],
            transmitter: Transmitter::new(),
            outcomes: VecDeque::new(),
            steps: VecDeque::new(),
        }
    }

    /// The same gate with another seed; the choice of paths stays the same.
    #[must_use]
    pub(crate) fn with_seed(mut self, seed: u64) -> Self {
        self.random = Random::new(seed);
        self
    }

    /// The same gate without randomness, except for the choice of paths and the scheduled changes.
    #[must_use]
    pub(crate) fn without_randomness(mut self) -> Self {
        let constant_wire = |wire: &Wire| Wire {
            delay: wire.delay,
            ..Wire::default()
        };
        self.base_shape.wire = constant_wire(&self.base_shape.wire);
        for path in &mut self.base_shape.paths {
            path.wire = constant_wire(&path.wire);
        }
        self.set_shape(self.base_shape.clone());
        self
    }

    /// The index of the path that a flow takes now.
    pub(crate) fn path_of(&self, flow: Option<Flow>) -> usize {
        if self.paths.len() == 1 {
            return 0;
        }
        let Shape {
            paths, splitting, ..
        } = &self.shape;
        path_choice::choose_path(flow, self.path_seeds[1], paths, *splitting)
    }

    /// Number of paths for UDP flows now.
    pub(crate) fn udp_path_count(&self) -> usize {
        path_choice::candidate_path_count(Some(ReservedProtocol::Udp), &self.shape.paths)
    }

    /// The delay of the path with this index, without jitter.
    pub(crate) fn delay(&self, path: u8) -> Span {
        let path_state = self.paths.get(usize::from(path));
        path_state.map_or(Span::ZERO, |state| state.wire.delay)
    }

    /// Whether it needs the flow of a packet.
    pub(crate) const fn has_paths(&self) -> bool {
        self.paths.len() > 1
    }

    /// Restarts the schedule and the traces at `at`, with the initial choice of paths.
    pub fn apply_cue(&mut self, at: Moment) {
        self.advance(at);
        self.timetable.restart(at);
        self.paths.iter_mut().for_each(PathState::rewind);
        self.path_seeds[1] = self.path_seeds[0];
        self.set_shape(self.base_shape.clone());
    }

    /// Decides about a packet; `None` while it waits in the queue. Then [`Self::next_outcome`] returns the
    /// decision.
    pub fn admit(&mut self, packet: Arrival) -> Option<PacketOutcome> {
        self.advance(packet.at);
        let mtu = self.shape.mtu;
        if mtu.is_some_and(|mtu| packet.length > mtu + ETHERNET_HEADER_BYTES) {
            return Some(PacketOutcome::Dropped(DropCause::OverMtu, None));
        }
        if !self.transmitter.is_busy(packet.at) {
            return Some(self.transmit(packet, packet.at));
        }
        // Without a rate it is busy only until the queue of an earlier rate is empty.
        let Shape { queue, rate, .. } = self.shape;
        if !self.transmitter.has_room(packet, queue, rate) {
            return Some(PacketOutcome::Dropped(DropCause::QueueFull, None));
        }
        self.transmitter.push(packet);
        None
    }

    /// Advances time to `now`: applies changes, and decides about packets whose transmission began.
    pub fn advance(&mut self, now: Moment) {
        loop {
            let next_change = self.timetable.next().filter(|change| *change <= now);
            let next_transmission = self.transmitter.next_transmission_start();
            let next_transmission = next_transmission.filter(|start| *start <= now);
            match (next_change, next_transmission) {
                (None, None) => return,
                (Some(change), start) if start.is_none_or(|start| change <= start) => {
                    self.apply_changes(change);
                }
                (_, Some(start)) => self.start_transmission(start),
                (Some(change), None) => self.apply_changes(change),
            }
        }
    }

    /// The outcome of the next packet that left the queue, in the order of arrival.
    pub fn next_outcome(&mut self) -> Option<PacketOutcome> {
        self.outcomes.pop_front()
    }

    /// The next change that was applied.
    pub fn next_step(&mut self) -> Option<ScheduleStep> {
        self.steps.pop_front()
    }

    /// When it must be advanced at the latest, so that no packet departs late.
    pub fn next_deadline(&self) -> Option<Moment> {
        let min_delay = || {
            self.paths
                .iter()
                .map(PathState::min_delay)
                .min()
                .unwrap_or_default()
        };
        let start = self.transmitter.next_transmission_start();
        let start = start.map(|start| start + min_delay());
        match (start, self.timetable.next()) {
            (Some(start), Some(next_change)) => Some(start.min(next_change)),
            (start, next_change) => start.or(next_change),
        }
    }

    fn apply_changes(&mut self, at: Moment) {
        self.steps.extend(self.timetable.apply_due());
        self.path_seeds[1] = match self.timetable.reshuffle_count(at) {
            0 => self.path_seeds[0],
            count => path_choice::reshuffled_seed(self.path_seeds[0], count),
        };
        self.set_shape(self.timetable.shape_at(&self.base_shape, at));
    }

    fn set_shape(&mut self, shape: Shape) {
        for (state, wire) in self.paths.iter_mut().zip(shape.wires()) {
            state.wire = wire.clone();
        }
        self.shape = shape;
    }

    /// Starts the transmission of the next packet in the queue; CoDel may drop some before.
    fn start_transmission(&mut self, start: Moment) {
        let dequeued = self.transmitter.take(start, self.shape.discipline);
        for _ in 0..dequeued.dropped {
            self.outcomes
                .push_back(PacketOutcome::Dropped(DropCause::CoDel, None));
        }
        if let Some(packet) = dequeued.packet {
            let outcome = self.transmit(packet, start);
            self.outcomes.push_back(outcome);
        }
    }

    fn transmit(&mut self, packet: Arrival, start: Moment) -> PacketOutcome {
        let transmission_end = match self.shape.rate {
            None => start,
            Some(rate) => self.transmitter.send(start, packet.length, rate),
        };
        let path = self.path_of(packet.flow);
        self.paths[path].transmit(transmission_end, &mut self.random)
    }
}

#[cfg(test)]
#[path = "gate/tests.rs"]
mod tests;

#[cfg(test)]
#[path = "gate/paths_tests.rs"]
mod paths_tests;
