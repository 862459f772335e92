//! What a request/response test showed.

use std::net::SocketAddr;

use neph_model::{Span, Wall};
use neph_wire::throughput::{RrInterval, RrKind};
use serde::{Deserialize, Serialize};

use super::super::rates::nanos;
use super::super::usage::Usage;
use super::rtts::Rtts;
use super::spec::RrSpec;

/// How transactions ended, and what else came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RrCounts {
    /// That had a reply in time.
    pub transactions: u64,
    /// That had none.
    pub lost: u64,
    /// How long the client waited for these, together.
    pub lost_wait: Span,
    /// Replies of transactions that were lost already.
    pub late: u64,
    /// Replies that came more than once.
    pub duplicates: u64,
    /// Datagrams that are no reply of the stream that got them.
    pub foreign: u64,
}

impl RrCounts {
    /// Counts an interval of a client's stream.
    pub(super) fn add(&mut self, one: &RrInterval) {
        self.merge(&Self {
            transactions: one.transactions,
            lost: one.lost,
            lost_wait: nanos(one.lost_wait_ns),
            late: one.late,
            duplicates: one.duplicates,
            foreign: one.foreign,
        });
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.transactions = self.transactions.saturating_add(other.transactions);
        self.lost = self.lost.saturating_add(other.lost);
        self.lost_wait += other.lost_wait;
        self.late = self.late.saturating_add(other.late);
        self.duplicates = self.duplicates.saturating_add(other.duplicates);
        self.foreign = self.foreign.saturating_add(other.foreign);
    }
}

/// A request/response test that was carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RrMeasured {
    /// The server.
    pub address: SocketAddr,
    /// What was asked for.
    pub spec: RrSpec,
    /// When the first transaction began.
    pub started: Wall,
    /// From the beginning of the first transaction to the end of the last one.
    pub lasted: Span,
    /// Transactions with a reply per second, of all streams together.
    pub rate: f64,
    /// Of transactions with a reply.
    pub rtts: Rtts,
    /// How transactions ended.
    pub counts: RrCounts,
    /// Requests that the server got, each counted once; absent where it did not report to the end.
    pub requests_at_server: Option<u64>,
    /// The client's threads and host.
    pub client: Usage,
    /// The server's threads and host.
    pub server: Usage,
    /// It was stopped before its time was over.
    pub is_stopped: bool,
    /// Why it broke off, if it did.
    pub fault: Option<String>,
}

impl RrMeasured {
    /// Of the transactions that were lost over UDP, those whose request did not come to the server; the
    /// others lost their reply, or it came late. Absent where it is not known: the test did not come to
    /// its own end.
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
