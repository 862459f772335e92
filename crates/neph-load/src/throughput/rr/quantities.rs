//! Converts a plan's transactions to parameters, and their result to quantities.

use neph_model::{Quantities, Quantity, Span, TransactionKind, TransactionMeasure};
use neph_wire::throughput::{RrKind, RrTestRequest, VERSION};

use super::measured::{RrCounts, RrMeasured};
use super::second::RrSecond;
use super::spec::RrSpec;
use crate::durations::Durations;

/// The test of a plan with this duration, with requests and replies of minimum size.
pub fn rr_spec(test: &TransactionMeasure, duration: Span, timeout: Span) -> RrSpec {
    let kind = match test.kind {
        TransactionKind::Udp => RrKind::UdpRr,
        TransactionKind::Tcp => RrKind::TcpRr,
        TransactionKind::Connection => RrKind::TcpCrr,
    };
    RrSpec {
        ask: RrTestRequest {
            version: VERSION,
            kind,
            streams: test.streams,
            duration_ns: u64::try_from(duration.nanos()).unwrap_or(0),
            request_bytes: kind.min_request_bytes(),
            reply_bytes: kind.min_reply_bytes(),
            dscp: None,
        },
        timeout,
        busy_poll: false,
    }
}

impl RrMeasured {
    /// Quantities of the whole test.
    pub fn quantities(&self) -> Quantities {
        let mut values = of(self.rate, &self.rtts, &self.counts);
        values.push((Quantity::AskerCpu, self.client.thread * 100.0));
        values.push((Quantity::AnswererCpu, self.server.thread * 100.0));
        Quantities {
            peer: self.address,
            values: values.into_iter().collect(),
            limits: Vec::new(),
        }
    }
}

impl RrSecond {
    /// Quantities of the second.
    pub fn quantities(&self) -> Vec<(Quantity, f64)> {
        let mut values = of(self.rate, &self.rtts, &self.counts);
        values.push((Quantity::AskerCpu, self.client_thread * 100.0));
        values.push((Quantity::AnswererCpu, self.server_thread * 100.0));
        values
    }
}

/// A percentile that falls among lost transactions is absent.
#[expect(clippy::cast_precision_loss, reason = "numbers for people")]
fn of(rate: f64, rtts: &Durations, counts: &RrCounts) -> Vec<(Quantity, f64)> {
    let total = counts.transactions.saturating_add(counts.lost).max(1);
    let lost = counts.lost as f64 / total as f64 * 100.0;
    let quantile = |permille| rtts.quantile(permille, counts.lost).time();
    let times = [
        (Quantity::RttMin, rtts.min()),
        (Quantity::RttMean, rtts.mean()),
        (Quantity::RttDeviation, rtts.deviation()),
        (Quantity::RttP50, quantile(500)),
        (Quantity::RttP99, quantile(990)),
        (Quantity::RttMax, rtts.max()),
        (Quantity::RttJitter, rtts.jitter()),
    ];
    let times = times
        .into_iter()
        .filter_map(|(quantity, time)| Some((quantity, time?.nanos() as f64)));
    let rates = [
        (Quantity::Transactions, rate),
        (Quantity::TransactionLoss, lost),
    ];
    rates.into_iter().chain(times).collect()
}
