//! Counters of one end of a throughput test in an interval, usually a second.
//!
//! All numbers are integers: nanoseconds since the start of the test by this end's monotonic clock,
//! bytes of payload, datagrams.

use serde::{Deserialize, Serialize};

/// Counters of one sending stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentInterval {
    /// The number of the stream, from 0.
    pub stream: u16,
    /// The number of the interval, from 0.
    pub index: u32,
    /// Start of the interval.
    pub from_ns: u64,
    /// End of the interval.
    pub to_ns: u64,
    /// Payload that the kernel accepted.
    pub bytes: u64,
    /// UDP datagrams that the kernel accepted; 0 with TCP.
    pub datagrams: u64,
    /// UDP datagrams that the kernel refused (no buffer, no route); 0 with TCP.
    pub refused: u64,
    /// Time that the thread waited for space in the send buffer.
    pub waited_ns: u64,
    /// Time that the thread waited in order not to exceed the requested rate.
    pub paced_ns: u64,
    /// Time that the thread waited in order not to exceed the policy's rate at this end.
    #[serde(default)]
    pub policy_ns: u64,
    /// CPU time of the stream's thread.
    pub cpu_ns: u64,
    /// The core that the thread ran on most often.
    pub core: Option<u32>,
    /// The connection's state at the end of the interval; absent with UDP.
    pub tcp: Option<TcpCounters>,
}

/// Counters of a TCP connection in an interval (`struct tcp_info` of linux/tcp.h).
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
    /// Smallest round-trip time since the start of the connection, microseconds.
    pub min_rtt_us: u32,
    /// Time with data in flight or waiting, microseconds.
    pub busy_us: u64,
    /// Of that, limited by the peer's receive window, microseconds.
    pub rwnd_limited_us: u64,
    /// Of that, limited by the send buffer, microseconds.
    pub sndbuf_limited_us: u64,
}

/// Counters of one receiving stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedInterval {
    /// The number of the stream, from 0.
    pub stream: u16,
    /// The number of the interval, from 0.
    pub index: u32,
    /// Data in flight that arrived after the duration of the test, or after its stop. It counts in
    /// the loss but not in the goodput.
    pub is_late: bool,
    /// Start of the interval, since the stream's first data arrived.
    pub from_ns: u64,
    /// End of the interval.
    pub to_ns: u64,
    /// Payload; with UDP including the header, without duplicates.
    pub bytes: u64,
    /// Time that the thread waited for data.
    pub waited_ns: u64,
    /// Time that the thread waited in order not to exceed the policy's rate at this end.
    #[serde(default)]
    pub policy_ns: u64,
    /// CPU time of the stream's thread.
    pub cpu_ns: u64,
    /// The core that the thread ran on most often.
    pub core: Option<u32>,
    /// UDP counters; absent with TCP.
    pub udp: Option<UdpCounters>,
}

/// Datagrams of one stream in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpCounters {
    /// Received datagrams, without duplicates.
    pub datagrams: u64,
    /// Datagrams missing below the highest sequence number. A datagram that arrives in a later
    /// interval is subtracted there.
    pub lost: u64,
    /// Datagrams that arrived late, after they were counted as lost in an earlier interval.
    pub found: u64,
    /// Datagrams that arrived after one with a higher sequence number (RFC 4737, Type-P-Reordered).
    pub reordered: u64,
    /// The largest reordering extent, datagrams (RFC 4737, section 4.2).
    pub reordering_extent: u64,
    /// Additional copies of datagrams.
    pub duplicates: u64,
    /// Datagrams that the kernel dropped because the receive buffer was full (`SO_MEMINFO`). The
    /// kernel counts packets. With GRO each packet counts as many datagrams as the received ones
    /// had on average.
    pub socket_drops: u64,
    /// Interarrival jitter at the end of the interval (RFC 3550, section 6.4.1).
    pub jitter_ns: u64,
    /// Delay variation of the interval.
    pub variation: Variation,
}

/// Delay variation (RFC 5481). PDV: delay minus the least delay of the stream so far. IPDV:
/// absolute difference between the delays of datagrams with consecutive sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variation {
    /// Number of delays.
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

/// Delay variation of a stream over the whole test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamVariation {
    /// The number of the stream, from 0.
    pub stream: u16,
    /// Over all its datagrams, or over a uniform random sample of them.
    pub variation: Variation,
}

/// CPU time of one end in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuInterval {
    /// The number of the interval, from 0.
    pub index: u32,
    /// Start of the interval.
    pub from_ns: u64,
    /// End of the interval.
    pub to_ns: u64,
    /// CPU time of the whole process.
    pub process_ns: u64,
    /// Datagrams of all programs that the kernel dropped at full receive buffers in this network
    /// namespace (`RcvbufErrors` of /proc/net/snmp and snmp6).
    pub rcvbuf_errors: u64,
    /// All cores of the host.
    pub cores: Vec<CoreShare>,
}

/// CPU use of a core in an interval, in thousandths (`/proc/stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreShare {
    /// The number of the core.
    pub core: u32,
    /// Not idle and not waiting for I/O; includes steal time.
    pub busy_permille: u16,
    /// Of that, in soft interrupts: packet processing of the kernel.
    pub softirq_permille: u16,
    /// Of that, steal time of the hypervisor.
    pub steal_permille: u16,
}
