//! A throughput check: the results of a bulk transfer, second by second.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BitRate, Span, Wall};

/// One second of a bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThroughputSecond {
    /// Payload that the receiver acknowledged, bit/s.
    pub goodput: BitRate,
    /// Segments retransmitted in this second.
    pub retransmissions: u32,
    /// Retransmitted segments that the peer had received already (DSACK); 0 if the tool does not
    /// report them.
    #[serde(default)]
    pub spurious_retransmissions: u32,
    /// Congestion window at the end of the second, in segments; null if the tool does not report
    /// it.
    pub cwnd_segments: Option<u32>,
    /// Smoothed round-trip time at the end of the second, nanoseconds; null if the tool does not
    /// report it.
    pub srtt: Option<Span>,
}

/// A throughput check: a bulk transfer of one pair at the start of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// The block, from 0.
    pub block: u32,
    /// Name of the endpoint or of the iperf3 server.
    pub endpoint: String,
    /// Site that sent; null for the host itself.
    pub site: Option<String>,
    /// `neph` or `iperf3`.
    pub tool: String,
    /// Start time, Unix nanoseconds.
    pub started: Wall,
    /// Results of each second, in order.
    pub seconds: Vec<ThroughputSecond>,
    /// Payload rate over the whole transfer, bit/s.
    pub goodput: BitRate,
    /// Why it failed; null otherwise.
    pub failure: Option<String>,
}

/// How many bulk flows share a link of this capacity with one that has `own` of it, if all have the
/// same: `floor(capacity / own) - 1` (`LaCurts` and others; source 2, section 4.2.1). `None` if the
/// flow had nothing, or more than the capacity.
pub fn cross_flows(capacity: BitRate, flow_rate: BitRate) -> Option<u64> {
    let flow_count = capacity.0.checked_div(flow_rate.0)?;
    flow_count.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_with_a_quarter_of_the_link_rate_has_three_competitors() {
        let shared = |capacity, flow_rate| cross_flows(BitRate(capacity), BitRate(flow_rate));
        assert_eq!(shared(100, 100), Some(0));
        assert_eq!(shared(100, 25), Some(3));
        // What headers take makes the own share smaller, and is not enough for one flow more.
        assert_eq!(shared(100, 24), Some(3));
        assert_eq!(shared(100, 51), Some(0));
        assert_eq!((shared(100, 0), shared(100, 101)), (None, None));
    }
}
