//! Converts a connection's counters to seconds. Counts what the peer's TCP acknowledged, not what
//! was written: a full send buffer is no throughput.

use neph_model::{BitRate, Span, ThroughputSecond};
use neph_sys::tcp::TcpStats;

const SECOND: Span = Span::from_secs(1);

/// Converts a connection's counters to seconds.
#[derive(Debug)]
pub(crate) struct Meter {
    first: TcpStats,
    since: Span,
    latest: TcpStats,
    seconds: Vec<ThroughputSecond>,
}

impl Meter {
    /// With the counters at the start.
    pub(crate) fn start(stats: TcpStats) -> Self {
        Self {
            first: stats,
            since: Span::ZERO,
            latest: stats,
            seconds: Vec::with_capacity(64),
        }
    }

    /// When to read next: whole seconds since the start, however late the last reading was.
    pub(crate) fn due(&self) -> Span {
        let second_count = i64::try_from(self.seconds.len() + 1).unwrap_or(i64::MAX);
        SECOND.times(second_count)
    }

    /// Time of the last reading.
    pub(crate) const fn since(&self) -> Span {
        self.since
    }

    /// Ends a second with the counters at this time.
    pub(crate) fn read(&mut self, stats: TcpStats, at: Span) {
        let before = self.latest;
        self.seconds.push(ThroughputSecond {
            goodput: rate_of(stats.bytes_acked - before.bytes_acked, at - self.since),
            retransmissions: stats.retransmissions.wrapping_sub(before.retransmissions),
            spurious_retransmissions: self.spurious(stats) - self.spurious(before),
            cwnd_segments: Some(stats.cwnd),
            srtt: Some(Span::from_micros(i64::from(stats.srtt_us))),
        });
        (self.since, self.latest) = (at, stats);
    }

    /// Retransmissions since the start that the receiver reported as duplicates. Neither counter
    /// ever decreases.
    fn spurious(&self, stats: TcpStats) -> u32 {
        let sent = stats
            .retransmissions
            .wrapping_sub(self.first.retransmissions);
        let doubled = stats
            .dsack_duplicates
            .wrapping_sub(self.first.dsack_duplicates);
        doubled.min(sent)
    }

    /// The seconds, and the rate over all of them.
    pub(crate) fn end(self) -> (Vec<ThroughputSecond>, BitRate) {
        let bytes = self.latest.bytes_acked - self.first.bytes_acked;
        (self.seconds, rate_of(bytes, self.since))
    }

    /// Whether there is no reading.
    pub(crate) fn is_empty(&self) -> bool {
        self.seconds.is_empty()
    }
}

/// Rate of bytes within a time; 0 for no time.
pub fn rate_of(bytes: u64, span: Span) -> BitRate {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    let nanos = u128::try_from(span.nanos()).unwrap_or(0);
    let rate = bits.checked_div(nanos).unwrap_or(0);
    BitRate(u64::try_from(rate).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_goodput_is_in_bits_per_second() {
        assert_eq!(rate_of(125_000, Span::from_secs(1)), BitRate(1_000_000));
        let half = Span::from_millis(500);
        assert_eq!(rate_of(125_000, half), BitRate(2_000_000));
        assert_eq!(rate_of(1, Span::ZERO), BitRate(0));
    }

    #[test]
    fn each_second_is_a_difference_and_counts_a_spurious_retransmission_once() {
        let at = |bytes_acked, retransmissions, dsack_duplicates| TcpStats {
            bytes_acked,
            retransmissions,
            dsack_duplicates,
            ..TcpStats::default()
        };
        let mut meter = Meter::start(at(1_000, 1, 1));
        assert_eq!(meter.due(), SECOND);
        meter.read(at(126_000, 3, 5), Span::from_secs(1));
        meter.read(at(126_000, 6, 6), Span::from_millis(2_500));
        assert_eq!(meter.due(), Span::from_secs(3));
        let (seconds, overall) = meter.end();
        let second_values = seconds.iter().map(|second| {
            let counted = (second.retransmissions, second.spurious_retransmissions);
            (second.goodput, counted)
        });
        let expected = [(BitRate(1_000_000), (2, 2)), (BitRate(0), (3, 3))];
        assert!(second_values.eq(expected), "{seconds:?}");
        assert_eq!(overall, BitRate(400_000));
    }
}
