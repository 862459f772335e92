//! Each peer address's budget: messages and reply bytes a second, connections at a time.
//!
//! Token buckets that hold a second's worth. Time is an argument.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use neph_model::{Instant, Own};

use super::caps::Caps;
use super::room::Room;
use crate::refusals::Refusals;

/// Peers are remembered up to here; beyond, one without a connection is forgotten for each.
const MAX_PEERS: usize = 1 << 16;
const SECOND: i64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Budgets {
    caps: Caps,
    /// Connections of all peers.
    connections: Arc<AtomicU32>,
    peers: Mutex<Peers>,
}

#[derive(Debug, Default)]
struct Peers {
    budgets: HashMap<IpAddr, Arc<Budget>>,
    /// In the order in which they came, or were last found to be needed.
    order: VecDeque<IpAddr>,
}

/// One peer address's budget.
#[derive(Debug)]
pub(crate) struct Budget {
    caps: Caps,
    /// Connections of all peers.
    all: Arc<AtomicU32>,
    room: Arc<Room>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    at: Instant<Own>,
    messages: i64,
    bytes: i64,
    connections: u32,
    refused_messages: u64,
    refused_connections: u64,
}

impl Budgets {
    pub(crate) fn new(caps: Caps) -> Self {
        Self {
            caps,
            connections: Arc::default(),
            peers: Mutex::default(),
        }
    }

    /// The budget of `peer`; `None` when too many peers are connected to remember another.
    pub(crate) fn of(&self, peer: IpAddr, now: Instant<Own>) -> Option<Arc<Budget>> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = peers.budgets.get(&peer) {
            return Some(Arc::clone(budget));
        }
        peers.forget(now);
        if peers.budgets.len() >= MAX_PEERS {
            return None;
        }
        let all = Arc::clone(&self.connections);
        let budget = Arc::new(Budget::new(self.caps, all, now));
        peers.budgets.insert(peer, Arc::clone(&budget));
        peers.order.push_back(peer);
        Some(budget)
    }
}

impl Peers {
    /// Makes room for a newcomer. Each lets two of those that were here longest show that they
    /// are needed: nobody ever waits for a walk through all of them.
    fn forget(&mut self, now: Instant<Own>) {
        for _ in 0..2 {
            self.forget_oldest(|budget| budget.is_as_new(now));
        }
        // A peer that is forgotten too early gets its second's worth again.
        let mut left = self.order.len();
        while self.budgets.len() >= MAX_PEERS && left > 0 {
            self.forget_oldest(|_| true);
            left -= 1;
        }
    }

    /// Forgets the peer that was here longest, or puts it last: if it has a connection, or is not
    /// `spare`.
    fn forget_oldest(&mut self, spare: impl FnOnce(&Budget) -> bool) {
        let Some(peer) = self.order.pop_front() else {
            return;
        };
        let idle = self
            .budgets
            .get(&peer)
            .is_none_or(|budget| Arc::strong_count(budget) == 1 && spare(budget));
        if idle {
            self.budgets.remove(&peer);
        } else {
            self.order.push_back(peer);
        }
    }
}

