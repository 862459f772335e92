//! A request/response test as one document, and its lines of NDJSON.

use neph_load::Durations;
use neph_load::rr::RrMeasured;
use neph_load::throughput::Usage;
use neph_model::Span;
use neph_wire::throughput::RrKind;
use schemars::JsonSchema;
use serde::Serialize;

use crate::version::Version;

use super::second::RrSecondRow;

/// A request/response test.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RrDocument {
    /// Version of this schema.
    pub schema: Version,
    /// Address and port of the server.
    pub server: String,
    /// Kind of test: `udp_rr`, `tcp_rr` or `tcp_crr` (a connection for each transaction).
    pub test: &'static str,
    /// Number of streams, each with one transaction outstanding.
    pub streams: u16,
    /// Planned duration.
    pub duration_ns: Span,
    /// Payload of a request in bytes.
    pub request_bytes: u32,
    /// Payload of a reply in bytes.
    pub reply_bytes: u32,
    /// Time after which a transaction without a reply is lost; null for `tcp_rr`, where TCP
    /// retransmits.
    pub timeout_ns: Option<Span>,
    /// Whether the client polled for replies without sleeping.
    pub busy_poll: bool,
    /// Requested DSCP; null for the system's default.
    pub dscp: Option<u8>,
    /// Start of the first transaction, on the client's clock.
    pub started_unix_ns: i64,
    /// Time from the start of the first transaction to the end of the last one.
    pub lasted_ns: Span,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
    /// Why it broke; null otherwise.
    pub fault: Option<String>,
    /// Transactions with a reply in time.
    pub transactions: u64,
    /// Transactions with a reply in time per second, all streams together.
    pub transactions_per_s: f64,
    /// Round-trip times of transactions.
    pub rtt: RttDocument,
    /// Transactions without a reply in time.
    pub lost: u64,
    /// Transactions without a reply in time, percent of all.
    pub lost_percent: f64,
    /// Lost transactions whose request did not arrive at the server; null if not known, and for
    /// TCP.
    pub lost_requests: Option<u64>,
    /// Total time that the client waited for lost transactions.
    pub lost_wait_ns: Span,
    /// Replies that arrived after their transaction was lost.
    pub late: u64,
    /// Duplicate replies.
    pub duplicates: u64,
    /// Datagrams that are no reply of the stream that received them.
    pub unrelated_datagrams: u64,
    /// CPU use of the client.
    pub client: RrEndDocument,
    /// CPU use of the server.
    pub server_end: RrEndDocument,
    /// Results of each second.
    pub seconds: Vec<RrSecondRow>,
    /// Histogram of round-trip times: buckets with transactions, ascending, each at most one part
    /// in 512 wide.
    pub histogram: Vec<BucketDocument>,
}

/// Round-trip times. For `tcp_crr` they include opening and closing the connection. In percentiles,
/// lost transactions count as slower than every reply.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RttDocument {
    /// Minimum; null without a reply.
    pub min_ns: Option<Span>,
    /// Mean; null without a reply.
    pub mean_ns: Option<Span>,
    /// Standard deviation; null without a reply.
    pub sd_ns: Option<Span>,
    /// Median; null with fewer than 6 transactions, or if lost ones decide it.
    pub p50_ns: Option<Span>,
    /// 90th percentile; null with fewer than 29 transactions, or if lost ones decide it.
    pub p90_ns: Option<Span>,
    /// 99th percentile; null with fewer than 299 transactions, or if lost ones decide it.
    pub p99_ns: Option<Span>,
    /// 99.9th percentile; null with fewer than 2995 transactions, or if lost ones decide it.
    pub p999_ns: Option<Span>,
    /// Maximum; null without a reply.
    pub max_ns: Option<Span>,
    /// Mean absolute difference between consecutive round-trip times of a stream; null without one.
    pub jitter_ns: Option<Span>,
}

