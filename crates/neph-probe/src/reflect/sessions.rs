//! The STAMP sessions of a reflector: one for each address and port that sends requests.
//!
//! No operation visits all of them.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use neph_model::{Instant, Local, Span};

use super::session::Session;

/// A session without requests for this long is forgotten first.
const SESSION_IDLE: Span = Span::from_secs(60);

#[derive(Debug)]
pub(crate) struct Sessions {
    /// Remembered sessions, at most. Beyond that, one is forgotten for each new one.
    capacity: usize,
    known: HashMap<SocketAddr, Session>,
    /// In the order of their beginning, or of the last check that they are in use.
    order: VecDeque<SocketAddr>,
}

impl Sessions {
    /// Room for that many.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            known: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// The session of `peer` for request `seq`. A request 0 after others begins a new session: another flow
    /// got the same port.
    pub(crate) fn of(&mut self, peer: SocketAddr, seq: u32, now: Instant<Local>) -> &mut Session {
        if !self.known.contains_key(&peer) {
            self.forget(now);
            self.order.push_back(peer);
        }
        let session = self.known.entry(peer).or_insert_with(|| Session::new(now));
        if seq == 0 && session.is_past_first() {
            session.begin_anew();
        }
        session
    }

    /// An existing session.
    pub(crate) fn get_mut(&mut self, peer: &SocketAddr) -> Option<&mut Session> {
        self.known.get_mut(peer)
    }

    /// Makes room for a new session: of the oldest ones, forgets one that is idle, else the third. A
    /// forgotten peer loses a send timestamp, and counts from 0 again.
    fn forget(&mut self, now: Instant<Local>) {
        for last in [false, false, true] {
            if self.known.len() < self.capacity {
                return;
            }
            let Some(peer) = self.order.pop_front() else {
                return;
            };
            let last_seen = self.known.get(&peer).map(Session::last_seen);
            if last || last_seen.is_none_or(|instant| now - instant >= SESSION_IDLE) {
                self.known.remove(&peer);
            } else {
                self.order.push_back(peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_wire::marks::PreviousTx;

    use super::*;

    fn at(secs: i64) -> Instant<Local> {
        Instant::from_nanos(secs * 1_000_000_000)
    }

    fn peer(number: u32) -> SocketAddr {
        let [a, b, c, d] = number.to_be_bytes();
        ([10, b, c, d], 1_000 + u16::from(a)).into()
    }

    #[test]
    fn a_full_table_evicts_one_idle_session_per_new_peer() {
        const MAXIMUM: usize = 1 << 12;
        let mut sessions = Sessions::new(MAXIMUM);
        let maximum = u32::try_from(MAXIMUM).expect("small");
        for number in 0..maximum {
            sessions.of(peer(number), 0, at(0));
        }
        // Session 0 is busy, those that follow are not.
        let busy = sessions.of(peer(0), 1, at(100));
        assert!(busy.repeats.admit(1, at(100)));
        sessions.of(peer(maximum), 0, at(100));
        assert_eq!(sessions.known.len(), MAXIMUM);
        assert!(sessions.get_mut(&peer(0)).is_some());
        assert!(sessions.get_mut(&peer(1)).is_none());
        for number in 1..1_000 {
            sessions.of(peer(maximum + number), 0, at(100));
        }
        assert_eq!(sessions.known.len(), MAXIMUM);
        assert_eq!(sessions.order.len(), MAXIMUM);
        assert!(sessions.get_mut(&peer(0)).is_some());
    }

    #[test]
    fn sequence_number_0_starts_a_new_session_unless_it_is_a_duplicate() {
        let mut sessions = Sessions::new(10);
        for seq in [0, 0, 1, 2] {
            let session = sessions.of(peer(7), seq, at(0));
            session.record_request(seq);
            session
                .previous
                .get_or_insert(PreviousTx { seq: 7, nic_tx: 7 });
        }
        assert!(sessions.of(peer(7), 3, at(1)).previous.is_some());
        assert!(sessions.of(peer(7), 0, at(2)).previous.is_none());
    }
}