impl Budget {
    fn new(caps: Caps, all: Arc<AtomicU32>, now: Instant<Own>) -> Self {
        let state = State {
            at: now,
            messages: full(caps.messages_per_second.into()),
            bytes: full(bytes_per_second(&caps)),
            connections: 0,
            refused_messages: 0,
            refused_connections: 0,
        };
        Self {
            caps,
            all,
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
        state.refill(&self.caps, now);
        if state.messages < SECOND || state.bytes <= 0 {
            state.refused_messages += 1;
            return false;
        }
        let cost = i64::try_from(bytes)
            .unwrap_or(i64::MAX)
            .saturating_mul(SECOND);
        state.messages -= SECOND;
        state.bytes = state.bytes.saturating_sub(cost);
        true
    }

    /// Whether a budget that were made now would be no other.
    fn is_as_new(&self, now: Instant<Own>) -> bool {
        let mut state = self.lock();
        state.refill(&self.caps, now);
        state.connections == 0
            && state.messages == full(self.caps.messages_per_second.into())
            && state.bytes == full(bytes_per_second(&self.caps))
    }

    /// Takes a connection, if the peer may have another and all together may.
    pub(super) fn connect(&self) -> bool {
        let mut state = self.lock();
        if state.connections >= self.caps.connections_per_peer {
            state.refused_connections += 1;
            return false;
        }
        let one_more = |all: u32| (all < self.caps.connections).then(|| all + 1);
        let taken = self
            .all
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        state.connections += u32::from(taken.is_ok());
        state.refused_connections += u64::from(taken.is_err());
        taken.is_ok()
    }

    /// What was refused so far.
    pub(super) fn refused(&self) -> Refusals {
        let state = self.lock();
        Refusals {
            messages: state.refused_messages,
            messages_per_second: self.caps.messages_per_second,
            connections: state.refused_connections,
            connections_per_peer: self.caps.connections_per_peer,
            ..Refusals::default()
        }
    }

    /// Gives a connection back.
    pub(super) fn disconnect(&self) {
        self.lock().connections -= 1;
        self.all.fetch_sub(1, Ordering::AcqRel);
    }
}

impl State {
    fn refill(&mut self, caps: &Caps, now: Instant<Own>) {
        let elapsed = (now - self.at).nanos().max(0);
        self.at = now;
        let refill = |level: i64, rate: i64| {
            level
                .saturating_add(elapsed.saturating_mul(rate))
                .min(full(rate))
        };
        self.messages = refill(self.messages, caps.messages_per_second.into());
        self.bytes = refill(self.bytes, bytes_per_second(caps));
    }
}

/// A bucket holds a second's worth.
const fn full(rate: i64) -> i64 {
    rate.saturating_mul(SECOND)
}

fn bytes_per_second(caps: &Caps) -> i64 {
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
        let budget = Budget::new(caps, Arc::default(), at(0));
        let at_once = (0..30).filter(|_| budget.spend(1, at(0))).count();
        assert_eq!((at_once, budget.refused().messages), (10, 20));
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
        let budget = Budget::new(caps, Arc::default(), at(0));
        assert!(budget.spend(3_000, at(0)));
        assert!(!budget.spend(1, at(1_900)));
        assert!(budget.spend(1, at(2_100)));
    }

    fn ip(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn all_peers_together_have_no_more_connections_than_their_cap() {
        let caps = Caps {
            connections: 2,
            ..Caps::default()
        };
        let budgets = Budgets::new(caps);
        let peers = [1, 2, 3].map(|peer| budgets.of(ip(peer), at(0)).expect("room"));
        assert_eq!(
            [0, 1, 2].map(|peer| peers[peer].connect()),
            [true, true, false]
        );
        peers[0].disconnect();
        assert!(peers[2].connect());
    }

    #[test]
    fn peers_that_come_and_go_are_forgotten_and_those_that_are_needed_are_not() {
        let budgets = Budgets::new(Caps::default());
        let connected = budgets.of(ip(0), at(0)).expect("room");
        assert!(connected.connect());
        for second in 1..100_u32 {
            let now = at(i64::from(second) * 2_000);
            for peer in 0..100 {
                let budget = budgets.of(ip(second * 1_000 + peer), now).expect("room");
                assert!(budget.spend(1, now));
            }
        }
        let peers = budgets.peers.lock().expect("nobody panicked");
        assert!(
            peers.budgets.len() <= 300,
            "{} are known",
            peers.budgets.len()
        );
        assert_eq!(peers.order.len(), peers.budgets.len());
        assert!(Arc::ptr_eq(&peers.budgets[&ip(0)], &connected));
    }

    #[test]
    fn a_flood_of_addresses_takes_no_more_than_its_room_and_shuts_nobody_out() {
        let budgets = Budgets::new(Caps::default());
        let connected = budgets.of(ip(0), at(0)).expect("room");
        assert!(connected.connect());
        let twice = u32::try_from(2 * MAX_PEERS).expect("not that many");
        for peer in 1..twice {
            let budget = budgets.of(ip(peer), at(0)).expect("room");
            assert!(budget.spend(1, at(0)));
        }
        let peers = budgets.peers.lock().expect("nobody panicked");
        assert_eq!(peers.budgets.len(), MAX_PEERS);
        assert!(peers.budgets.contains_key(&ip(0)));
    }

    #[test]
    fn a_peer_has_no_more_connections_than_its_cap() {
        let caps = Caps {
            connections_per_peer: 2,
            ..Caps::default()
        };
        let budget = Budget::new(caps, Arc::default(), at(0));
        assert!(budget.connect() && budget.connect() && !budget.connect());
        assert_eq!(budget.refused().connections, 1);
        budget.disconnect();
        assert!(budget.connect());
    }
}
