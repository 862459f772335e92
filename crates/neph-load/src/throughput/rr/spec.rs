//! What a client of a request/response test is asked for, and of whom it asks it.

use std::net::SocketAddr;

use neph_model::{Permit, Span};
use neph_sys::clock::RawNanos;
use neph_wire::throughput::RrAsk;
use serde::{Deserialize, Serialize};

/// A request/response test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RrSpec {
    /// What the server is asked for.
    pub ask: RrAsk,
    /// How long a reply is waited for, of UDP and of transactions that are connections; then the
    /// transaction is lost and the next one begins. Without meaning for TCP on an open connection.
    pub timeout: Span,
    /// The client looks for a reply without sleeping: each stream fills a core. Without meaning for
    /// transactions that are connections.
    pub busy_poll: bool,
}

/// A request/response test that is asked of a server.
#[derive(Clone, Copy, Debug)]
pub struct RrAsked<'a> {
    /// Where it listens.
    pub server: SocketAddr,
    /// What is measured.
    pub spec: &'a RrSpec,
    /// What this end may send and receive.
    pub permit: &'a Permit,
}

impl RrAsked<'_> {
    /// Whether a transaction may begin at that moment; then its request and its reply are paid for.
    pub(super) fn may_begin(&self, now: RawNanos) -> bool {
        let ask = &self.spec.ask;
        let bytes = u64::from(ask.request_bytes) + u64::from(ask.reply_bytes);
        self.permit.message(bytes, now.0)
    }
}