/// The CPU use of one end. Shares are percent of a core's time.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RrEndDocument {
    /// CPU time of the busiest stream thread.
    pub thread_percent: f64,
    /// Core on which this thread ran most often in its busiest second; null if not known.
    pub core: Option<u32>,
    /// Utilisation of this core by all programs of the host; null if not known.
    pub core_busy_percent: Option<f64>,
    /// Part of `core_busy_percent` that software interrupts took; null if not known.
    pub core_softirq_percent: Option<f64>,
    /// Part of `core_busy_percent` that the hypervisor took; null if not known.
    pub core_steal_percent: Option<f64>,
    /// CPU time of the end's process.
    pub process_cpu_ns: Span,
    /// CPU time of the end's process per transaction; null without a transaction.
    pub cpu_per_transaction_ns: Option<Span>,
    /// Datagrams that the end's kernel dropped at full receive buffers, of all programs
    /// (`RcvbufErrors`).
    pub rcvbuf_errors: u64,
}

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct BucketDocument {
    /// Lower end of the bucket.
    pub from_ns: u64,
    /// Number of transactions in the bucket.
    pub count: u64,
}

/// An NDJSON line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RrLine {
    /// A second, after both ends have counted it.
    Second(RrSecondRow),
    /// Summary: the last line.
    Summary(Box<RrDocument>),
}

impl RrDocument {
    /// The document of a measurement, with its seconds.
    pub fn new(measured: &RrMeasured, seconds: Vec<RrSecondRow>) -> Self {
        let (request, counts) = (&measured.spec.ask, &measured.counts);
        let buckets = measured.rtts.histogram().buckets();
        let end_document = |usage: &Usage| RrEndDocument::of(usage, counts.transactions);
        Self {
            schema: Version,
            server: measured.address.to_string(),
            test: request.kind.name(),
            streams: request.streams,
            duration_ns: Span::from_nanos(i64::try_from(request.duration_ns).unwrap_or(i64::MAX)),
            request_bytes: request.request_bytes,
            reply_bytes: request.reply_bytes,
            timeout_ns: (request.kind != RrKind::TcpRr).then_some(measured.spec.timeout),
            busy_poll: measured.spec.busy_poll,
            dscp: request.dscp,
            started_unix_ns: measured.started.unix_nanos(),
            lasted_ns: measured.lasted,
            is_stopped: measured.is_stopped,
            fault: measured.fault.clone(),
            transactions: counts.transactions,
            transactions_per_s: (measured.rate * 10.0).round() / 10.0,
            rtt: RttDocument::of(&measured.rtts, counts.lost),
            lost: counts.lost,
            lost_percent: lost_percent(counts.lost, counts.transactions),
            lost_requests: measured.lost_requests(),
            lost_wait_ns: counts.lost_wait,
            late: counts.late,
            duplicates: counts.duplicates,
            unrelated_datagrams: counts.foreign,
            client: end_document(&measured.client),
            server_end: end_document(&measured.server),
            seconds,
            histogram: buckets
                .map(|bucket| BucketDocument {
                    from_ns: bucket.from,
                    count: bucket.count,
                })
                .collect(),
        }
    }
}

/// Lost transactions as a share of all, percent with three digits.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
pub(super) fn lost_percent(lost: u64, transactions: u64) -> f64 {
    let total = lost.saturating_add(transactions).max(1);
    (lost as f64 * 100_000.0 / total as f64).round() / 1_000.0
}

impl RttDocument {
    fn of(rtts: &Durations, lost: u64) -> Self {
        let quantile = |permille| rtts.quantile(permille, lost).time();
        Self {
            min_ns: rtts.min(),
            mean_ns: rtts.mean(),
            sd_ns: rtts.deviation(),
            p50_ns: quantile(500),
            p90_ns: quantile(900),
            p99_ns: quantile(990),
            p999_ns: quantile(999),
            max_ns: rtts.max(),
            jitter_ns: rtts.jitter(),
        }
    }
}

/// CPU time of an end for each transaction.
pub(super) fn per_transaction(usage: &Usage, transactions: u64) -> Option<Span> {
    let transactions = i64::try_from(transactions).unwrap_or(i64::MAX);
    let nanos = usage.process.nanos().checked_div(transactions)?;
    Some(Span::from_nanos(nanos))
}

impl RrEndDocument {
    fn of(usage: &Usage, transactions: u64) -> Self {
        let percent = |share: f64| (share * 10_000.0).round() / 100.0;
        Self {
            thread_percent: percent(usage.thread),
            core: usage.core,
            core_busy_percent: usage.core_busy.map(percent),
            core_softirq_percent: usage.core_softirq.map(percent),
            core_steal_percent: usage.core_steal.map(percent),
            process_cpu_ns: usage.process,
            cpu_per_transaction_ns: per_transaction(usage, transactions),
            rcvbuf_errors: usage.rcvbuf_errors,
        }
    }
}
