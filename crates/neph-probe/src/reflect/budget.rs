//! Each peer address's budget: messages and reply bytes a second, connections at a time.
//!
//! Token buckets that hold a second's worth. Time is an argument.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use neph_model::{Instant, Own};

use super::caps::Caps;
use super::room::Room;

/// Peers are remembered up to here; beyond, those without a connection are forgotten first.
const MAX_PEERS: usize = 1 << 16;
const SECOND: i64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Budgets {
    caps: Caps,
    peers: Mutex<HashMap<IpAddr, Arc<Budget>>>,
}

/// One peer address's budget.
#[derive(Debug)]
pub(crate) struct Budget {
    caps: Caps,
    room: Arc<Room>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    at: Instant<Own>,
    messages: i64,
    bytes: i64,
    connections: u32,
}

impl Budgets {
    pub(crate) fn new(caps: Caps) -> Self {
        Self {
            caps,
            peers: Mutex::new(HashMap::new()),
        }
    }

    /// The budget of `peer`; `None` when too many peers are connected to remember another.
    pub(crate) fn of(&self, peer: IpAddr, now: Instant<Own>) -> Option<Arc<Budget>> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = peers.get(&peer) {
            return Some(Arc::clone(budget));
        }
        if peers.len() >= MAX_PEERS {
            peers.retain(|_, budget| Arc::strong_count(budget) > 1);
        }
        if peers.len() >= MAX_PEERS {
            return None;
        }
        let budget = Arc::new(Budget::new(self.caps, now));
        peers.insert(peer, Arc::clone(&budget));
        Some(budget)
    }

    /// How many connections all peers have.
    pub(super) fn connections(&self) -> u32 {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.values().map(|budget| budget.lock().connections).sum()
    }
}

impl Budget {
    fn new(caps: Caps, now: Instant<Own>) -> Self {
        let state = State {
            at: now,
            messages: i64::from(caps.messages_per_second) * SECOND,
            bytes: bytes_per_second(caps).saturating_mul(SECOND),
            connections: 0,
        };
        Self {
            caps,
            room: Arc::new(Room::of_peer(&caps)),
            state: Mutex::new(state),
        }
    }

    /// Its part of the memory for messages.
    pub(super) const fn room(&self) -> &Arc<Room> {
        &self.room
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one message with a reply of `bytes`, if the budget has it. A reply larger than a
    /// second's worth goes when the bucket is full, and is paid off afterwards.
    pub(super) fn spend(&self, bytes: u64, now: Instant<Own>) -> bool {
        let mut state = self.lock();
        let elapsed = (now - state.at).nanos().max(0);
        state.at = now;
        let (messages, rate) = (
            i64::from(self.caps.messages_per_second),
            bytes_per_second(self.caps),
        );
        let refill = |level: i64, rate: i64| {
            level
                .saturating_add(elapsed.saturating_mul(rate))
                .min(rate.saturating_mul(SECOND))
        };
        state.messages = refill(state.messages, messages);
        state.bytes = refill(state.bytes, rate);
        if state.messages < SECOND || state.bytes <= 0 {
            return false;
        }
        let cost = i64::try_from(bytes)
            .unwrap_or(i64::MAX)
            .saturating_mul(SECOND);
        state.messages -= SECOND;
        state.bytes = state.bytes.saturating_sub(cost);
        true
    }

    /// Takes a connection, if the peer may have another.
    pub(super) fn connect(&self) -> bool {
        let mut state = self.lock();
        let may = state.connections < self.caps.connections_per_peer;
        state.connections += u32::from(may);
        may
    }

    /// Gives a connection back.
    pub(super) fn disconnect(&self) {
        let mut state = self.lock();
        state.connections = state.connections.saturating_sub(1);
    }
}

fn bytes_per_second(caps: Caps) -> i64 {
    i64::try_from(caps.reply_rate.bits_per_second() / 8).unwrap_or(i64::MAX / SECOND)
}

#[cfg(test)]
mod tests {
    use neph_model::BitRate;

    use super::*;

    fn at(millis: i64) -> Instant<Own> {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_second_of_messages_may_come_at_once_and_then_the_rate_holds() {
        let caps = Caps {
            messages_per_second: 10,
            ..Caps::default()
        };
        let budget = Budget::new(caps, at(0));
        let at_once = (0..30).filter(|_| budget.spend(1, at(0))).count();
        assert_eq!(at_once, 10);
        let in_the_next_second = (0..1000).filter(|ms| budget.spend(1, at(*ms))).count();
        assert!(
            (9..=10).contains(&in_the_next_second),
            "{in_the_next_second}"
        );
    }

    #[test]
    fn a_large_reply_is_paid_off_before_the_next() {
        let caps = Caps {
            reply_rate: BitRate(8_000),
            ..Caps::default()
        };
        let budget = Budget::new(caps, at(0));
        assert!(budget.spend(3_000, at(0)));
        assert!(!budget.spend(1, at(1_900)));
        assert!(budget.spend(1, at(2_100)));
    }

    #[test]
    fn a_peer_has_no_more_connections_than_its_cap() {
        let caps = Caps {
            connections_per_peer: 2,
            ..Caps::default()
        };
        let budget = Budget::new(caps, at(0));
        assert!(budget.connect() && budget.connect() && !budget.connect());
        budget.disconnect();
        assert!(budget.connect());
    }
}
