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
const MAX_PER_PEER: usize = 1024;
/// Waiting timestamps of all peers: 1.5 MiB. Beyond that, the peer with the most loses its oldest.
const MAX_TOTAL: usize = 1 << 16;
/// A timestamp that is older than this is useless: its flow is over or no longer waits for it.
const MAX_AGE: Span = Span::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct PendingTxTimestamps(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    peers: HashMap<IpAddr, PendingTimestamps>,
    /// Of all peers.
    count: usize,
}

/// Of one peer, oldest first.
type PendingTimestamps = VecDeque<(FlowToken, PreviousTx)>;

impl PendingTxTimestamps {
    /// A reply to `flow` of `peer` left.
    pub(super) fn put(&self, peer: IpAddr, flow: FlowToken, timestamp: PreviousTx) {
        let peer = network::host(peer);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let expiry = timestamp.nic_tx.saturating_sub(MAX_AGE.nanos());
        if state.count >= MAX_TOTAL {
            state.make_room(expiry);
        }
        let queue = state.peers.entry(peer).or_default();
        let old_len = queue.len();
        while let Some((_, front)) = queue.front()
            && (front.nic_tx < expiry || queue.len() >= MAX_PER_PEER)
        {
            queue.pop_front();
        }
        queue.push_back((flow, timestamp));
        let new_len = queue.len();
        state.count = state.count + new_len - old_len;
    }

    /// The newest timestamp that waits for `flow` of `peer`. With the oldest, a flow that once left several
    /// would get each later one too late.
    pub(super) fn take(&self, peer: IpAddr, flow: FlowToken) -> Option<PreviousTx> {
        let peer = network::host(peer);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = state.peers.get_mut(&peer)?;
        let index = queue.iter().rposition(|(token, _)| *token == flow)?;
        let timestamp = queue.remove(index);
        if queue.is_empty() {
            state.peers.remove(&peer);
        }
        state.count -= 1;
        timestamp.map(|(_, timestamp)| timestamp)
    }
}

impl State {
    /// Forgets timestamps before `expiry`. If there are none, half of those of the peer with the most.
    fn make_room(&mut self, expiry: i64) {
        self.peers.retain(|_, queue| {
            queue.retain(|(_, timestamp)| timestamp.nic_tx >= expiry);
            !queue.is_empty()
        });
        self.count = self.peers.values().map(VecDeque::len).sum();
        if self.count < MAX_TOTAL {
            return;
        }
        let max = self.peers.values_mut().max_by_key(|queue| queue.len());
        if let Some(queue) = max {
            let half = queue.len().div_ceil(2);
            queue.drain(..half);
            self.count -= half;
        }
        self.peers.retain(|_, queue| !queue.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// As many as [`MAX_TOTAL`].
    const MAX_TOTAL_U32: u32 = 1 << 16;
    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    const fn tx_timestamp(seq: u64) -> PreviousTx {
        PreviousTx { seq, nic_tx: 7 }
    }

    #[test]
    fn each_flow_gets_its_own_tx_timestamps_newest_first() {
        let timestamps = PendingTxTimestamps::default();
        let (first, other) = (FlowToken(1), FlowToken(2));
        timestamps.put(PEER, first, tx_timestamp(10));
        timestamps.put(PEER, other, tx_timestamp(20));
        timestamps.put(PEER, first, tx_timestamp(11));
        let taken =
            [first, first, first, other].map(|flow| timestamps.take(PEER, flow).map(|d| d.seq));
        assert_eq!(taken, [Some(11), Some(10), None, Some(20)]);
    }

    #[test]
    fn a_flow_that_fell_behind_catches_up() {
        const NANOS_PER_SECOND: i64 = 1_000_000_000;
        let timestamps = PendingTxTimestamps::default();
        let flow = FlowToken(1);
        let mut taken_seqs = Vec::new();
        for seq in 0_u32..10 {
            // The first three were asked for at once, when none had left.
            if seq >= 3 {
                taken_seqs.push(timestamps.take(PEER, flow).map(|timestamp| timestamp.seq));
            }
            let nic_tx = i64::from(seq) * NANOS_PER_SECOND;
            let seq = u64::from(seq);
            timestamps.put(PEER, flow, PreviousTx { seq, nic_tx });
        }
        assert_eq!(taken_seqs, (2..9).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn the_pending_tx_timestamps_of_a_silent_peer_are_bounded() {
        let timestamps = PendingTxTimestamps::default();
        for seq in 0..3 * MAX_PER_PEER as u64 {
            timestamps.put(PEER, FlowToken(seq), tx_timestamp(seq));
        }
        assert_eq!(timestamps.take(PEER, FlowToken(0)), None);
        assert!(
            timestamps
                .take(PEER, FlowToken(3 * MAX_PER_PEER as u64 - 1))
                .is_some()
        );
        let state = timestamps.0.lock().expect("nobody panicked");
        assert_eq!(state.peers[&PEER].len(), MAX_PER_PEER - 1);
    }

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn no_peer_takes_or_displaces_timestamps_of_another_peer() {
        let timestamps = PendingTxTimestamps::default();
        let flow = FlowToken(1);
        timestamps.put(PEER, flow, tx_timestamp(7));
        assert_eq!(timestamps.take(address(1), flow), None);
        // More than there is room for, all as new as the first.
        for number in 1..100 {
            for seq in 0..2 * MAX_PER_PEER as u64 {
                timestamps.put(address(number), flow, tx_timestamp(seq));
            }
        }
        let count = timestamps.0.lock().expect("nobody panicked").count;
        assert!(count <= MAX_TOTAL, "{count}");
        assert_eq!(
            timestamps.take(PEER, flow).map(|timestamp| timestamp.seq),
            Some(7)
        );
    }

    #[test]
    fn all_addresses_of_a_64_are_one_peer() {
        let timestamps = PendingTxTimestamps::default();
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for seq in 0..2 * MAX_PER_PEER as u64 {
            let from = ip(&format!("2001:db8::{seq:x}"));
            timestamps.put(from, FlowToken(seq), tx_timestamp(seq));
        }
        let state = timestamps.0.lock().expect("nobody panicked");
        assert_eq!((state.peers.len(), state.count), (1, MAX_PER_PEER));
    }

    #[test]
    fn expired_peers_are_evicted_for_new_ones() {
        let timestamps = PendingTxTimestamps::default();
        let put = |number: u32, nic_tx| {
            let timestamp = PreviousTx { seq: 1, nic_tx };
            timestamps.put(address(number), FlowToken(1), timestamp);
        };
        for number in 0..MAX_TOTAL_U32 {
            put(number, 0);
        }
        put(1 << 20, MAX_AGE.nanos() + 1);
        let state = timestamps.0.lock().expect("nobody panicked");
        assert_eq!((state.peers.len(), state.count), (1, 1));
    }
}
