//! A request/response test as one document, and its lines of NDJSON.

use neph_load::rr::{RrMeasured, Rtts};
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
    /// The version of this document.
    pub schema: Version,
    /// The server's address and port.
    pub server: String,
    /// `udp_rr`, `tcp_rr` or `tcp_crr` (a connection for each transaction).
    pub test: &'static str,
    /// Streams, each with one transaction outstanding.
    pub streams: u16,
    /// How long it was to last, in nanoseconds.
    pub duration_ns: Span,
    /// Payload of a request in bytes.
    pub request_bytes: u32,
    /// Payload of a reply in bytes.
    pub reply_bytes: u32,
    /// How long a reply was waited for, in nanoseconds; null of `tcp_rr`, where TCP retransmits.
    pub timeout_ns: Option<Span>,
    /// Whether the client looked for replies without sleeping.
    pub busy_poll: bool,
    /// The differentiated services code point that was asked for; null for the system's.
    pub dscp: Option<u8>,
    /// When the first transaction began, by the client's clock.
    pub started_unix_ns: i64,
    /// From the beginning of the first transaction to the end of the last one, in nanoseconds.
    pub lasted_ns: Span,
    /// Whether it was stopped before its time was over.
    pub is_stopped: bool,
    /// Why it broke off; null where it did not.
    pub fault: Option<String>,
    /// Transactions that had a reply in time.
    pub transactions: u64,
    /// The same per second, all streams together.
    pub transactions_per_s: f64,
    /// Their round-trip times.
    pub rtt: RttDocument,
    /// Transactions that had no reply in time.
    pub lost: u64,
    /// The share of all transactions that were lost, percent.
    pub lost_percent: f64,
    /// Of these, transactions whose request did not come to the server; null where it is not known, and
    /// of TCP.
    pub lost_requests: Option<u64>,
    /// How long the client waited for lost transactions, together, in nanoseconds.
    pub lost_wait_ns: Span,
    /// Replies that came after their transaction was lost.
    pub late: u64,
    /// Replies that came more than once.
    pub duplicates: u64,
    /// Datagrams that are no reply of the stream that got them.
    pub foreign: u64,
    /// The client.
    pub client: RrEndDocument,
    /// The server.
    pub server_end: RrEndDocument,
    /// Each second.
    pub seconds: Vec<RrSecondRow>,
    /// The histogram of round-trip times: buckets that have some, in ascending order, each at most one
    /// part in 512 wide.
    pub histogram: Vec<BucketDocument>,
}

/// Round-trip times in nanoseconds. Of `tcp_crr` they have opening and closing the connection in them.
/// Lost transactions count in percentiles as slower than every reply.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RttDocument {
    /// The shortest.
    pub min_ns: Option<Span>,
    /// The mean.
    pub mean_ns: Option<Span>,
    /// The standard deviation.
    pub sd_ns: Option<Span>,
    /// The median; null with fewer than 6 transactions, or where lost ones decide it.
    pub p50_ns: Option<Span>,
    /// The 90th percentile; null with fewer than 29 transactions, or where lost ones decide it.
    pub p90_ns: Option<Span>,
    /// The 99th percentile; null with fewer than 299 transactions, or where lost ones decide it.
    pub p99_ns: Option<Span>,
    /// The 99.9th percentile; null with fewer than 2995 transactions, or where lost ones decide it.
    pub p999_ns: Option<Span>,
    /// The longest.
    pub max_ns: Option<Span>,
    /// The mean difference of consecutive round-trip times of a stream, without sign.
    pub jitter_ns: Option<Span>,
}

/// How an end's threads and host were used. Shares are percent of a core's time.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RrEndDocument {
    /// CPU time of the busiest stream's thread.
    pub thread_percent: f64,
    /// The core that this thread was on most often in its busiest second; null where it is not known.
    pub core: Option<u32>,
    /// How busy the thread's core was, with all that the host did; null where it is not known.
    pub core_busy_percent: Option<f64>,
    /// Of that, in soft interrupts.
    pub core_softirq_percent: Option<f64>,
    /// Of that, taken by the hypervisor.
    pub core_steal_percent: Option<f64>,
    /// CPU time of the end's process in nanoseconds.
    pub process_cpu_ns: Span,
    /// CPU time of the end's process for each transaction in nanoseconds; null where there was none.
    pub cpu_per_transaction_ns: Option<Span>,
    /// Datagrams that the end's kernel dropped at full receive buffers, of all programs (`RcvbufErrors`).
    pub rcvbuf_errors: u64,
}

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct BucketDocument {
    /// The shortest time that it takes, in nanoseconds.
    pub from_ns: u64,
    /// How many it has.
    pub count: u64,
}

/// A line of NDJSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RrLine {
    /// A second, once both ends have counted it.
    Second(RrSecondRow),
    /// The last line.
    Summary(Box<RrDocument>),
}

impl RrDocument {
    /// Of what was measured, with its seconds.
    pub fn new(measured: &RrMeasured, seconds: Vec<RrSecondRow>) -> Self {
        let (ask, counts) = (&measured.spec.ask, &measured.counts);
        let buckets = measured.rtts.histogram().buckets();
        let end = |usage: &Usage| RrEndDocument::of(usage, counts.transactions);
        Self {
            schema: Version,
            server: measured.address.to_string(),
            test: ask.kind.name(),
            streams: ask.streams,
            duration_ns: Span::from_nanos(i64::try_from(ask.duration_ns).unwrap_or(i64::MAX)),
            request_bytes: ask.request_bytes,
            reply_bytes: ask.reply_bytes,
            timeout_ns: (ask.kind != RrKind::TcpRr).then_some(measured.spec.timeout),
            busy_poll: measured.spec.busy_poll,
            dscp: ask.dscp,
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
            foreign: counts.foreign,
            client: end(&measured.client),
            server_end: end(&measured.server),
            seconds,
            histogram: buckets
                .map(|one| BucketDocument {
                    from_ns: one.from,
                    count: one.count,
                })
                .collect(),
        }
    }
}

/// Lost transactions as a share of all, percent with three digits.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
pub(super) fn lost_percent(lost: u64, transactions: u64) -> f64 {
    let all = lost.saturating_add(transactions).max(1);
    (lost as f64 * 100_000.0 / all as f64).round() / 1_000.0
}

impl RttDocument {
    fn of(rtts: &Rtts, lost: u64) -> Self {
        let quantile = |permille| rtts.quantile(permille, lost).time();
        Self {
            min_ns: rtts.least(),
            mean_ns: rtts.mean(),
            sd_ns: rtts.deviation(),
            p50_ns: quantile(500),
            p90_ns: quantile(900),
            p99_ns: quantile(990),
            p999_ns: quantile(999),
            max_ns: rtts.most(),
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
