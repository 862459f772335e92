//! Send stamps of replies that the connection they went over will not tell any more.
//!
//! A reply cannot carry its own send stamp; the next reply to the same flow does. Where a flow
//! takes a new connection for each message (REST style), the stamp waits here. The flow is known
//! by a number that its client made up and sends with each request.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use neph_model::Span;
use neph_wire::http::FlowToken;
use neph_wire::marks::PreviousTx;

/// Stamps that wait, of all flows together: a flow leaves one behind when it is over, and the
/// oldest make room. Searching through so many takes about a microsecond.
const ROOM: usize = 1024;
/// A stamp that was not asked for so long is of no use: its flow is over or has given it up.
const FRESH: Span = Span::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Departures(Mutex<VecDeque<(FlowToken, PreviousTx)>>);

impl Departures {
    /// A reply to `flow` left.
    pub(super) fn put(&self, flow: FlowToken, departed: PreviousTx) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = departed.nic_tx.saturating_sub(FRESH.nanos());
        while let Some((_, front)) = waiting.front()
            && (front.nic_tx < oldest || waiting.len() >= ROOM)
        {
            waiting.pop_front();
        }
        waiting.push_back((flow, departed));
    }

    /// The newest stamp that waits for `flow`: were it the oldest, a flow whose requests once came
    /// together and left several behind would learn each later one too late.
    pub(super) fn take(&self, flow: FlowToken) -> Option<PreviousTx> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waiting.iter().rposition(|(whose, _)| *whose == flow)?;
        waiting.remove(at).map(|(_, departed)| departed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn left(seq: u64) -> PreviousTx {
        PreviousTx { seq, nic_tx: 7 }
    }

    #[test]
    fn each_flow_gets_its_own_newest_first() {
        let departures = Departures::default();
        let (one, other) = (FlowToken(1), FlowToken(2));
        departures.put(one, left(10));
        departures.put(other, left(20));
        departures.put(one, left(11));
        let taken = [one, one, one, other].map(|flow| departures.take(flow).map(|d| d.seq));
        assert_eq!(taken, [Some(11), Some(10), None, Some(20)]);
    }

    #[test]
    fn a_flow_that_fell_behind_catches_up() {
        let departures = Departures::default();
        let second = 1_000_000_000;
        let flow = FlowToken(1);
        let mut told = Vec::new();
        for seq in 0_u32..10 {
            // The first three were asked for at once, when none had left.
            if seq >= 3 {
                told.push(departures.take(flow).map(|departed| departed.seq));
            }
            let nic_tx = i64::from(seq) * second;
            let seq = u64::from(seq);
            departures.put(flow, PreviousTx { seq, nic_tx });
        }
        assert_eq!(told, (2..9).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn a_peer_that_never_comes_again_takes_no_more_than_its_room() {
        let departures = Departures::default();
        for seq in 0..3 * ROOM as u64 {
            departures.put(FlowToken(seq), left(seq));
        }
        assert_eq!(departures.take(FlowToken(0)), None);
        assert!(departures.take(FlowToken(3 * ROOM as u64 - 1)).is_some());
        assert_eq!(
            departures.0.lock().expect("nobody panicked").len(),
            ROOM - 1
        );
    }
}
