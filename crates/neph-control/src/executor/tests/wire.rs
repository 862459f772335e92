//! Messages in flight between a controller and its agents, and the random generator for their
//! faults.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use neph_agent::remote::{FromAgent, ToAgent};
use neph_model::AgentName;
use neph_model::Span;

use crate::{Bus, FromBus, NotConnected};

/// Random numbers from a seed (xorshift64*).
#[derive(Debug)]
pub(super) struct SeededRandom(u64);

impl SeededRandom {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33
    }

    /// True with this probability in percent.
    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.roll() % 100 < percent
    }
}

/// Messages in flight.
#[derive(Debug, Default)]
pub(super) struct Wires {
    pub(super) to_agents: BTreeMap<AgentName, VecDeque<ToAgent>>,
    pub(super) to_controller: VecDeque<(AgentName, FromAgent)>,
    /// A delivered message; it is delivered as a duplicate when the next one is stored here.
    pub(super) late: Option<(AgentName, FromAgent)>,
}

/// The controller's end.
#[derive(Clone, Debug, Default)]
pub(super) struct Wire(Arc<Mutex<Wires>>);

impl Wire {
    pub(super) fn lock(&self) -> MutexGuard<'_, Wires> {
        self.0.lock().expect("whole")
    }
}

impl Bus for Wire {
    fn send(&mut self, to: &AgentName, message: ToAgent) -> Result<(), NotConnected> {
        let mut wires = self.lock();
        wires
            .to_agents
            .entry(to.clone())
            .or_default()
            .push_back(message);
        Ok(())
    }

    fn receive(&mut self, _patience: Span) -> Vec<FromBus> {
        let mut wires = self.lock();
        let messages = wires.to_controller.drain(..);
        messages
            .map(|(agent, message)| FromBus::Message(agent, message))
            .collect()
    }
}
