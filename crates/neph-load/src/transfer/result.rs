//! What a bulk transfer achieved, whichever program carried it out.

use neph_model::{BitRate, Throughput, ThroughputSecond, Wall};

/// What a bulk transfer achieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// `neph` or `iperf3`.
    pub tool: &'static str,
    /// When it started.
    pub started: Wall,
    /// Its seconds, in order; a last one that was cut short is a rate too.
    pub seconds: Vec<ThroughputSecond>,
    /// Over the whole transfer.
    pub goodput: BitRate,
}

impl Transfer {
    /// In the store's words.
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
