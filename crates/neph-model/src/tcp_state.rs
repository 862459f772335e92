//! A TCP connection's state at one moment, as the kernel reports it with a send timestamp
//! (`OPT_STATS`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TCP state of a connection, from Linux's `TCP_NLA_*` attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpState {
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow start threshold in segments; 4294967295 and 2147483647: not set.
    pub ssthresh: u32,
    /// Smoothed round-trip time in microseconds.
    pub srtt_us: u32,
    /// Minimum round-trip time in microseconds.
    pub min_rtt_us: u32,
    /// Segments retransmitted since the connection began.
    pub retransmissions: u32,
    /// Segments that the peer reported as received twice (DSACK, RFC 2883) since the connection
    /// began. 0 where the kernel does not report them.
    pub dsack_duplicates: u32,
    /// Most recent delivery rate in bytes per second.
    pub delivery_rate: u64,
}

impl TcpState {
    /// Retransmitted segments that the peer had received already. The network may duplicate packets
    /// as well: there are never more of these than retransmissions.
    pub const fn spurious_retransmissions(&self) -> u32 {
        if self.dsack_duplicates < self.retransmissions {
            self.dsack_duplicates
        } else {
            self.retransmissions
        }
    }
}
