//! The counters of each stream and second at each end.

use neph_wire::throughput::{CoreShare, CpuInterval, Intervals, ReceivedInterval, SentInterval};
use schemars::JsonSchema;
use serde::Serialize;

use super::direction::VariationDocument;

/// The counters of one end. Times are nanoseconds on its own clock.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EndDocument {
    /// Counters of streams that it sent.
    pub sent: Vec<SentDocument>,
    /// Counters of streams that it received.
    pub received: Vec<ReceivedDocument>,
    /// CPU time of its process and of its cores.
    pub cpu: Vec<CpuSecondDocument>,
}

/// The counters of one sent stream in one second.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct SentDocument {
    /// Number of the stream, from 0; streams of the server follow those of the client.
    pub stream: u16,
    /// The number of the second, from 0.
    pub second: u32,
    /// Start of the second, since the start of the stream.
    pub begin_ns: u64,
    /// End of the second, since the start of the stream.
    pub end_ns: u64,
    /// Payload that the kernel accepted.
    pub bytes: u64,
    /// UDP datagrams that the kernel accepted.
    pub datagrams: u64,
    /// UDP datagrams that the kernel refused.
    pub refused: u64,
    /// Time that the thread waited for room in the send buffer.
    pub waited_ns: u64,
    /// Time that the thread waited because of the target rate.
    pub paced_ns: u64,
    /// CPU time of the thread.
    pub cpu_ns: u64,
    /// Core on which the thread ran most often; null if not known.
    pub core: Option<u32>,
    /// TCP: bytes that the receiver acknowledged; null for UDP, as are the following keys.
    pub acked_bytes: Option<u64>,
    /// TCP: segments sent, retransmissions included.
    pub segments: Option<u64>,
    /// TCP: segments retransmitted.
    pub retransmissions: Option<u64>,
    /// TCP: congestion window at the end of the second.
    pub cwnd_segments: Option<u32>,
    /// TCP: maximum segment size.
    pub mss_bytes: Option<u32>,
    /// TCP: smoothed round-trip time at the end of the second.
    pub srtt_us: Option<u32>,
    /// TCP: minimum round-trip time of the connection.
    pub min_rtt_us: Option<u32>,
    /// TCP: time with data in flight or waiting to be sent.
    pub busy_us: Option<u64>,
    /// TCP: part of `busy_us` in which the receive window limited the sending.
    pub rwnd_limited_us: Option<u64>,
    /// TCP: part of `busy_us` in which the send buffer limited the sending.
    pub sndbuf_limited_us: Option<u64>,
}

/// The counters of one received stream in one second.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ReceivedDocument {
    /// Number of the stream, from 0; streams of the server follow those of the client.
    pub stream: u16,
    /// The number of the second, from 0.
    pub second: u32,
    /// Whether the second is after the end of the test: its data was in transit, and is not part of
    /// the goodput.
    pub is_late: bool,
    /// Start of the second, since the stream's first data.
    pub begin_ns: u64,
    /// End of the second, since the stream's first data.
    pub end_ns: u64,
    /// Payload received.
    pub bytes: u64,
    /// Time that the thread waited for data.
    pub waited_ns: u64,
    /// CPU time of the thread.
    pub cpu_ns: u64,
    /// Core on which the thread ran most often; null if not known.
    pub core: Option<u32>,
    /// UDP: datagrams received, without duplicates; null for TCP, as are the following keys.
    pub datagrams: Option<u64>,
    /// UDP: datagrams that are missing in the sequence.
    pub lost: Option<u64>,
    /// UDP: datagrams that were missing in earlier seconds and arrived in this one.
    pub recovered: Option<u64>,
    /// UDP: datagrams that arrived after one with a higher sequence number (RFC 4737).
    pub reordered: Option<u64>,
    /// UDP: largest reordering extent (RFC 4737).
    pub reordering_extent: Option<u64>,
    /// UDP: duplicate datagrams.
    pub duplicates: Option<u64>,
    /// UDP: datagrams dropped at the socket; an estimate if the kernel merges datagrams.
    pub socket_drops: Option<u64>,
    /// UDP: interarrival jitter at the end of the second (RFC 3550).
    pub jitter_ns: Option<u64>,
    /// UDP: delay variation in this second (RFC 5481).
    pub variation: Option<VariationDocument>,
}

