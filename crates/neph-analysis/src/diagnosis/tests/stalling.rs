//! Periodic stalls of one side.

use neph_model::PeerMarks;
use neph_stats::Random;

use super::path::{exponential, peer};
use super::world::World;

/// The party that stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StalledParty {
    /// The server application.
    Program,
    /// The whole peer, with its kernel.
    Host,
    /// The client application; due messages are sent late.
    ClientLate,
    /// The client application; due messages are not sent.
    ClientSkips,
}

/// Stalls of one length at a period, with the first after half a period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stalling {
    pub(crate) party: StalledParty,
    pub(crate) period_ms: f64,
    pub(crate) length_ms: f64,
}

impl Stalling {
    /// The end of the stall at this time, if there is one.
    pub(crate) fn end(&self, at: f64) -> Option<f64> {
        let elapsed = (at - self.period_ms / 2.0).rem_euclid(self.period_ms);
        let is_in = at > self.period_ms / 2.0 && elapsed < self.length_ms;
        is_in.then_some(at - elapsed + self.length_ms)
    }

    /// When a stalled party handles an event of time `at`; each event takes a moment.
    pub(crate) fn wake(&self, at: f64, interval: f64, random: &mut Random) -> f64 {
        let Some(end) = self.end(at) else { return at };
        let waiting_messages = (self.length_ms - (end - at)) / interval;
        end + 0.04 * waiting_messages + exponential(random, 0.01)
    }
}

/// A request at the peer, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestAtPeer {
    pub(crate) arrived: f64,
    pub(crate) read: f64,
    pub(crate) is_stalled: bool,
    /// If one call reads several requests, only the last one has a timestamp.
    pub(crate) is_last: bool,
}

impl RequestAtPeer {
    /// A request that arrives at this time and waits in the kernel for a gap before it.
    pub(crate) fn of(
        world: &World,
        (arrival, gap): (f64, f64),
        interval: f64,
        random: &mut Random,
    ) -> Self {
        let host = world.stalls(&[StalledParty::Host]);
        let arrived = host.map_or(arrival, |stalling| stalling.wake(arrival, interval, random));
        let readable_at = arrived + gap + 0.02;
        let program = world.stalls(&[StalledParty::Program]);
        let read = program.map_or(readable_at, |stalling| {
            stalling.wake(readable_at, interval, random)
        });
        let is_stalled = (arrived - arrival).max(read - readable_at) > 0.0;
        let is_last_of_stall = |stalling: Stalling| stalling.end(arrival + interval).is_none();
        Self {
            arrived,
            read,
            is_stalled,
            is_last: !is_stalled || world.stalling.is_none_or(is_last_of_stall),
        }
    }
}

impl RequestAtPeer {
    /// The peer's timestamps of a request with this reply time.
    pub(crate) fn marks(&self, has_stamp: bool, replied_at: f64) -> PeerMarks {
        PeerMarks {
            rx: Some(peer(self.arrived)).filter(|_| has_stamp),
            app_rx: Some(peer(self.read)),
            app_tx: Some(peer(replied_at)),
            nic_tx: Some(peer(replied_at + 0.01)),
        }
    }
}

impl World {
    /// When the client application sends a message that is due at this time; `None` if it skips it.
    pub(crate) fn client_sends_at(
        &self,
        due: f64,
        interval: f64,
        random: &mut Random,
    ) -> Option<f64> {
        let skipping = self.stalls(&[StalledParty::ClientSkips]);
        if skipping.is_some_and(|stalling| stalling.end(due).is_some()) {
            return None;
        }
        Some(self.client_reads_at(due, interval, random))
    }

    /// When it reads a reply that arrived at this time.
    pub(crate) fn client_reads_at(&self, at: f64, interval: f64, random: &mut Random) -> f64 {
        let stalls = self.stalls(&[StalledParty::ClientLate, StalledParty::ClientSkips]);
        stalls.map_or(at, |stalling| stalling.wake(at, interval, random))
    }
}
