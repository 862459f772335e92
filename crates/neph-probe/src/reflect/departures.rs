//! Send timestamps of replies that their own connection cannot report any more.
//!
//! A reply cannot carry its own send timestamp; the next reply to the same flow does. For a flow with a new
//! connection per message (REST style), the timestamp waits here. The client's address (the /64 for IPv6) and
//! a random number in each request identify the flow, so no peer takes the timestamps of another. The peer
//! with the most loses its oldest.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use neph_model::Span;
use neph_wire::http::FlowToken;
use neph_wire::marks::PreviousTx;

use super::network;

/// Waiting timestamps per peer. A flow leaves one at its end, and the oldest are dropped. A search through
/// this many takes about a microsecond.
const ROOM: usize = 1024;
/// Waiting timestamps of all peers: 1.5 MiB. Beyond that, the peer with the most loses its oldest.
const MAXIMUM: usize = 1 << 16;
/// A timestamp that is older than this is useless: its flow is over or no longer waits for it.
const FRESH: Span = Span::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Departures(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    peers: HashMap<IpAddr, PendingTimestamps>,
    /// Of all peers.
    count: usize,
}

/// Of one peer, oldest first.
type PendingTimestamps = VecDeque<(FlowToken, PreviousTx)>;

impl Departures {
    /// A reply to `flow` of `peer` left.
    pub(super) fn put(&self, peer: IpAddr, flow: FlowToken, departed: PreviousTx) {
        let peer = network::host(peer);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = departed.nic_tx.saturating_sub(FRESH.nanos());
        if state.count >= MAXIMUM {
            state.make_room(oldest);
        }
        let waiting = state.peers.entry(peer).or_default();
        let before = waiting.len();
        while let Some((_, front)) = waiting.front()
            && (front.nic_tx < oldest || waiting.len() >= ROOM)
        {
            waiting.pop_front();
        }
        waiting.push_back((flow, departed));
        let after = waiting.len();
        state.count = state.count + after - before;
    }

    /// The newest timestamp that waits for `flow` of `peer`. With the oldest, a flow that once left several
    /// would get each later one too late.
    pub(super) fn take(&self, peer: IpAddr, flow: FlowToken) -> Option<PreviousTx> {
        let peer = network::host(peer);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = state.peers.get_mut(&peer)?;
        let at = waiting.iter().rposition(|(whose, _)| *whose == flow)?;
        let taken = waiting.remove(at);
        if waiting.is_empty() {
            state.peers.remove(&peer);
        }
        state.count -= 1;
        taken.map(|(_, departed)| departed)
    }
}

impl State {
    /// Forgets timestamps before `oldest`. If there are none, half of those of the peer with the most.
    fn make_room(&mut self, oldest: i64) {
        self.peers.retain(|_, waiting| {
            waiting.retain(|(_, departed)| departed.nic_tx >= oldest);
            !waiting.is_empty()
        });
        self.count = self.peers.values().map(VecDeque::len).sum();
        if self.count < MAXIMUM {
            return;
        }
        let max = self.peers.values_mut().max_by_key(|waiting| waiting.len());
        if let Some(waiting) = max {
            let half = waiting.len().div_ceil(2);
            waiting.drain(..half);
            self.count -= half;
        }
        self.peers.retain(|_, waiting| !waiting.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// As many as [`MAXIMUM`].
    const MANY: u32 = 1 << 16;
    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    const fn left(seq: u64) -> PreviousTx {
        PreviousTx { seq, nic_tx: 7 }
    }

    #[test]
    fn each_flow_gets_its_own_newest_first() {
        let departures = Departures::default();
        let (first, other) = (FlowToken(1), FlowToken(2));
        departures.put(PEER, first, left(10));
        departures.put(PEER, other, left(20));
        departures.put(PEER, first, left(11));
        let taken =
            [first, first, first, other].map(|flow| departures.take(PEER, flow).map(|d| d.seq));
        assert_eq!(taken, [Some(11), Some(10), None, Some(20)]);
    }

    #[test]
    fn a_flow_that_fell_behind_catches_up() {
        let departures = Departures::default();
        let second = 1_000_000_000;
        let flow = FlowToken(1);
        let mut departed_value = Vec::new();
        for seq in 0_u32..10 {
            // The first three were asked for at once, when none had left.
            if seq >= 3 {
                departed_value.push(departures.take(PEER, flow).map(|departed| departed.seq));
            }
            let nic_tx = i64::from(seq) * second;
            let seq = u64::from(seq);
            departures.put(PEER, flow, PreviousTx { seq, nic_tx });
        }
        assert_eq!(departed_value, (2..9).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn a_peer_that_never_comes_again_takes_no_more_than_its_room() {
        let departures = Departures::default();
        for seq in 0..3 * ROOM as u64 {
            departures.put(PEER, FlowToken(seq), left(seq));
        }
        assert_eq!(departures.take(PEER, FlowToken(0)), None);
        assert!(
            departures
                .take(PEER, FlowToken(3 * ROOM as u64 - 1))
                .is_some()
        );
        let state = departures.0.lock().expect("nobody panicked");
        assert_eq!(state.peers[&PEER].len(), ROOM - 1);
    }

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn no_peer_takes_or_displaces_timestamps_of_another_peer() {
        let departures = Departures::default();
        let flow = FlowToken(1);
        departures.put(PEER, flow, left(7));
        assert_eq!(departures.take(address(1), flow), None);
        // More than there is room for, all as new as the first.
        for number in 1..100 {
            for seq in 0..2 * ROOM as u64 {
                departures.put(address(number), flow, left(seq));
            }
        }
        let count = departures.0.lock().expect("nobody panicked").count;
        assert!(count <= MAXIMUM, "{count}");
        assert_eq!(departures.take(PEER, flow).map(|departure| departure.seq), Some(7));
    }

    #[test]
    fn all_addresses_of_a_64_are_one_peer() {
        let departures = Departures::default();
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for seq in 0..2 * ROOM as u64 {
            let from = ip(&format!("2001:db8::{seq:x}"));
            departures.put(from, FlowToken(seq), left(seq));
        }
        let state = departures.0.lock().expect("nobody panicked");
        assert_eq!((state.peers.len(), state.count), (1, ROOM));
    }

    #[test]
    fn peers_that_are_gone_make_room_for_others() {
        let departures = Departures::default();
        let put = |number: u32, nic_tx| {
            let departed = PreviousTx { seq: 1, nic_tx };
            departures.put(address(number), FlowToken(1), departed);
        };
        for number in 0..MANY {
            put(number, 0);
        }
        put(1 << 20, FRESH.nanos() + 1);
        let state = departures.0.lock().expect("nobody panicked");
        assert_eq!((state.peers.len(), state.count), (1, 1));
    }
}
