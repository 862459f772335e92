//! Results of a request/response test.

use std::net::SocketAddr;

use neph_model::{Span, Wall};
use neph_wire::throughput::{RrInterval, RrKind};
use serde::{Deserialize, Serialize};

use super::super::rates::nanos;
use super::super::usage::Usage;
use super::spec::RrSpec;
use crate::durations::Durations;

/// Outcomes of transactions, and other datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RrCounts {
    /// With a reply in time.
    pub transactions: u64,
    /// Without one.
    pub lost: u64,
    /// Total time that the client waited for the lost ones.
    pub lost_wait: Span,
    /// Replies of lost transactions.
    pub late: u64,
    /// Duplicate replies.
    pub duplicates: u64,
    /// Datagrams that are no reply of their stream.
    pub foreign: u64,
}

impl RrCounts {
    /// Adds an interval of a client's stream.
    pub(super) fn add(&mut self, interval: &RrInterval) {
        self.merge(&Self {
            transactions: interval.transactions,
            lost: interval.lost,
            lost_wait: nanos(interval.lost_wait_ns),
            late: interval.late,
            duplicates: interval.duplicates,
            foreign: interval.foreign,
        });
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.transactions = self.transactions.saturating_add(other.transactions);
        self.lost = self.lost.saturating_add(other.lost);
        self.lost_wait += other.lost_wait;
        self.late = self.late.saturating_add(other.late);
        self.duplicates = self.duplicates.saturating_add(other.duplicates);
        self.foreign = self.foreign.saturating_add(other.foreign);
    }
}

/// Results of a request/response test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RrMeasured {
    /// The server.
    pub address: SocketAddr,
    /// The parameters.
    pub spec: RrSpec,
    /// When the first transaction began.
    pub started: Wall,
    /// From the start of the first transaction to the end of the last one.
    pub lasted: Span,
    /// Transactions with a reply per second, all streams together.
    pub rate: f64,
    /// RTTs of transactions with a reply.
    pub rtts: Durations,
    /// Outcomes of transactions.
    pub counts: RrCounts,
    /// Requests that the server received, without duplicates; absent if it did not report until the
    /// end.
    pub requests_at_server: Option<u64>,
    /// Use of the client's threads and host.
    pub client: Usage,
    /// Use of the server's threads and host.
    pub server: Usage,
    /// Whether it was stopped before its time was over.
    pub is_stopped: bool,
    /// Why it broke off, if it did.
    pub fault: Option<String>,
}

impl RrMeasured {
    /// Lost UDP transactions whose request did not reach the server. The reply of the others was
    /// lost or late. Absent if this is unknown: the test ended early.
    pub fn lost_requests(&self) -> Option<u64> {
        let is_udp = self.spec.ask.kind == RrKind::UdpRr;
        if !is_udp || self.is_stopped || self.fault.is_some() {
            return None;
        }
        let answered = self.requests_at_server?;
        let without_reply = answered.saturating_sub(self.counts.transactions);
        Some(self.counts.lost.saturating_sub(without_reply))
    }
}
