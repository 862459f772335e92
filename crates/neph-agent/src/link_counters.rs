//! Whether the emulated links of a lab did what their settings say during an experiment.
//!
//! Owns the evaluation, separate for each direction of each link: one that is late in every packet
//! must not hide behind one that carries a million in time.

use neph_model::{Span, Warning};

/// What one direction of a lab's link did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that left later than the link's tolerance (50 us, or 2 % of its delay) after they were due.
    pub late_packets: u64,
    /// The largest lateness since the last read.
    pub max_lateness: Span,
    /// Packets delivered, late or not.
    pub delivered_packets: u64,
    /// Packets that it lost although its settings lose none.
    pub unexpected_losses: u64,
}

/// One late packet per so many is tolerated: fewer change no quantile of a report.
const MIN_PACKETS_PER_LATE_PACKET: u64 = 100;

/// The warnings that the time between two counts of the same links earns.
pub(crate) fn warnings(before: &[LinkCounters], after: &[LinkCounters]) -> Vec<Warning> {
    let deltas = before
        .iter()
        .zip(after)
        .map(|(before, after)| LinkCounters {
            late_packets: after.late_packets - before.late_packets,
            delivered_packets: after.delivered_packets - before.delivered_packets,
            unexpected_losses: after.unexpected_losses - before.unexpected_losses,
            max_lateness: after.max_lateness,
        });
    let deltas: Vec<LinkCounters> = deltas.collect();
    let late_links = deltas
        .iter()
        .filter(|link| link.late_packets * MIN_PACKETS_PER_LATE_PACKET > link.delivered_packets);
    let worst = late_links.clone().map(|link| link.max_lateness).max();
    let late_warning = worst.map(|worst| Warning::LinkLate {
        packets: late_links.map(|link| link.late_packets).sum(),
        worst,
    });
    let packets: u64 = deltas.iter().map(|link| link.unexpected_losses).sum();
    let loss_warning = (packets > 0).then_some(Warning::LinkLostPackets { packets });
    late_warning.into_iter().chain(loss_warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN_TOLERANCE: LinkCounters = LinkCounters {
        late_packets: 10,
        max_lateness: Span::from_micros(60),
        delivered_packets: 1_000_000,
        unexpected_losses: 0,
    };

    #[test]
    fn each_link_is_checked_separately_for_late_packets() {
        let late_link = LinkCounters {
            late_packets: 5,
            max_lateness: Span::from_micros(300),
            delivered_packets: 20,
            unexpected_losses: 0,
        };
        let unused = [LinkCounters::default(); 2];
        assert_eq!(warnings(&unused, &[WITHIN_TOLERANCE, WITHIN_TOLERANCE]), []);
        let counters = [WITHIN_TOLERANCE, late_link];
        let link_warnings = warnings(&unused, &counters);
        let worst = Span::from_micros(300);
        assert_eq!(link_warnings, [Warning::LinkLate { packets: 5, worst }]);
        assert_eq!(warnings(&counters, &counters), [], "before");
    }

    #[test]
    fn a_single_unexpected_loss_is_reported() {
        let with_loss = LinkCounters {
            unexpected_losses: 1,
            ..WITHIN_TOLERANCE
        };
        let link_warnings = warnings(&[WITHIN_TOLERANCE], &[with_loss]);
        assert_eq!(link_warnings, [Warning::LinkLostPackets { packets: 1 }]);
    }
}
