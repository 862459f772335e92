//! The single test that a server runs at a time, and its connected streams.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use neph_model::{Instant, Local};
use neph_wire::throughput::{Protocol, RrKind, RrTestRequest, Token};

use super::carrier::Carrier;
use super::job::Job;

/// A granted test.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) token: Token,
    pub(super) job: Job,
    /// Address of the client, and the local address that it connected to.
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
    /// Latest end of the test.
    pub(super) until: Instant<Local>,
    /// Connected streams.
    pub(super) carriers: BTreeMap<u16, Carrier>,
    /// Data flows: no more streams are accepted.
    pub(super) is_started: bool,
}

impl Active {
    /// Whether this test expects such a stream.
    pub(super) fn awaits(&self, token: Token, stream: u16, protocol: Protocol) -> bool {
        self.token == token
            && self.job.protocol() == protocol
            && !self.is_started
            && stream < self.job.carriers()
            && !self.carriers.contains_key(&stream)
    }

    /// The request/response test whose transactions are connections, once it has started.
    pub(super) fn of_connections(&self, token: Token) -> Option<&RrTestRequest> {
        match &self.job {
            Job::Rr(test_request)
                if test_request.kind == RrKind::TcpCrr
                    && self.is_started
                    && self.token == token =>
            {
                Some(test_request)
            }
            Job::Rr(_) | Job::Throughput(_) => None,
        }
    }

    /// Whether the address is the client's, which its TCP connection has verified.
    pub(super) fn is_from(&self, address: IpAddr) -> bool {
        self.peer.ip().to_canonical() == address.to_canonical()
    }
}

/// Shared by all threads of a server.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Option<Active>>);

impl Slot {
    /// Locks it for reading or changing it.
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Active>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the test with this token, so that the next one can start.
    pub(super) fn free(&self, token: Token) {
        let mut slot = self.lock();
        if slot.as_ref().is_some_and(|active| active.token == token) {
            *slot = None;
        }
    }
}
