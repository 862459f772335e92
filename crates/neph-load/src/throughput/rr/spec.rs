//! Parameters of a request/response test.

use std::net::SocketAddr;

use neph_model::{Permit, Span};
use neph_sys::clock::RawNanos;
use neph_wire::throughput::RrTestRequest;
use serde::{Deserialize, Serialize};

/// A request/response test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RrSpec {
    /// The parameters that the server needs.
    pub ask: RrTestRequest,
    /// Timeout of a reply over UDP and of a transaction that is a connection: then it is lost and
    /// the next one begins. Ignored for TCP on an open connection.
    pub timeout: Span,
    /// The client polls for a reply without sleeping: each stream uses a whole core. Ignored for
    /// transactions that are connections.
    pub busy_poll: bool,
}

/// A request/response test and its server.
#[derive(Clone, Copy, Debug)]
pub struct RrRequest<'a> {
    /// Address of the server.
    pub server: SocketAddr,
    /// Parameters of the test.
    pub spec: &'a RrSpec,
    /// Limit of data that this end sends and receives.
    pub permit: &'a Permit,
}

impl RrRequest<'_> {
    /// Whether the permit allows a transaction now; if so, its request and reply are deducted.
    pub(super) fn may_begin(&self, now: RawNanos) -> bool {
        let ask = &self.spec.ask;
        let bytes = u64::from(ask.request_bytes) + u64::from(ask.reply_bytes);
        self.permit.message(bytes, now.0)
    }
}
