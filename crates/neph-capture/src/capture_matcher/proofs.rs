//! Limits for the offset of two clocks from packets of two captures, exchanges, and where a clock was set
//! back.
//!
//! A packet that was in flight while a clock was set back gives no limit.

use std::collections::HashMap;

use neph_stats::{ClockCut, FourTimestamps, OffsetLimit};

use super::{CaptureCounts, Crossing, MatchedCaptures};
use crate::directions::Direction;
use crate::steady_time::{StepBack, added_at, steps_back_before};

/// One of two clocks was set back, or a file holds several captures in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSetBack {
    /// The moments of the first capture's steady time between which it happened.
    pub cut: ClockCut,
    /// Nanoseconds to add to the second clock minus the first one in steady time after it, to get that of
    /// their timestamps.
    pub by: i64,
}

impl MatchedCaptures {
    /// Limits that packets give for the second clock minus the first one, in steady time. First those from
    /// above, then those from below, each ascending in time, at any resolution of the timestamps.
    pub fn limits(&self) -> (Vec<OffsetLimit>, Vec<OffsetLimit>) {
        let rounding_error = |point: &CaptureCounts| {
            if point.resolution > 1 {
                point.resolution
            } else {
                0
            }
        };
        let (mut max, mut min) = (Vec::new(), Vec::new());
        // Moment at which the first point had received what the second one sent next.
        let mut received = None::<&Crossing>;
        for crossing in self.crossings.iter().rev() {
            if crossing.direction == Direction::Reverse {
                received = Some(crossing);
            } else if let Some(received) =
                received.filter(|received| self.is_steady(crossing, received))
            {
                max.push(OffsetLimit {
                    at: crossing.first_at,
                    within: received.first_at.saturating_sub(crossing.first_at),
                    offset: (crossing.second_at.saturating_sub(crossing.first_at))
                        .saturating_add(rounding_error(&self.second)),
                });
            }
        }
        // Moment at which the first point had sent what the second one received last.
        let mut sent = None::<&Crossing>;
        for crossing in &self.crossings {
            if crossing.direction == Direction::Forward {
                sent = Some(crossing);
            } else if let Some(sent) = sent.filter(|sent| self.is_steady(sent, crossing)) {
                min.push(OffsetLimit {
                    at: sent.first_at,
                    within: crossing.first_at.saturating_sub(sent.first_at),
                    offset: (crossing.second_at.saturating_sub(crossing.first_at))
                        .saturating_sub(rounding_error(&self.first)),
                });
            }
        }
        for limits in [&mut max, &mut min] {
            // A clock was set between these.
            limits.retain(|limit| limit.within >= 0);
            limits.sort_by_key(|limit| limit.at);
        }
        (max, min)
    }

    /// Each forward packet with the next reverse one between the same hosts, if no forward one came in
    /// between. Local timestamps are in steady time; the offset is that of the clocks.
    pub fn exchanges(&self) -> Vec<FourTimestamps> {
        let mut open: HashMap<u32, Crossing> = HashMap::new();
        let mut exchanges = Vec::new();
        let [first, second] = &self.steps_back;
        for crossing in &self.crossings {
            if crossing.direction == Direction::Forward {
                open.insert(crossing.pair, *crossing);
            } else if let Some(request) = open.remove(&crossing.pair)
                && self.is_steady(&request, crossing)
            {
                let added = added_at(first, request.first_at)
                    .saturating_sub(added_at(second, request.second_at));
                exchanges.push(FourTimestamps {
                    sent: request.first_at,
                    arrived: request.second_at.saturating_add(added),
                    answered: crossing.second_at.saturating_add(added),
                    returned: crossing.first_at,
                });
            }
        }
        exchanges
    }

    /// Where one of the clocks was set back, in the order of time.
    pub fn clock_set_backs(&self) -> Vec<ClockSetBack> {
        let [first, second] = &self.steps_back;
        let mut set_backs: Vec<ClockSetBack> = added_by_step_back(first)
            .map(|(step_back, by)| ClockSetBack {
                cut: ClockCut {
                    until: step_back.from.saturating_sub(1),
                    from: step_back.from,
                },
                by,
            })
            .collect();
        let receipt_times = ReceiptTimes::of(&self.crossings);
        let second_steps_back = added_by_step_back(second);
        set_backs.extend(second_steps_back.map(|(step_back, by)| ClockSetBack {
            cut: receipt_times.around(step_back),
            by: by.saturating_neg(),
        }));
        set_backs.sort_by_key(|clock_set_back| (clock_set_back.cut.until, clock_set_back.cut.from));
        set_backs
    }

    /// Whether no clock was set back between two packets.
    fn is_steady(&self, crossing: &Crossing, other: &Crossing) -> bool {
        let [first, second] = &self.steps_back;
        let is_same_count = |steps_back: &[StepBack], at: i64, other_at: i64| {
            steps_back_before(steps_back, at) == steps_back_before(steps_back, other_at)
        };
        is_same_count(first, crossing.first_at, other.first_at)
            && is_same_count(second, crossing.second_at, other.second_at)
    }
}

/// Times at which the first point sent the packets that the second one received, in the order of receipt.
struct ReceiptTimes {
    /// Times at which the second point received them.
    times: Vec<i64>,
    /// Latest sending time of each packet and all before it.
    latest: Vec<i64>,
    /// Earliest sending time of each packet and all after it.
    earliest: Vec<i64>,
}

impl ReceiptTimes {
    fn of(crossings: &[Crossing]) -> Self {
        let forward_crossings = crossings
            .iter()
            .filter(|crossing| crossing.direction == Direction::Forward);
        let mut times: Vec<(i64, i64)> = forward_crossings
            .map(|crossing| (crossing.second_at, crossing.first_at))
            .collect();
        times.sort_unstable();
        let mut latest: Vec<i64> = times.iter().map(|(_, sent)| *sent).collect();
        let mut earliest = latest.clone();
        for at in 1..latest.len() {
            latest[at] = latest[at].max(latest[at - 1]);
        }
        for at in (1..earliest.len()).rev() {
            earliest[at - 1] = earliest[at - 1].min(earliest[at]);
        }
        Self {
            times: times.into_iter().map(|(time, _)| time).collect(),
            latest,
            earliest,
        }
    }

    fn around(&self, step_back: StepBack) -> ClockCut {
        let later_index = self.times.partition_point(|time| *time < step_back.from);
        let from = self.earliest.get(later_index).copied().unwrap_or(i64::MAX);
        let until = later_index.checked_sub(1).map(|last| self.latest[last]);
        let until = until.unwrap_or_else(|| from.saturating_sub(1));
        if until < from {
            return ClockCut { until, from };
        }
        // Some were reordered.
        ClockCut {
            until: from.saturating_sub(1),
            from: until.saturating_add(1),
        }
    }
}

/// Each step back, and how much it adds to those before it.
fn added_by_step_back(steps_back: &[StepBack]) -> impl Iterator<Item = (StepBack, i64)> + '_ {
    let before = std::iter::once(0).chain(steps_back.iter().map(|step_back| step_back.added));
    steps_back
        .iter()
        .zip(before)
        .map(|(step_back, before)| (*step_back, step_back.added.saturating_sub(before)))
}
