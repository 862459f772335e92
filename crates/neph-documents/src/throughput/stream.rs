//! Each second of each stream at each end, as it was counted there.

use neph_wire::throughput::{CoreShare, CpuInterval, Intervals, ReceivedInterval, SentInterval};
use schemars::JsonSchema;
use serde::Serialize;

use super::direction::VariationDocument;

/// What one end counted. Times are nanoseconds on its own clock.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EndDocument {
    /// Streams that it sent on.
    pub sent: Vec<SentDocument>,
    /// Streams that it received.
    pub received: Vec<ReceivedDocument>,
    /// Its CPU time.
    pub cpu: Vec<CpuSecondDocument>,
}

/// What one stream sent within a second.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct SentDocument {
    /// The number of the stream, from 0; those of the server follow those of the client.
    pub stream: u16,
    /// The number of the second, from 0.
    pub second: u32,
    /// When it began in nanoseconds since the stream began.
    pub begin_ns: u64,
    /// When it ended in nanoseconds since the stream began.
    pub end_ns: u64,
    /// Payload that the kernel took, in bytes.
    pub bytes: u64,
    /// UDP datagrams that the kernel took.
    pub datagrams: u64,
    /// UDP datagrams that the kernel refused.
    pub refused: u64,
    /// How long the thread waited for room in the send buffer, in nanoseconds.
    pub waited_ns: u64,
    /// How long the thread waited so that the rate was not exceeded, in nanoseconds.
    pub paced_ns: u64,
    /// CPU time of the thread in nanoseconds.
    pub cpu_ns: u64,
    /// The core that the thread was on most often; null where it is not known.
    pub core: Option<u32>,
    /// TCP: bytes that the receiver acknowledged; null of UDP, as are the following keys.
    pub acked_bytes: Option<u64>,
    /// TCP: segments that were sent, retransmissions included.
    pub segments: Option<u64>,
    /// TCP: segments that were retransmitted.
    pub retransmissions: Option<u64>,
    /// TCP: congestion window at the end, in segments.
    pub cwnd_segments: Option<u32>,
    /// TCP: maximum segment size in bytes.
    pub mss_bytes: Option<u32>,
    /// TCP: smoothed round-trip time at the end, in microseconds.
    pub srtt_us: Option<u32>,
    /// TCP: least round-trip time of the connection, in microseconds.
    pub min_rtt_us: Option<u32>,
    /// TCP: time with data in flight or waiting, in microseconds.
    pub busy_us: Option<u64>,
    /// TCP: of that, limited by the receive window, in microseconds.
    pub rwnd_limited_us: Option<u64>,
    /// TCP: of that, limited by the send buffer, in microseconds.
    pub sndbuf_limited_us: Option<u64>,
}

/// What one stream received within a second.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ReceivedDocument {
    /// The number of the stream, from 0; those of the server follow those of the client.
    pub stream: u16,
    /// The number of the second, from 0.
    pub second: u32,
    /// After the test's time: what was still under way. It is not part of the goodput.
    pub is_late: bool,
    /// When it began in nanoseconds since the stream's first data.
    pub begin_ns: u64,
    /// When it ended in nanoseconds since the stream's first data.
    pub end_ns: u64,
    /// Payload in bytes.
    pub bytes: u64,
    /// How long the thread waited for data, in nanoseconds.
    pub waited_ns: u64,
    /// CPU time of the thread in nanoseconds.
    pub cpu_ns: u64,
    /// The core that the thread was on most often; null where it is not known.
    pub core: Option<u32>,
    /// UDP: datagrams that came, duplicates not counted; null of TCP, as are the following keys.
    pub datagrams: Option<u64>,
    /// UDP: datagrams that are missing in the sequence.
    pub lost: Option<u64>,
    /// UDP: datagrams of earlier seconds' losses that came late.
    pub found: Option<u64>,
    /// UDP: datagrams that came out of order (RFC 4737).
    pub reordered: Option<u64>,
    /// UDP: the largest reordering extent (RFC 4737).
    pub reordering_extent: Option<u64>,
    /// UDP: datagrams that came more than once.
    pub duplicates: Option<u64>,
    /// UDP: datagrams that were dropped at the socket; an estimate where the kernel joins datagrams.
    pub socket_drops: Option<u64>,
    /// UDP: interarrival jitter at the end, in nanoseconds (RFC 3550).
    pub jitter_ns: Option<u64>,
    /// UDP: delay variation of the second (RFC 5481).
    pub variation: Option<VariationDocument>,
}

/// CPU time of an end within a second.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CpuSecondDocument {
    /// The number of the second, from 0.
    pub second: u32,
    /// When it began in nanoseconds since the end's start.
    pub begin_ns: u64,
    /// When it ended in nanoseconds since the end's start.
    pub end_ns: u64,
    /// CPU time of the process in nanoseconds.
    pub process_cpu_ns: u64,
    /// Datagrams that the kernel dropped at full receive buffers, of all programs (`RcvbufErrors`).
    pub rcvbuf_errors: u64,
    /// Each core of the host.
    pub cores: Vec<CoreDocument>,
}

/// How a core spent a second.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct CoreDocument {
    /// Its number.
    pub core: u32,
    /// Neither idle nor waiting for I/O, percent.
    pub busy_percent: f64,
    /// Of that, in soft interrupts, percent.
    pub softirq_percent: f64,
    /// Of that, taken by the hypervisor, percent.
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
    fn from(one: &SentInterval) -> Self {
        let tcp = one.tcp.as_ref();
        Self {
            stream: one.stream,
            second: one.index,
            begin_ns: one.from_ns,
            end_ns: one.to_ns,
            bytes: one.bytes,
            datagrams: one.datagrams,
            refused: one.refused,
            waited_ns: one.waited_ns,
            paced_ns: one.paced_ns,
            cpu_ns: one.cpu_ns,
            core: one.core,
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
    fn from(one: &ReceivedInterval) -> Self {
        let udp = one.udp.as_ref();
        Self {
            stream: one.stream,
            second: one.index,
            is_late: one.is_late,
            begin_ns: one.from_ns,
            end_ns: one.to_ns,
            bytes: one.bytes,
            waited_ns: one.waited_ns,
            cpu_ns: one.cpu_ns,
            core: one.core,
            datagrams: udp.map(|udp| udp.datagrams),
            lost: udp.map(|udp| udp.lost),
            found: udp.map(|udp| udp.found),
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
    fn from(one: &CpuInterval) -> Self {
        Self {
            second: one.index,
            begin_ns: one.from_ns,
            end_ns: one.to_ns,
            process_cpu_ns: one.process_ns,
            rcvbuf_errors: one.rcvbuf_errors,
            cores: one.cores.iter().map(CoreDocument::from).collect(),
        }
    }
}

impl From<&CoreShare> for CoreDocument {
    fn from(one: &CoreShare) -> Self {
        let percent = |permille: u16| f64::from(permille) / 10.0;
        Self {
            core: one.core,
            busy_percent: percent(one.busy_permille),
            softirq_percent: percent(one.softirq_permille),
            steal_percent: percent(one.steal_permille),
        }
    }
}
