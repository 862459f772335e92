//! Whether a lab's links kept their word during an experiment.
//!
//! Owns the judgement, each direction of each link by itself: one that is late in every packet must
//! not hide behind one that carries a million in time.

use neph_model::{Span, Warning};

/// What one direction of a lab's link did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCount {
    /// Packets that left later than the link's tolerance (50 us, or 2 % of its delay) after they were due.
    pub late: u64,
    /// The worst lateness since this was last asked.
    pub worst: Span,
    /// Packets carried, late or not.
    pub carried: u64,
    /// Packets that it lost without being asked to.
    pub broken: u64,
}

/// Tolerated share of late packets, one per 100: fewer change no quantile of a report.
const LATE_SHARE: u64 = 100;

/// The warnings that the time between two counts of the same links earns.
pub(crate) fn warnings(before: &[LinkCount], after: &[LinkCount]) -> Vec<Warning> {
    let during = before.iter().zip(after).map(|(before, after)| LinkCount {
        late: after.late - before.late,
        carried: after.carried - before.carried,
        broken: after.broken - before.broken,
        worst: after.worst,
    });
    let during: Vec<LinkCount> = during.collect();
    let late = during
        .iter()
        .filter(|link| link.late * LATE_SHARE > link.carried);
    let worst = late.clone().map(|link| link.worst).max();
    let late = worst.map(|worst| Warning::LinkLate {
        packets: late.map(|link| link.late).sum(),
        worst,
    });
    let broken: u64 = during.iter().map(|link| link.broken).sum();
    let broken = (broken > 0).then_some(Warning::LinkLostPackets { packets: broken });
    late.into_iter().chain(broken).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN_TIME: LinkCount = LinkCount {
        late: 10,
        worst: Span::from_micros(60),
        carried: 1_000_000,
        broken: 0,
    };

    #[test]
    fn each_link_is_checked_separately_for_late_packets() {
        let late = LinkCount {
            late: 5,
            worst: Span::from_micros(300),
            carried: 20,
            broken: 0,
        };
        let none = [LinkCount::default(); 2];
        assert_eq!(warnings(&none, &[IN_TIME, IN_TIME]), []);
        let reported = warnings(&none, &[IN_TIME, late]);
        let worst = Span::from_micros(300);
        assert_eq!(reported, [Warning::LinkLate { packets: 5, worst }]);
        assert_eq!(warnings(&[IN_TIME, late], &[IN_TIME, late]), [], "before");
    }

    #[test]
    fn a_single_unexpected_loss_is_reported() {
        let broke = LinkCount {
            broken: 1,
            ..IN_TIME
        };
        let reported = warnings(&[IN_TIME], &[broke]);
        assert_eq!(reported, [Warning::LinkLostPackets { packets: 1 }]);
    }
}
