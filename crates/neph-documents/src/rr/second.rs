//! A second of a request/response test, all streams together: a line while it is measured, a row of
//! CSV.

use neph_load::rr::RrSecond;
use neph_model::Span;

crate::rows! {
    /// A second, all streams together.
    pub struct RrSecondRow {
        /// Number of the second, from 0.
        second: u32,
        /// End of the second, since the start of the first transaction.
        end_ns: Span,
        /// Transactions with a reply in this second.
        transactions: u64,
        /// Transactions with a reply per second.
        transactions_per_s: f64,
        /// Minimum round-trip time; null without a reply.
        min_ns: Option<Span>,
        /// Median round-trip time; null with fewer than 6 transactions, or if lost ones decide it.
        p50_ns: Option<Span>,
        /// 99th percentile of round-trip times; null with fewer than 299 transactions, or if lost
        /// ones decide it.
        p99_ns: Option<Span>,
        /// Maximum round-trip time; null without a reply.
        max_ns: Option<Span>,
        /// Transactions without a reply in time.
        lost: u64,
        /// Replies that arrived after their transaction was lost.
        late: u64,
        /// Duplicate replies.
        duplicates: u64,
        /// CPU time of the client's busiest thread, percent of a core.
        client_thread_percent: f64,
        /// Utilisation of the core of the client's busiest thread, percent; null if not known.
        client_core_percent: Option<f64>,
        /// CPU time of the server's busiest thread, percent of a core.
        server_thread_percent: f64,
        /// Utilisation of the core of the server's busiest thread, percent; null if not known.
        server_core_percent: Option<f64>,
    }
}

impl From<&RrSecond> for RrSecondRow {
    fn from(second: &RrSecond) -> Self {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        let quantile = |permille| second.rtts.quantile(permille, second.counts.lost).time();
        Self {
            second: second.index,
            end_ns: second.to,
            transactions: second.counts.transactions,
            transactions_per_s: (second.rate * 10.0).round() / 10.0,
            min_ns: second.rtts.min(),
            p50_ns: quantile(500),
            p99_ns: quantile(990),
            max_ns: second.rtts.max(),
            lost: second.counts.lost,
            late: second.counts.late,
            duplicates: second.counts.duplicates,
            client_thread_percent: percent(second.client_thread),
            client_core_percent: second.client_core.map(percent),
            server_thread_percent: percent(second.server_thread),
            server_core_percent: second.server_core.map(percent),
        }
    }
}
