//! What packets of two captures prove of their clocks: limits of the offset, exchanges, and where a clock
//! was set back.
//!
//! Owns that nothing is proved by a packet that was under way while a clock was set back.

use std::collections::HashMap;

use neph_stats::{ClockCut, FourStamps, OffsetLimit};

use super::{Crossing, Met, Point};
use crate::steady::{Fall, added_at, falls_before};
use crate::ways::Way;

/// One of two clocks was set back, or captures stand in a file one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetBack {
    /// Between which moments of the first capture's steady time.
    pub cut: ClockCut,
    /// What is added to the second clock minus the first one's in steady time behind it, in nanoseconds,
    /// so that it is that of their stamps.
    pub by: i64,
}

impl Met {
    /// What the packets prove of the second clock minus the first one's, in steady time: limits from
    /// above and from below, each ascending in time, whatever the resolution of the stamps.
    pub fn limits(&self) -> (Vec<OffsetLimit>, Vec<OffsetLimit>) {
        let wider = |point: &Point| {
            if point.resolution > 1 {
                point.resolution
            } else {
                0
            }
        };
        let (mut most, mut least) = (Vec::new(), Vec::new());
        // When the first point is known to have heard of what the second did next.
        let mut heard = None::<&Crossing>;
        for crossing in self.crossings.iter().rev() {
            if crossing.way == Way::Back {
                heard = Some(crossing);
            } else if let Some(heard) = heard.filter(|heard| self.is_steady(crossing, heard)) {
                most.push(OffsetLimit {
                    at: crossing.here,
                    within: heard.here.saturating_sub(crossing.here),
                    offset: (crossing.there.saturating_sub(crossing.here))
                        .saturating_add(wider(&self.there)),
                });
            }
        }
        // And when it had sent what the second heard last.
        let mut said = None::<&Crossing>;
        for crossing in &self.crossings {
            if crossing.way == Way::There {
                said = Some(crossing);
            } else if let Some(said) = said.filter(|said| self.is_steady(said, crossing)) {
                least.push(OffsetLimit {
                    at: said.here,
                    within: crossing.here.saturating_sub(said.here),
                    offset: (crossing.there.saturating_sub(crossing.here))
                        .saturating_sub(wider(&self.here)),
                });
            }
        }
        for limits in [&mut most, &mut least] {
            // Between which a clock was set.
            limits.retain(|limit| limit.within >= 0);
            limits.sort_by_key(|limit| limit.at);
        }
        (most, least)
    }

    /// Each packet there with the next one back between the same hosts, if none went there in between.
    /// Our stamps are of steady time; the offset is that of the clocks.
    pub fn exchanges(&self) -> Vec<FourStamps> {
        let mut open: HashMap<u32, Crossing> = HashMap::new();
        let mut exchanges = Vec::new();
        let [here, there] = &self.falls;
        for crossing in &self.crossings {
            if crossing.way == Way::There {
                open.insert(crossing.pair, *crossing);
            } else if let Some(request) = open.remove(&crossing.pair)
                && self.is_steady(&request, crossing)
            {
                let added =
                    added_at(here, request.here).saturating_sub(added_at(there, request.there));
                exchanges.push(FourStamps {
                    sent: request.here,
                    arrived: request.there.saturating_add(added),
                    answered: crossing.there.saturating_add(added),
                    returned: crossing.here,
                });
            }
        }
        exchanges
    }

    /// Where one of the clocks was set back, in the order of time.
    pub fn set_back(&self) -> Vec<SetBack> {
        let [here, there] = &self.falls;
        let mut all: Vec<SetBack> = each(here)
            .map(|(fall, by)| SetBack {
                cut: ClockCut {
                    until: fall.from.saturating_sub(1),
                    from: fall.from,
                },
                by,
            })
            .collect();
        let heard = Heard::of(&self.crossings);
        all.extend(each(there).map(|(fall, by)| SetBack {
            cut: heard.around(fall),
            by: by.saturating_neg(),
        }));
        all.sort_by_key(|one| (one.cut.until, one.cut.from));
        all
    }

    /// Whether no clock was set back between two packets.
    fn is_steady(&self, one: &Crossing, other: &Crossing) -> bool {
        let [here, there] = &self.falls;
        falls_before(here, one.here) == falls_before(here, other.here)
            && falls_before(there, one.there) == falls_before(there, other.there)
    }
}

/// When the first point sent what the second one saw, in the order in which that one saw it.
struct Heard {
    /// When the second one saw it.
    seen: Vec<i64>,
    /// The latest that was sent of it and of all before it.
    latest: Vec<i64>,
    /// The earliest that was sent of it and of all behind it.
    earliest: Vec<i64>,
}

impl Heard {
    fn of(crossings: &[Crossing]) -> Self {
        let there = crossings.iter().filter(|one| one.way == Way::There);
        let mut times: Vec<(i64, i64)> = there.map(|one| (one.there, one.here)).collect();
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
            seen: times.into_iter().map(|(seen, _)| seen).collect(),
            latest,
            earliest,
        }
    }

    fn around(&self, fall: Fall) -> ClockCut {
        let behind = self.seen.partition_point(|seen| *seen < fall.from);
        let from = self.earliest.get(behind).copied().unwrap_or(i64::MAX);
        let until = behind.checked_sub(1).map(|last| self.latest[last]);
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

/// Each fall, and what it adds to what those before it did.
fn each(falls: &[Fall]) -> impl Iterator<Item = (Fall, i64)> + '_ {
    let before = std::iter::once(0).chain(falls.iter().map(|fall| fall.added));
    falls
        .iter()
        .zip(before)
        .map(|(fall, before)| (*fall, fall.added.saturating_sub(before)))
}
