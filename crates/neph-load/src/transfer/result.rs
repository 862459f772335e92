//! Result of a bulk transfer, of any tool.

use neph_model::{BitRate, Throughput, ThroughputSecond, Wall};

/// Result of a bulk transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferResult {
    /// `neph` or `iperf3`.
    pub tool: &'static str,
    /// When it started.
    pub started: Wall,
    /// Its seconds, in order; an incomplete last one is also a rate.
    pub seconds: Vec<ThroughputSecond>,
    /// Over the whole transfer.
    pub goodput: BitRate,
}

impl TransferResult {
    /// As a record of the store.
    pub fn into_throughput(self, block: u32, endpoint: &str) -> Throughput {
        Throughput {
            block,
            endpoint: endpoint.to_owned(),
            site: None,
            tool: self.tool.to_owned(),
            started: self.started,
            seconds: self.seconds,
            goodput: self.goodput,
            failure: None,
        }
    }
}
