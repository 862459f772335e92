//! One direction as a whole.

use neph_load::throughput::{DirectionResult, TcpTotals, UdpTotals, Usage};
use neph_model::{BitRate, Span};
use neph_wire::throughput::{Direction, Variation};
use schemars::JsonSchema;
use serde::Serialize;

/// One direction, all streams together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DirectionDocument {
    /// `up`: the client sends; `down`: the server sends.
    pub direction: &'static str,
    /// How long the receiver received, from its first data on, in nanoseconds.
    pub lasted_ns: Span,
    /// Payload that the sender's kernel took, in bytes.
    pub sent_bytes: u64,
    /// Payload that the receiver received in its time, in bytes.
    pub received_bytes: u64,
    /// The rate of what was sent, in bit/s.
    pub sent_bit_s: BitRate,
    /// The rate of what was received, in bit/s.
    pub goodput_bit_s: BitRate,
    /// What limits: `sender`, `receiver`, `path`, `receive_window`, `rate_asked` or `unknown`.
    pub limit: &'static str,
    /// The limit and what shows it, in one sentence.
    pub limit_text: String,
    /// The sending end.
    pub sender: UsageDocument,
    /// The receiving end.
    pub receiver: UsageDocument,
    /// What TCP did; null of UDP.
    pub tcp: Option<TcpDocument>,
    /// What became of datagrams; null of TCP.
    pub udp: Option<UdpDocument>,
}

/// How an end's threads and host were used. Shares are percent of a core's time.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct UsageDocument {
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
    /// How much of the time the streams' threads waited for their sockets.
    pub waited_percent: f64,
    /// How much of the time the streams' threads waited so that the rate was not exceeded.
    pub paced_percent: f64,
    /// CPU time of the end's process in nanoseconds.
    pub process_cpu_ns: Span,
    /// CPU seconds of the end's process for each 10^9 bytes received; null where nothing was.
    pub cpu_seconds_per_gigabyte: Option<f64>,
    /// Datagrams that the end's kernel dropped at full receive buffers, of all programs (`RcvbufErrors`).
    pub rcvbuf_errors: u64,
}

/// What TCP did.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TcpDocument {
    /// Segments that were sent, retransmissions included.
    pub segments: u64,
    /// Segments that were retransmitted.
    pub retransmissions: u64,
    /// The mean of the seconds' smoothed round-trip times in nanoseconds.
    pub srtt_mean_ns: Span,
    /// The longest of them in nanoseconds.
    pub srtt_max_ns: Span,
    /// The least round-trip time in nanoseconds.
    pub min_rtt_ns: Span,
    /// The mean of the seconds' congestion windows, all streams together, in bytes.
    pub cwnd_mean_bytes: u64,
    /// How much of its busy time TCP was limited by the receive window, percent.
    pub rwnd_limited_percent: f64,
    /// How much of its busy time TCP was limited by the send buffer, percent.
    pub sndbuf_limited_percent: f64,
}

/// What became of datagrams.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct UdpDocument {
    /// That the sender's kernel took.
    pub sent: u64,
    /// That the sender's kernel refused.
    pub refused: u64,
    /// That came, duplicates not counted.
    pub received: u64,
    /// That were sent and did not come.
    pub lost: u64,
    /// The share of what was sent that did not come, percent.
    pub lost_percent: f64,
    /// Of these, dropped at the receiver's socket; an estimate where the kernel joins datagrams.
    pub socket_drops: u64,
    /// That came after one with a higher sequence number (RFC 4737).
    pub reordered: u64,
    /// The largest reordering extent (RFC 4737).
    pub reordering_extent: u64,
    /// That came more than once.
    pub duplicates: u64,
    /// The mean of the seconds' interarrival jitter, of the stream with the most, in nanoseconds
    /// (RFC 3550).
    pub jitter_ns: Span,
    /// Delay variation of the stream with the largest 95th percentile (RFC 5481).
    pub variation: VariationDocument,
}

