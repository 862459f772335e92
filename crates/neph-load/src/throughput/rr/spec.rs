//! What a client of a request/response test is asked for.

use neph_model::Span;
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
