//! Each peer's budget: messages and reply bytes per second, and memory. A peer is an IPv4 address, or the /64
//! of an IPv6 address. All peers of a /56 share one part of the memory.
//!
//! Token buckets for one second. Time is an argument. Does not own the count of connections
//! ([`super::connection_slots`]).

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use neph_model::{Instant, Local, ReflectorCaps};

use super::caps::Division;
use super::network;
use super::room::Room;
use crate::refused::Refusals;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Budgets {
    caps: ReflectorCaps,
    peers: Mutex<Peers>,
}

#[derive(Debug)]
struct Peers {
    /// Remembered budgets, at most. Beyond that, one without a connection is forgotten for each new one.
    capacity: usize,
    budgets: HashMap<IpAddr, Arc<Budget>>,
    /// The part of the memory for messages of each /56 with a budget.
    rooms: HashMap<IpAddr, Arc<Room>>,
    /// In the order of their beginning, or of the last check that they are in use.
    order: VecDeque<IpAddr>,
}

/// One peer's budget.
#[derive(Debug)]
pub(crate) struct Budget {
    caps: ReflectorCaps,
    room: Arc<Room>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    at: Instant<Local>,
    messages: i64,
    bytes: i64,
    refused_messages: u64,
    refused_connections: u64,
}

impl Budgets {
    pub(crate) fn new(caps: ReflectorCaps) -> Self {
        Self {
            caps,
            peers: Mutex::new(Peers {
                capacity: caps.peers(),
                budgets: HashMap::new(),
                rooms: HashMap::new(),
                order: VecDeque::new(),
            }),
        }
    }

    /// The budget of the peer at this address; `None` when too many peers are connected to remember another.
    pub(crate) fn of(&self, address: IpAddr, now: Instant<Local>) -> Option<Arc<Budget>> {
        let peer = network::host(address);
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = peers.budgets.get(&peer) {
            return Some(Arc::clone(budget));
        }
        peers.forget(now);
        if peers.budgets.len() >= peers.capacity {
            return None;
        }
        let of_peer = || Arc::new(self.caps.room_of_peer());
        let room = peers.rooms.entry(network::site(peer));
        let room = Arc::clone(room.or_insert_with(of_peer));
        let budget = Arc::new(Budget::new(self.caps, room, now));
        peers.budgets.insert(peer, Arc::clone(&budget));
        peers.order.push_back(peer);
        Some(budget)
    }
}

impl Peers {
    /// Makes room for a new peer. Each call checks two of the oldest, so none visits all of them.
    fn forget(&mut self, now: Instant<Local>) {
        for _ in 0..2 {
            self.forget_oldest(|budget| budget.is_as_new(now));
        }
        // A peer that is forgotten too early gets a full bucket again.
        let mut remaining = self.order.len();
        while self.budgets.len() >= self.capacity && remaining > 0 {
            self.forget_oldest(|_| true);
            remaining -= 1;
        }
    }

    /// Forgets the oldest peer, or puts it last if it has a connection or is not `spare`.
    fn forget_oldest(&mut self, spare: impl FnOnce(&Budget) -> bool) {
        let Some(peer) = self.order.pop_front() else {
            return;
        };
        let is_idle = self
            .budgets
            .get(&peer)
            .is_none_or(|budget| Arc::strong_count(budget) == 1 && spare(budget));
        if is_idle {
            let forgotten = self.budgets.remove(&peer);
            // The last of its /56: only the table still refers to the room. A connection refers to it through
            // its budget, and this peer had no connection.
            if forgotten.is_some_and(|budget| Arc::strong_count(&budget.room) == 2) {
                self.rooms.remove(&network::site(peer));
            }
        } else {
            self.order.push_back(peer);
        }
    }
}

impl Budget {
    pub(crate) fn new(caps: ReflectorCaps, room: Arc<Room>, now: Instant<Local>) -> Self {
        let state = State {
            at: now,
            messages: full(caps.messages_per_second.into()),
            bytes: full(bytes_per_second(&caps)),
            refused_messages: 0,
            refused_connections: 0,
        };
        Self {
            caps,
            room,
            state: Mutex::new(state),
        }
    }

