//! The connections of a reflector, and which one ends when there are too many.
//!
//! An address and a /64 have a share, and a /56 has half as much more. When all places are taken, the network
//! with the most connections loses the one that was idle longest. The newcomer is refused if its own network
//! has as many. With fewer free places, idle connections are closed sooner.
//!
//! Does not serve connections.

use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_model::{Instant, Local, ReflectorCaps, Span};

use super::caps::Division;
use super::network::Networks;

/// A connection may always be idle for this time.
const MIN_IDLE: Span = Span::from_secs(5);

/// All places.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    caps: ReflectorCaps,
    taken: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<u64, ConnectionSlot>,
    /// Connections of each network, for each prefix length.
    counts: [HashMap<IpAddr, u32>; 3],
    /// Ended to make room; their threads still run.
    leaving: u32,
    next: u64,
}

#[derive(Debug)]
struct ConnectionSlot {
    networks: Networks,
    received: Arc<AtomicI64>,
    stream: Arc<TcpStream>,
}

/// One connection's place, given back when dropped.
#[derive(Debug)]
pub(super) struct SlotGuard {
    connection_slots: Arc<ConnectionSlots>,
    number: u64,
    received: Arc<AtomicI64>,
}

/// The result for a new connection.
#[derive(Debug)]
pub(super) enum Reception {
    /// There was a place.
    Granted(SlotGuard),
    /// There was none, and another connection was ended for it.
    Replaced(SlotGuard),
    /// There is none for this peer.
    Refused,
}

impl ConnectionSlots {
    pub(crate) fn new(caps: ReflectorCaps) -> Self {
        Self {
            caps,
            taken: AtomicU32::new(0),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seats a connection of `peer`, if there is a place for it.
    pub(super) fn receive(
        self: &Arc<Self>,
        peer: IpAddr,
        stream: &Arc<TcpStream>,
        now: Instant<Local>,
    ) -> Reception {
        let networks = Networks::of(peer);
        let mut state = self.lock();
        let is_within = |(width, count)| count < self.share(width);
        if !state
            .counted(&networks)
            .into_iter()
            .enumerate()
            .all(is_within)
        {
            return Reception::Refused;
        }
        let open_count = state.slots.len() + state.leaving as usize;
        let max = self.caps.connections;
        let is_full = state.slots.len() >= max as usize;
        if is_full
            && (open_count >= (max + self.caps.leaving()) as usize || !state.end_one(&networks))
        {
            return Reception::Refused;
        }
        let received = Arc::new(AtomicI64::new(now.nanos()));
        let slot = ConnectionSlot {
            networks,
            received: Arc::clone(&received),
            stream: Arc::clone(stream),
        };
        let number = state.add_slot(slot);
        self.taken.store(state.places(), Ordering::Relaxed);
        let connection_slots = Arc::clone(self);
        let guard = SlotGuard {
            connection_slots,
            number,
            received,
        };
        if is_full {
            Reception::Replaced(guard)
        } else {
            Reception::Granted(guard)
        }
    }

    /// Places of a network of this width: 0 is a /56, 1 a /64, 2 an address.
    const fn share(&self, width: usize) -> u32 {
        let share = self.caps.connections_per_peer;
        match width {
            0 => share.saturating_add(share / 2),
            _ => share,
        }
    }

    /// How long a connection may be idle: less and less when more than half of the places are taken.
    pub(super) fn idle(&self) -> Span {
        let (taken, max) = (self.taken.load(Ordering::Relaxed), self.caps.connections);
        let left = i64::from(max.saturating_sub(taken));
        let half = i64::from((max / 2).max(1));
        let idle = self.caps.idle;
        if left >= half {
            return idle;
        }
        let shortened = Span::from_nanos(idle.nanos() / half * left);
        shortened.max(MIN_IDLE.min(idle))
    }

    fn leave(&self, number: u64) {
        let mut state = self.lock();
        if state.remove_slot(number).is_none() {
            state.leaving -= 1;
        }
        self.taken.store(state.places(), Ordering::Relaxed);
    }
}

impl SlotGuard {
    /// The peer sent something.
    pub(super) fn record_received(&self, now: Instant<Local>) {
        self.received.store(now.nanos(), Ordering::Relaxed);
    }

    /// How long it may be idle.
    pub(super) fn idle(&self) -> Span {
        self.connection_slots.idle()
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.connection_slots.leave(self.number);
    }
}

impl State {
    fn places(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }

    /// Connections of the networks, in their order.
    fn counted(&self, networks: &Networks) -> [u32; 3] {
        std::array::from_fn(|width| self.count(width, &networks.0[width]))
    }

    fn count(&self, width: usize, network: &IpAddr) -> u32 {
        self.counts[width].get(network).copied().unwrap_or(0)
    }

    fn add_slot(&mut self, slot: ConnectionSlot) -> u64 {
        for (counts, network) in self.counts.iter_mut().zip(slot.networks.0) {
            *counts.entry(network).or_insert(0) += 1;
        }
        let number = self.next;
        self.next += 1;
        self.slots.insert(number, slot);
        number
    }

    fn remove_slot(&mut self, number: u64) -> Option<ConnectionSlot> {
        let slot = self.slots.remove(&number)?;
        for (counts, network) in self.counts.iter_mut().zip(slot.networks.0) {
            if let Some(count) = counts.get_mut(&network) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&network);
                }
            }
        }
        Some(slot)
    }

    /// Ends one connection for a newcomer from these networks. Returns whether there was one.
    fn end_one(&mut self, newcomer: &Networks) -> bool {
        let Some(number) = self.longest_idle_of_greediest(newcomer) else {
            return false;
        };
        let Some(slot) = self.remove_slot(number) else {
            return false;
        };
        // Its thread wakes up and finds the connection ended; the peer may have ended it before.
        let _ = slot.stream.shutdown(Shutdown::Both);
        self.leaving += 1;
        true
    }

    /// From the widest networks to addresses: the one with the most connections, unless the newcomer's
    /// network would have as many with one more.
    fn longest_idle_of_greediest(&self, newcomer: &Networks) -> Option<u64> {
        let mut within: Vec<(&u64, &ConnectionSlot)> = self.slots.iter().collect();
        let mut is_own = true;
        for width in 0..3 {
            let own_network = newcomer.0[width];
            let greediest = within
                .iter()
                .map(|(_, connection_slot)| connection_slot.networks.0[width])
                .max_by_key(|network| self.count(width, network))?;
            let has_more = self.count(width, &greediest) >= self.count(width, &own_network) + 2;
            let chosen = if !is_own || has_more {
                greediest
            } else {
                own_network
            };
            is_own = is_own && chosen == own_network;
            within.retain(|(_, connection_slot)| connection_slot.networks.0[width] == chosen);
        }
        if is_own {
            return None;
        }
        let longest = |(_, slot): &&(&u64, &ConnectionSlot)| slot.received.load(Ordering::Relaxed);
        within
            .iter()
            .min_by_key(longest)
            .map(|(number, _)| **number)
    }
}

#[cfg(test)]
mod tests;
