//! How long requests of a fleet stayed at their reflector, by its own timestamps.
//!
//! A round trip excludes the stay, so results do not show it, until it exceeds the timeout. Then the
//! message counts as lost, though the network lost nothing.

use neph_model::{FleetReply, Span, Warning};
use neph_stats::Precision;

use crate::span_histogram::SpanHistogram;

/// A reflector with a core to itself takes tens of microseconds, a busy one some milliseconds.
const MAX_RESIDENCE_P99: Span = Span::from_millis(100);
/// Stays are known to two digits.
const RESIDENCE_PRECISION: Precision = Precision::one_part_in(256);

/// The stays of a fleet's requests.
#[derive(Debug)]
pub(crate) struct ResidenceTimes(SpanHistogram);

impl Default for ResidenceTimes {
    fn default() -> Self {
        Self(SpanHistogram::new(RESIDENCE_PRECISION))
    }
}

impl ResidenceTimes {
    /// Takes note of a reply; without a stay if the peer does not report it.
    pub(crate) fn record_reply(&mut self, reply: &FleetReply) {
        if let Some(peer) = &reply.peer_report {
            self.0.record(peer.residence);
        }
    }

    /// The 99th percentile; the largest value below 100 replies. `None` if no peer reported a stay.
    pub(crate) fn p99(&self) -> Option<Span> {
        self.0.at_permille(990)
    }

    /// A warning that the reflector was slow, if it was.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let bound = MAX_RESIDENCE_P99;
        let p99 = self.p99().filter(|p99| *p99 > bound)?;
        Some(Warning::ReflectorSlow { p99, bound })
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{Instant, PeerReport, ReadBy};

    use super::*;

    fn add_replies(residence_times: &mut ResidenceTimes, residence: Option<Span>, times: u32) {
        let peer_report = residence.map(|residence| PeerReport {
            rx: Instant::from_nanos(5),
            residence,
            count: None,
            ttl: None,
        });
        let reply = FleetReply {
            round_trip: Span::from_secs(6),
            read_by: ReadBy::Kernel,
            peer_report,
            ttl: None,
            copies: 0,
            answer: None,
        };
        (0..times).for_each(|_| residence_times.record_reply(&reply));
    }

    #[test]
    fn a_reflector_with_residence_times_of_seconds_is_flagged_as_slow() {
        let quick = Some(Span::from_micros(40));
        let slow = Some(Span::from_millis(4900));
        let mut residence_times = ResidenceTimes::default();
        add_replies(&mut residence_times, None, 2);
        assert_eq!(
            (residence_times.p99(), residence_times.warning()),
            (None, None)
        );
        add_replies(&mut residence_times, quick, 98);
        assert_eq!(residence_times.warning(), None);
        add_replies(&mut residence_times, slow, 20);
        let warning = residence_times.warning();
        let Some(Warning::ReflectorSlow { p99, bound }) = warning else {
            panic!("{warning:?}");
        };
        assert_eq!(bound, Span::from_millis(100));
        assert!(p99 >= Span::from_millis(4850) && p99 <= Span::from_millis(4950));
    }
}
