//! A throughput check: what a bulk transfer achieved, second by second.

use serde::{Deserialize, Serialize};

use crate::{BitRate, Span, Wall};

/// One second of a bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThroughputSecond {
    /// Payload bits per second that the receiver acknowledged.
    pub goodput: BitRate,
    /// Segments retransmitted within this second.
    pub retransmissions: u32,
    /// Congestion window at its end, in segments; absent where the tool does not tell it.
    pub cwnd_segments: Option<u32>,
    /// Smoothed round-trip time at its end; absent where the tool does not tell it.
    pub srtt: Option<Span>,
}

/// A bulk transfer of one pair at the start of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throughput {
    /// The block, from 0.
    pub block: u32,
    /// The endpoint's or iperf3 destination's name.
    pub endpoint: String,
    /// The site that sent; absent: the host as it is.
    pub site: Option<String>,
    /// `neph` or `iperf3`.
    pub tool: String,
    /// When it started.
    pub started: Wall,
    /// Its seconds, in order.
    pub seconds: Vec<ThroughputSecond>,
    /// Over the whole transfer.
    pub goodput: BitRate,
    /// Why there is no figure, if there is none.
    pub failure: Option<String>,
}