/// Delay variation (RFC 5481). PDV is delay over the stream's least delay; IPDV is the difference of
/// delay to the datagram before, without sign.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct VariationDocument {
    /// Delays that the percentiles are of: all, or an even part of them.
    pub samples: u64,
    /// The median of PDV in nanoseconds.
    pub pdv_p50_ns: Option<u64>,
    /// The 95th percentile of PDV in nanoseconds; null with fewer than 59 samples.
    pub pdv_p95_ns: Option<u64>,
    /// The 99th percentile of PDV in nanoseconds; null with fewer than 299 samples.
    pub pdv_p99_ns: Option<u64>,
    /// The largest PDV in nanoseconds.
    pub pdv_max_ns: Option<u64>,
    /// The median of IPDV in nanoseconds.
    pub ipdv_p50_ns: Option<u64>,
    /// The 95th percentile of IPDV in nanoseconds; null with fewer than 59 samples.
    pub ipdv_p95_ns: Option<u64>,
    /// The 99th percentile of IPDV in nanoseconds; null with fewer than 299 samples.
    pub ipdv_p99_ns: Option<u64>,
}

/// The word for a direction.
pub(super) const fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
        Direction::Both => "both",
    }
}

/// A share as percent with two digits.
fn percent(share: f64) -> f64 {
    (share * 10_000.0).round() / 100.0
}

impl From<&DirectionResult> for DirectionDocument {
    fn from(result: &DirectionResult) -> Self {
        let totals = &result.totals;
        let usage = |usage: &Usage| UsageDocument::of(usage, totals.received_bytes);
        Self {
            direction: word(result.direction),
            lasted_ns: totals.lasted,
            sent_bytes: totals.sent_bytes,
            received_bytes: totals.received_bytes,
            sent_bit_s: totals.sent,
            goodput_bit_s: totals.goodput,
            limit: result.limit.kind.name(),
            limit_text: result.limit.sentence.clone(),
            sender: usage(&totals.sender),
            receiver: usage(&totals.receiver),
            tcp: totals.tcp.as_ref().map(TcpDocument::from),
            udp: totals.udp.as_ref().map(UdpDocument::from),
        }
    }
}

impl UsageDocument {
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn of(usage: &Usage, received: u64) -> Self {
        let per_gigabyte = |received: u64| usage.process.secs_f64() * 1e9 / received as f64;
        Self {
            thread_percent: percent(usage.thread),
            core: usage.core,
            core_busy_percent: usage.core_busy.map(percent),
            core_softirq_percent: usage.core_softirq.map(percent),
            core_steal_percent: usage.core_steal.map(percent),
            waited_percent: percent(usage.waited),
            paced_percent: percent(usage.paced),
            process_cpu_ns: usage.process,
            cpu_seconds_per_gigabyte: (received > 0).then(|| per_gigabyte(received)),
            rcvbuf_errors: usage.rcvbuf_errors,
        }
    }
}

impl From<&TcpTotals> for TcpDocument {
    fn from(tcp: &TcpTotals) -> Self {
        Self {
            segments: tcp.segments,
            retransmissions: tcp.retransmissions,
            srtt_mean_ns: tcp.srtt_mean,
            srtt_max_ns: tcp.srtt_max,
            min_rtt_ns: tcp.min_rtt,
            cwnd_mean_bytes: tcp.cwnd_mean_bytes,
            rwnd_limited_percent: percent(tcp.rwnd_limited),
            sndbuf_limited_percent: percent(tcp.sndbuf_limited),
        }
    }
}

impl From<&UdpTotals> for UdpDocument {
    fn from(udp: &UdpTotals) -> Self {
        Self {
            sent: udp.sent,
            refused: udp.refused,
            received: udp.received,
            lost: udp.lost,
            lost_percent: percent(udp.loss()),
            socket_drops: udp.socket_drops,
            reordered: udp.reordered,
            reordering_extent: udp.reordering_extent,
            duplicates: udp.duplicates,
            jitter_ns: udp.jitter,
            variation: VariationDocument::from(&udp.variation),
        }
    }
}

impl From<&Variation> for VariationDocument {
    fn from(one: &Variation) -> Self {
        Self {
            samples: one.samples,
            pdv_p50_ns: one.pdv_p50_ns,
            pdv_p95_ns: one.pdv_p95_ns,
            pdv_p99_ns: one.pdv_p99_ns,
            pdv_max_ns: one.pdv_max_ns,
            ipdv_p50_ns: one.ipdv_p50_ns,
            ipdv_p95_ns: one.ipdv_p95_ns,
            ipdv_p99_ns: one.ipdv_p99_ns,
        }
    }
}
