//! What an end of a throughput test counted within an interval, usually a second.
//!
//! All numbers are integers: nanoseconds on the end's own monotonic clock since its start of the test,
//! bytes of payload, datagrams.

use serde::{Deserialize, Serialize};

/// What one stream sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentInterval {
    /// The number of the stream, from 0.
    pub stream: u16,
    /// The number of the interval, from 0.
    pub index: u32,
    /// When it began.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// Payload that the kernel took.
    pub bytes: u64,
    /// UDP datagrams that the kernel took; 0 of TCP.
    pub datagrams: u64,
    /// UDP datagrams that the kernel refused (no buffer, no route); 0 of TCP.
    pub refused: u64,
    /// How long the thread waited for room in the send buffer.
    pub waited_ns: u64,
    /// How long the thread waited so that the rate was not exceeded.
    pub paced_ns: u64,
    /// CPU time of the stream's thread.
    pub cpu_ns: u64,
    /// The core that the thread was on most often.
    pub core: Option<u32>,
    /// The connection's state at the end of the interval; absent of UDP.
    pub tcp: Option<TcpCounters>,
}

/// A TCP connection within an interval (`struct tcp_info` of linux/tcp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpCounters {
    /// Bytes that the peer acknowledged.
    pub acked_bytes: u64,
    /// Segments that were sent, retransmissions included.
    pub segments: u64,
    /// Segments that were retransmitted.
    pub retransmissions: u64,
    /// Congestion window at the end, segments.
    pub cwnd_segments: u32,
    /// Maximum segment size, bytes.
    pub mss_bytes: u32,
    /// Smoothed round-trip time at the end, microseconds.
    pub srtt_us: u32,
    /// Least round-trip time since the connection began, microseconds.
    pub min_rtt_us: u32,
    /// Time with data in flight or waiting, microseconds.
    pub busy_us: u64,
    /// Of that, limited by the peer's receive window, microseconds.
    pub rwnd_limited_us: u64,
    /// Of that, limited by the send buffer, microseconds.
    pub sndbuf_limited_us: u64,
}

/// What one stream received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedInterval {
    /// The number of the stream, from 0.
    pub stream: u16,
    /// The number of the interval, from 0.
    pub index: u32,
    /// After the test's duration, or after it was stopped: what was still under way. It counts in losses
    /// and not in the goodput.
    pub is_late: bool,
    /// When it began, since the stream's first data came.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// Payload; of UDP with its header, duplicates not counted.
    pub bytes: u64,
    /// How long the thread waited for data.
    pub waited_ns: u64,
    /// CPU time of the stream's thread.
    pub cpu_ns: u64,
    /// The core that the thread was on most often.
    pub core: Option<u32>,
    /// What is known of datagrams only; absent of TCP.
    pub udp: Option<UdpCounters>,
}

/// Datagrams of one stream within an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpCounters {
    /// That came, duplicates not counted.
    pub datagrams: u64,
    /// That are missing before the highest sequence number; what came late in a later interval is
    /// taken from that interval's.
    pub lost: u64,
    /// That came late although they had been counted as lost in an earlier interval.
    pub found: u64,
    /// That came after one with a higher sequence number (RFC 4737, Type-P-Reordered).
    pub reordered: u64,
    /// The largest reordering extent, datagrams (RFC 4737, section 4.2).
    pub reordering_extent: u64,
    /// That came more than once.
    pub duplicates: u64,
    /// That the kernel dropped because the socket's receive buffer was full (`SO_MEMINFO`). It counts
    /// packets; of joined ones (GRO) each counts as many datagrams as those that came had on average.
    pub socket_drops: u64,
    /// Interarrival jitter at the end of the interval (RFC 3550, section 6.4.1).
    pub jitter_ns: u64,
    /// Delay variation of the interval.
    pub variation: Variation,
}

/// Delay variation (RFC 5481): PDV as delay over the least delay of the stream until then, IPDV as the
/// difference of delay to the datagram with the sequence number before, without sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variation {
    /// Delays that the percentiles are of.
    pub samples: u64,
    /// The median of PDV.
    pub pdv_p50_ns: Option<u64>,
    /// The 95th percentile of PDV; absent with fewer than 59 samples.
    pub pdv_p95_ns: Option<u64>,
    /// The 99th percentile of PDV; absent with fewer than 299 samples.
    pub pdv_p99_ns: Option<u64>,
    /// The largest PDV.
    pub pdv_max_ns: Option<u64>,
    /// The median of IPDV.
    pub ipdv_p50_ns: Option<u64>,
    /// The 95th percentile of IPDV; absent with fewer than 59 samples.
    pub ipdv_p95_ns: Option<u64>,
    /// The 99th percentile of IPDV; absent with fewer than 299 samples.
    pub ipdv_p99_ns: Option<u64>,
}

/// Delay variation of a stream's whole test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamVariation {
    /// The number of the stream, from 0.
    pub stream: u16,
    /// Of all its datagrams, or of an even part of them.
    pub variation: Variation,
}

/// CPU time of one end within an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuInterval {
    /// The number of the interval, from 0.
    pub index: u32,
    /// When it began.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// CPU time of the whole process.
    pub process_ns: u64,
    /// Datagrams that this network namespace's kernel dropped at full receive buffers, of all programs
    /// (`RcvbufErrors` of /proc/net/snmp and snmp6).
    pub rcvbuf_errors: u64,
    /// Each core of the host.
    pub cores: Vec<CoreShare>,
}

/// How a core spent an interval, in thousandths (`/proc/stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreShare {
    /// Its number.
    pub core: u32,
    /// Not idle and not waiting for I/O; time that a hypervisor took counts as busy.
    pub busy_permille: u16,
    /// Of that, in soft interrupts: the kernel's work on packets.
    pub softirq_permille: u16,
    /// Of that, taken by the hypervisor.
    pub steal_permille: u16,
}