    /// The part of the memory for messages of its /56.
    pub(super) const fn room(&self) -> &Arc<Room> {
        &self.room
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one message with a reply of `bytes`, if the budget has it. A reply larger than one second's
    /// bytes is sent when the bucket is full, and is paid off afterwards.
    pub(super) fn spend(&self, bytes: u64, now: Instant<Local>) -> bool {
        let mut state = self.lock();
        state.refill(&self.caps, now);
        if state.messages < NANOS_PER_SECOND || state.bytes <= 0 {
            state.refused_messages += 1;
            return false;
        }
        let cost = i64::try_from(bytes)
            .unwrap_or(i64::MAX)
            .saturating_mul(NANOS_PER_SECOND);
        state.messages -= NANOS_PER_SECOND;
        state.bytes = state.bytes.saturating_sub(cost);
        true
    }

    /// Whether a new budget would be equal.
    fn is_as_new(&self, now: Instant<Local>) -> bool {
        let mut state = self.lock();
        state.refill(&self.caps, now);
        state.messages == full(self.caps.messages_per_second.into())
            && state.bytes == full(bytes_per_second(&self.caps))
    }

    /// A connection of the peer was refused.
    pub(super) fn refuse_connection(&self) {
        self.lock().refused_connections += 1;
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
}

impl State {
    fn refill(&mut self, caps: &ReflectorCaps, now: Instant<Local>) {
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
    rate.saturating_mul(NANOS_PER_SECOND)
}

fn bytes_per_second(caps: &ReflectorCaps) -> i64 {
    i64::try_from(caps.reply_rate.bits_per_second() / 8).unwrap_or(i64::MAX / NANOS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use neph_model::BitRate;

    use super::*;

    fn at(millis: i64) -> Instant<Local> {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn budget_of(caps: ReflectorCaps) -> Budget {
        Budget::new(caps, Arc::new(caps.room_of_peer()), at(0))
    }

    #[test]
    fn a_burst_of_one_second_is_allowed_before_the_rate_applies() {
        let caps = ReflectorCaps {
            messages_per_second: 10,
            ..ReflectorCaps::default()
        };
        let budget = budget_of(caps);
        let at_once = (0..30).filter(|_| budget.spend(1, at(0))).count();
        assert_eq!((at_once, budget.refused().messages), (10, 20));
        let in_the_next_second = (0..1000).filter(|ms| budget.spend(1, at(*ms))).count();
        assert!(
            (9..=10).contains(&in_the_next_second),
            "{in_the_next_second}"
        );
    }

    #[test]
    fn a_large_reply_uses_budget_before_the_next_reply() {
        let caps = ReflectorCaps {
            reply_rate: BitRate(8_000),
            ..ReflectorCaps::default()
        };
        let budget = budget_of(caps);
        assert!(budget.spend(3_000, at(0)));
        assert!(!budget.spend(1, at(1_900)));
        assert!(budget.spend(1, at(2_100)));
    }

    fn ip(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn all_addresses_of_a_64_have_one_budget() {
        let budgets = Budgets::new(ReflectorCaps::default());
        let of = |text: &str| {
            let address = text.parse().expect("an address");
            budgets.of(address, at(0)).expect("room")
        };
        let first = of("2001:db8::1");
        assert!(Arc::ptr_eq(&first, &of("2001:db8::ffff:2")));
        assert!(!Arc::ptr_eq(&first, &of("2001:db8:0:1::1")));
    }

    #[test]
    fn all_addresses_of_a_56_share_one_part_of_the_memory() {
        let caps = ReflectorCaps::default();
        let budgets = Budgets::new(caps);
        let of = |text: &str| {
            let address = text.parse().expect("an address");
            budgets.of(address, at(0)).expect("room")
        };
        let [first, next, other] =
            ["2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:100::1"].map(of);
        assert!(!Arc::ptr_eq(&first, &next), "each /64 has its rate");
        assert!(Arc::ptr_eq(first.room(), next.room()));
        assert!(!Arc::ptr_eq(first.room(), other.room()));
        drop((first, next, other));
        let mut peers = budgets.peers.lock().expect("nobody panicked");
        for remaining in [2, 1, 0] {
            peers.forget_oldest(|_| true);
            // The /56 of two goes with the second of them.
            assert_eq!(
                (peers.budgets.len(), peers.rooms.len()),
                (remaining, remaining)
            );
        }
    }

    #[test]
    fn idle_peers_are_evicted_and_active_peers_are_kept() {
        let budgets = Budgets::new(ReflectorCaps::default());
        let connected = budgets.of(ip(0), at(0)).expect("room");
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
    fn a_flood_of_addresses_does_not_evict_a_connected_peer() {
        let budgets = Budgets::new(ReflectorCaps::default());
        let _connected = budgets.of(ip(0), at(0)).expect("room");
        let max_peers = ReflectorCaps::default().peers();
        let address_count = u32::try_from(2 * max_peers).expect("not that many");
        for peer in 1..address_count {
            let budget = budgets.of(ip(peer), at(0)).expect("room");
            assert!(budget.spend(1, at(0)));
        }
        let peers = budgets.peers.lock().expect("nobody panicked");
        assert_eq!(peers.budgets.len(), max_peers);
        assert!(peers.budgets.contains_key(&ip(0)));
    }
}
