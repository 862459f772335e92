//! A bulk transfer's result, whoever carried it out.

use neph_model::{BitRate, Span, Throughput, ThroughputSecond, Wall};

/// What a bulk transfer achieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// `neph` or `iperf3`.
    pub tool: &'static str,
    /// When it started.
    pub started: Wall,
    /// Its seconds, in order; a last one that was cut short is told as a rate too.
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

/// Bytes within a time as a rate; none within no time.
pub(crate) fn rate(bytes: u64, span: Span) -> BitRate {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    let nanos = u128::try_from(span.nanos()).unwrap_or(0);
    let rate = bits.checked_div(nanos).unwrap_or(0);
    BitRate(u64::try_from(rate).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_bits_per_second() {
        assert_eq!(rate(125_000, Span::from_secs(1)), BitRate(1_000_000));
        assert_eq!(rate(125_000, Span::from_millis(500)), BitRate(2_000_000));
        assert_eq!(rate(1, Span::ZERO), BitRate(0));
    }
}
