//! The packets that have passed a capture point, as far as they explain a difference from tshark.

use std::collections::BTreeMap;

use crate::SegmentResult;
use crate::traffic::Truth;

/// What of each flow and end passed so far.
#[derive(Default)]
pub(crate) struct PassedSegments {
    new_ranges: BTreeMap<(u32, usize), Vec<(u64, u64)>>,
    highest: BTreeMap<(u32, usize), u64>,
    acked: BTreeMap<(u32, usize), u64>,
    /// Behind each end's latest window probe.
    probed: BTreeMap<(u32, usize), u64>,
    /// What each end acknowledged again while nothing was on its way that it could have.
    repeated: BTreeMap<(u32, usize), u64>,
    /// Whether each end's latest packet repeated an acknowledgement.
    repeats: BTreeMap<(u32, usize), bool>,
    /// `highest` of the same flow and end before the latest packet.
    pub(crate) old_highest: u64,
    /// The same of `acked`.
    acked_before: u64,
    /// What of each flow and end passed, in that order.
    passed: BTreeMap<(u32, usize), Vec<(u64, u64)>>,
}

impl PassedSegments {
    pub(crate) fn add(&mut self, truth: &Truth, theirs: &SegmentResult) {
        let sender = (truth.flow, truth.from);
        if theirs.events.contains(&"probe") {
            self.probed.insert(sender, truth.range.1);
        }
        let repeats = theirs.events.contains(&"duplicate ack");
        self.repeats.insert(sender, repeats);
        if repeats && !self.awaits(truth) {
            self.repeated.extend(truth.ack.map(|ack| (sender, ack)));
        }
        if truth.is_repeated {
            let ranges = self.new_ranges.entry((truth.flow, truth.from)).or_default();
            ranges.push(truth.range);
        }
        let highest = self.highest.entry((truth.flow, truth.from)).or_default();
        self.old_highest = *highest;
        *highest = truth.range.1.max(*highest);
        let acked = self.acked.entry((truth.flow, truth.from)).or_default();
        self.acked_before = *acked;
        *acked = truth.ack.unwrap_or(0).max(*acked);
        self.passed.entry(sender).or_default().push(truth.range);
    }

    /// Whether something of lower number that `truth` acknowledges first passed later than its last,
    /// or again.
    pub(crate) fn answers_late_data(&self, truth: &Truth) -> bool {
        let other = (truth.flow, 1 - truth.from);
        let (Some(ack), Some(passed)) = (truth.ack, self.passed.get(&other)) else {
            return false;
        };
        let is_last = |range: &(u64, u64)| range.1 == ack && range.0 < ack;
        let Some(index) = passed.iter().position(is_last) else {
            return false;
        };
        let is_below =
            |range: &&(u64, u64)| range.0 < passed[index].0 && range.1 > self.acked_before;
        let new_ranges = self.new_ranges.get(&other).into_iter().flatten();
        let later = passed[index..].iter();
        later.chain(new_ranges).any(|range| is_below(&range))
    }

    /// Whether an acknowledgement of all of `truth` passed before it.
    pub(crate) fn is_acknowledged(&self, truth: &Truth) -> bool {
        let acked = self.acked.get(&(truth.flow, 1 - truth.from));
        acked.is_some_and(|acked| *acked >= truth.range.1)
    }

    /// Whether an acknowledgement of more passed before `truth`.
    pub(crate) fn has_lower_ack(&self, truth: &Truth) -> bool {
        let acked = self.acked.get(&(truth.flow, truth.from));
        acked.copied() > truth.ack
    }

    /// Whether something passed that `truth` could have acknowledged and did not.
    pub(crate) fn awaits(&self, truth: &Truth) -> bool {
        let highest = self.highest.get(&(truth.flow, 1 - truth.from));
        highest.copied() > truth.ack
    }

    /// Whether the last byte that `truth` acknowledges passed again before.
    pub(crate) fn answers_retransmission(&self, truth: &Truth) -> bool {
        let ranges = self.new_ranges.get(&(truth.flow, 1 - truth.from));
        truth.ack.is_some_and(|ack| {
            let holds = |(from, to): &(u64, u64)| *from < ack && ack <= *to;
            ranges.is_some_and(|ranges| ranges.iter().any(holds))
        })
    }

    /// Whether the other end's latest window probe ends where `truth` acknowledges.
    pub(crate) fn answers_a_probe(&self, truth: &Truth) -> bool {
        let probed = self.probed.get(&(truth.flow, 1 - truth.from));
        probed.is_some() && probed.copied() == truth.ack
    }

    /// Whether the other end's latest packet said something new, or the same with data or FIN.
    pub(crate) fn is_requested_by_new_packet(&self, truth: &Truth) -> bool {
        self.repeats.get(&(truth.flow, 1 - truth.from)) == Some(&false)
    }

    /// Whether acknowledgements that asked for nothing name the beginning of `truth`.
    pub(crate) fn was_requested_needlessly(&self, truth: &Truth) -> bool {
        self.repeated.get(&(truth.flow, 1 - truth.from)) == Some(&truth.range.0)
    }

    pub(crate) fn is_syn_retransmitted(&self, truth: &Truth) -> bool {
        let ranges = self.new_ranges.get(&(truth.flow, truth.from));
        ranges.is_some_and(|ranges| ranges.contains(&(0, 1)))
    }
}
