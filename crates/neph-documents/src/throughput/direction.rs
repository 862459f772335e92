//! The results of one direction.

use neph_load::throughput::{DirectionResult, TcpTotals, UdpTotals, Usage};
use neph_model::{BitRate, Span};
use neph_wire::throughput::{Direction, Variation};
use schemars::JsonSchema;
use serde::Serialize;

/// The results of one direction, all streams together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DirectionDocument {
    /// `up` (the client sends) or `down` (the server sends).
    pub direction: &'static str,
    /// Duration of receiving, from the first data.
    pub lasted_ns: Span,
    /// Payload that the sender's kernel accepted.
    pub sent_bytes: u64,
    /// Payload that the receiver received during the test.
    pub received_bytes: u64,
    /// Rate of the payload sent.
    pub sent_bit_s: BitRate,
    /// Rate of the payload received.
    pub goodput_bit_s: BitRate,
    /// What limited the rate: `sender`, `receiver`, `path`, `receive_window`, `target_rate`,
    /// `policy` or `unknown`.
    pub limit: &'static str,
    /// The limit and its evidence, in one sentence.
    pub limit_text: String,
    /// CPU use of the sender.
    pub sender: UsageDocument,
    /// CPU use of the receiver.
    pub receiver: UsageDocument,
    /// TCP statistics; null for UDP.
    pub tcp: Option<TcpDocument>,
    /// Numbers of datagrams; null for TCP.
    pub udp: Option<UdpDocument>,
}

/// The CPU use of one end. Shares are percent of a core's time.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct UsageDocument {
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
    /// Share of the time that the stream threads waited for their sockets.
    pub waited_percent: f64,
    /// Share of the time that the stream threads waited because of the target rate.
    pub paced_percent: f64,
    /// Share of the time that the stream threads waited because of the policy of the end's agent.
    pub policy_percent: f64,
    /// CPU time of the end's process.
    pub process_cpu_ns: Span,
    /// CPU time of the end's process per 10^9 bytes received; null if nothing was received.
    pub cpu_seconds_per_gigabyte: Option<f64>,
    /// Datagrams that the end's kernel dropped at full receive buffers, of all programs
    /// (`RcvbufErrors`).
    pub rcvbuf_errors: u64,
}

/// The TCP statistics of one direction.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TcpDocument {
    /// Segments sent, retransmissions included.
    pub segments: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Mean over seconds of the smoothed round-trip time.
    pub srtt_mean_ns: Span,
    /// Maximum over seconds of the smoothed round-trip time.
    pub srtt_max_ns: Span,
    /// Minimum round-trip time.
    pub min_rtt_ns: Span,
    /// Mean over seconds of the congestion window, all streams together.
    pub cwnd_mean_bytes: u64,
    /// Share of TCP's busy time that the receive window limited.
    pub rwnd_limited_percent: f64,
    /// Share of TCP's busy time that the send buffer limited.
    pub sndbuf_limited_percent: f64,
}

/// The numbers of datagrams in one direction.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct UdpDocument {
    /// Datagrams that the sender's kernel accepted.
    pub sent: u64,
    /// Datagrams that the sender's kernel refused.
    pub refused: u64,
    /// Datagrams received, without duplicates.
    pub received: u64,
    /// Datagrams sent and not received.
    pub lost: u64,
    /// Datagrams sent and not received, percent of those sent.
    pub lost_percent: f64,
    /// Lost datagrams that the receiver's socket dropped; an estimate if the kernel merges
    /// datagrams.
    pub socket_drops: u64,
    /// Datagrams that arrived after one with a higher sequence number (RFC 4737).
    pub reordered: u64,
    /// Largest reordering extent (RFC 4737).
    pub reordering_extent: u64,
    /// Duplicate datagrams.
    pub duplicates: u64,
    /// Mean over seconds of the interarrival jitter, of the stream with the largest (RFC 3550).
    pub jitter_ns: Span,
    /// Delay variation of the stream with the largest 95th percentile (RFC 5481).
    pub variation: VariationDocument,
}

/// Delay variation (RFC 5481). PDV is the delay minus the stream's least delay. IPDV is the
/// absolute difference to the delay of the datagram before.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct VariationDocument {
    /// Number of delays in the percentiles: all, or an even sample of them.
    pub samples: u64,
    /// Median PDV; null without samples.
    pub pdv_p50_ns: Option<u64>,
    /// 95th percentile of PDV; null with fewer than 59 samples.
    pub pdv_p95_ns: Option<u64>,
    /// 99th percentile of PDV; null with fewer than 299 samples.
    pub pdv_p99_ns: Option<u64>,
    /// Largest PDV; null without samples.
    pub pdv_max_ns: Option<u64>,
    /// Median IPDV; null without samples.
    pub ipdv_p50_ns: Option<u64>,
    /// 95th percentile of IPDV; null with fewer than 59 samples.
    pub ipdv_p95_ns: Option<u64>,
    /// 99th percentile of IPDV; null with fewer than 299 samples.
    pub ipdv_p99_ns: Option<u64>,
}

/// The word for a direction.
pub(super) const fn direction_word(direction: Direction) -> &'static str {
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
            direction: direction_word(result.direction),
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
            policy_percent: percent(usage.policy),
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
    fn from(variation: &Variation) -> Self {
        Self {
            samples: variation.samples,
            pdv_p50_ns: variation.pdv_p50_ns,
            pdv_p95_ns: variation.pdv_p95_ns,
            pdv_p99_ns: variation.pdv_p99_ns,
            pdv_max_ns: variation.pdv_max_ns,
            ipdv_p50_ns: variation.ipdv_p50_ns,
            ipdv_p95_ns: variation.ipdv_p95_ns,
            ipdv_p99_ns: variation.ipdv_p99_ns,
        }
    }
}
