//! What a generator is asked to do.

use std::net::SocketAddr;
use std::sync::Arc;

use neph_model::Span;
use neph_wire::http::HttpError;

use super::demand::{Demand, Share};
use super::http::HttpRequest;
use super::transport::TlsTarget;

/// With spinning, the last part of a wait. A halted virtual processor takes more than 100 us to wake up.
const SPIN: Span = Span::from_micros(200);

/// A load of HTTP requests.
#[derive(Clone, Debug)]
pub struct WorkloadSpec {
    /// Where they go.
    pub target: SocketAddr,
    /// TLS; `None` for plain HTTP.
    pub tls: Option<TlsTarget>,
    /// The request.
    pub request: HttpRequest,
    /// Who sends.
    pub demand: Demand,
    /// The part of the demand that this generator sends.
    pub share: Share,
    /// Determines all random draws.
    pub seed: u64,
    /// From the start to the last request.
    pub duration: Span,
    /// The first part of the duration, which is not measured.
    pub warmup: Span,
    /// Maximum time from sending a request to the end of its response.
    pub timeout: Span,
    /// Maximum number of connections, shared by all workers or arrivals of this generator. `None`: each
    /// worker has its own connection; arrivals have as many as this process can open.
    pub connections: Option<u32>,
    /// Number of threads, at least 1.
    pub threads: u32,
    /// Length of a reported interval: usually a second.
    pub interval: Span,
    /// A request that is taken up later than this is late.
    pub lateness_bound: Span,
    /// Do not sleep during the last microseconds before a request.
    pub spins: bool,
}

/// What all threads of a generator use.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) target: SocketAddr,
    pub(super) tls: Option<TlsTarget>,
    pub(super) method: String,
    pub(super) request: Arc<[u8]>,
    pub(super) is_idempotent: bool,
    pub(super) keep_alive: bool,
    /// Each worker has a connection of its own.
    pub(super) has_own_connections: bool,
    pub(super) timeout: Span,
    /// The last part of a wait, in which a thread does not sleep.
    pub(super) spin: Span,
}

impl WorkloadSpec {
    /// For at most `limit` connections: more workers share them.
    pub(super) fn exchange(&self, limit: u64) -> Result<Exchange, HttpError> {
        let has_own_connections = match &self.demand {
            Demand::Closed(workers) => {
                self.connections.is_none() && u64::from(workers.count) <= limit
            }
            Demand::Open(_) => false,
        };
        Ok(Exchange {
            target: self.target,
            tls: self.tls.clone(),
            method: self.request.method.clone(),
            request: self.request.encode()?.into(),
            is_idempotent: self.request.is_idempotent(),
            keep_alive: self.request.keep_alive,
            has_own_connections,
            timeout: self.timeout,
            spin: if self.spins { SPIN } else { Span::ZERO },
        })
    }
}
