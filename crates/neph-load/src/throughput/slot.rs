//! The one test that a server serves at a time, and the streams that came for it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use neph_model::{Instant, Own};
use neph_wire::throughput::{Protocol, RrAsk, RrKind, Token};

use super::carrier::Carrier;
use super::job::Job;

/// A test that was granted.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) token: Token,
    pub(super) job: Job,
    /// The client, and our address that it came to.
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
    /// When it is over at the latest.
    pub(super) until: Instant<Own>,
    /// Streams that came.
    pub(super) carriers: BTreeMap<u16, Carrier>,
    /// Data flows: no more streams are taken.
    pub(super) is_started: bool,
}

impl Active {
    /// Whether a stream of this test may come so.
    pub(super) fn awaits(&self, token: Token, stream: u16, protocol: Protocol) -> bool {
        self.token == token
            && self.job.protocol() == protocol
            && !self.is_started
            && stream < self.job.carriers()
            && !self.carriers.contains_key(&stream)
    }

    /// The request/response test whose transactions are connections, once it has started.
    pub(super) fn of_connections(&self, token: Token) -> Option<&RrAsk> {
        match &self.job {
            Job::Rr(ask)
                if ask.kind == RrKind::TcpCrr && self.is_started && self.token == token =>
            {
                Some(ask)
            }
            Job::Rr(_) | Job::Throughput(_) => None,
        }
    }

    /// Whether the address is the client's: it has answered there on a TCP connection.
    pub(super) fn is_from(&self, address: IpAddr) -> bool {
        self.peer.ip().to_canonical() == address.to_canonical()
    }
}

/// Shared by all threads of a server.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Option<Active>>);

impl Slot {
    /// For looking at it or changing it.
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Active>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The test with this token is over: the next one may come.
    pub(super) fn free(&self, token: Token) {
        let mut slot = self.lock();
        if slot.as_ref().is_some_and(|active| active.token == token) {
            *slot = None;
        }
    }
}