/// The CPU time of one end in one second.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CpuSecondDocument {
    /// The number of the second, from 0.
    pub second: u32,
    /// Start of the second, since the end's start.
    pub begin_ns: u64,
    /// End of the second, since the end's start.
    pub end_ns: u64,
    /// CPU time of the process.
    pub process_cpu_ns: u64,
    /// Datagrams that the kernel dropped at full receive buffers, of all programs (`RcvbufErrors`).
    pub rcvbuf_errors: u64,
    /// Use of each core of the host.
    pub cores: Vec<CoreDocument>,
}

/// The use of one core in one second.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct CoreDocument {
    /// Number of the core.
    pub core: u32,
    /// Time neither idle nor waiting for I/O.
    pub busy_percent: f64,
    /// Part of `busy_percent` that software interrupts took.
    pub softirq_percent: f64,
    /// Part of `busy_percent` that the hypervisor took.
    pub steal_percent: f64,
}

impl From<&Intervals> for EndDocument {
    fn from(end: &Intervals) -> Self {
        Self {
            sent: end.sent.iter().map(SentDocument::from).collect(),
            received: end.received.iter().map(ReceivedDocument::from).collect(),
            cpu: end.cpu.iter().map(CpuSecondDocument::from).collect(),
        }
    }
}

impl From<&SentInterval> for SentDocument {
    fn from(interval: &SentInterval) -> Self {
        let tcp = interval.tcp.as_ref();
        Self {
            stream: interval.stream,
            second: interval.index,
            begin_ns: interval.from_ns,
            end_ns: interval.to_ns,
            bytes: interval.bytes,
            datagrams: interval.datagrams,
            refused: interval.refused,
            waited_ns: interval.waited_ns,
            paced_ns: interval.paced_ns,
            cpu_ns: interval.cpu_ns,
            core: interval.core,
            acked_bytes: tcp.map(|tcp| tcp.acked_bytes),
            segments: tcp.map(|tcp| tcp.segments),
            retransmissions: tcp.map(|tcp| tcp.retransmissions),
            cwnd_segments: tcp.map(|tcp| tcp.cwnd_segments),
            mss_bytes: tcp.map(|tcp| tcp.mss_bytes),
            srtt_us: tcp.map(|tcp| tcp.srtt_us),
            min_rtt_us: tcp.map(|tcp| tcp.min_rtt_us),
            busy_us: tcp.map(|tcp| tcp.busy_us),
            rwnd_limited_us: tcp.map(|tcp| tcp.rwnd_limited_us),
            sndbuf_limited_us: tcp.map(|tcp| tcp.sndbuf_limited_us),
        }
    }
}

impl From<&ReceivedInterval> for ReceivedDocument {
    fn from(interval: &ReceivedInterval) -> Self {
        let udp = interval.udp.as_ref();
        Self {
            stream: interval.stream,
            second: interval.index,
            is_late: interval.is_late,
            begin_ns: interval.from_ns,
            end_ns: interval.to_ns,
            bytes: interval.bytes,
            waited_ns: interval.waited_ns,
            cpu_ns: interval.cpu_ns,
            core: interval.core,
            datagrams: udp.map(|udp| udp.datagrams),
            lost: udp.map(|udp| udp.lost),
            recovered: udp.map(|udp| udp.found),
            reordered: udp.map(|udp| udp.reordered),
            reordering_extent: udp.map(|udp| udp.reordering_extent),
            duplicates: udp.map(|udp| udp.duplicates),
            socket_drops: udp.map(|udp| udp.socket_drops),
            jitter_ns: udp.map(|udp| udp.jitter_ns),
            variation: udp.map(|udp| VariationDocument::from(&udp.variation)),
        }
    }
}

impl From<&CpuInterval> for CpuSecondDocument {
    fn from(interval: &CpuInterval) -> Self {
        Self {
            second: interval.index,
            begin_ns: interval.from_ns,
            end_ns: interval.to_ns,
            process_cpu_ns: interval.process_ns,
            rcvbuf_errors: interval.rcvbuf_errors,
            cores: interval.cores.iter().map(CoreDocument::from).collect(),
        }
    }
}

impl From<&CoreShare> for CoreDocument {
    fn from(share: &CoreShare) -> Self {
        let percent = |permille: u16| f64::from(permille) / 10.0;
        Self {
            core: share.core,
            busy_percent: percent(share.busy_permille),
            softirq_percent: percent(share.softirq_permille),
            steal_percent: percent(share.steal_permille),
        }
    }
}
