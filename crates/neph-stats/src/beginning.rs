//! Detects a measurement that began while all flows shared a queue. Owns the detection, and the first bases
//! that were withdrawn for it. Does not estimate bases.
//!
//! A queue only adds delay. If nearly all flows fall below their young bases, and the lowest below all bases,
//! they were measured in a queue and are invalid. The queue had different sizes, so the bases do not fall by
//! one amount and cannot be shifted.

use std::collections::BTreeMap;

use crate::congestion::{MIN_FLOWS, Reading};
use crate::fleet_detection::FleetDetection;
use crate::level_detection::{Finding, LevelDetection};

/// The beginning of a fleet's measurement.
#[derive(Debug)]
pub(crate) struct Beginning {
    tolerance: i64,
    /// Older bases are trusted, in nanoseconds.
    hold: i64,
    /// Send time of the first sample that is not withdrawn.
    since: Option<i64>,
    /// When enough flows had bases.
    based: Option<i64>,
    /// Whether the bases are trusted.
    is_over: bool,
    /// Bases that were reported and withdrawn, of flows without another yet.
    withdrawn: BTreeMap<u32, i64>,
    /// Changes that were reported while bases were young.
    changes: Vec<FleetDetection>,
}

impl Beginning {
    /// Both in nanoseconds.
    pub(crate) fn new(tolerance: i64, hold: i64) -> Self {
        Self {
            tolerance,
            hold,
            since: None,
            based: None,
            is_over: false,
            withdrawn: BTreeMap::new(),
            changes: Vec::new(),
        }
    }

    /// Whether the bases are trusted by now.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Adds a batch of samples sent in this interval, with young bases. If all samples so far were in a
    /// queue, returns when the withdrawn ones begin; `known` returns whether a path has that latency.
    pub(crate) fn was_queued(
        &mut self,
        (from, until): (i64, i64),
        flows: &[Reading],
        known: impl Fn(i64) -> bool,
    ) -> Option<i64> {
        let since = *self.since.get_or_insert(from);
        let old = |based: i64| from.saturating_sub(based) >= self.hold;
        if self.based.is_some_and(old) {
            self.is_over = true;
            self.changes = Vec::new();
        }
        if self.is_over || flows.len() < MIN_FLOWS {
            return None;
        }
        self.based.get_or_insert(from);
        if !self.all_fell(flows, known) {
            return None;
        }
        (self.since, self.based) = (Some(until), None);
        Some(since)
    }

    fn all_fell(&self, flows: &[Reading], known: impl Fn(i64) -> bool) -> bool {
        // Nearly all fall by more than half the tolerance only if it is no random effect.
        let min_fall = self.tolerance / 2;
        let fell = |r: &&Reading| r.sample.saturating_add(min_fall) < r.base;
        if 4 * flows.iter().filter(fell).count() < 3 * flows.len() {
            return false;
        }
        // Not the very lowest: a sample may be an outlier, a base from before the queue grew.
        let low = |of: fn(&Reading) -> i64| {
            let mut values: Vec<i64> = flows.iter().map(of).collect();
            *values.select_nth_unstable(flows.len() / 10).1
        };
        let lower = low(|r| r.sample).saturating_add(min_fall) < low(|r| r.base);
        // Otherwise most flows changed to lower paths together.
        lower && 5 * flows.iter().filter(|r| known(r.sample)).count() < 4 * flows.len()
    }

    /// A flow's base was measured in the queue.
    pub(crate) fn withdraw_base(&mut self, flow: u32, base: i64) {
        self.withdrawn.insert(flow, base);
    }

    /// All changes were between levels in the queue. Returns their corrections, the latest first.
    pub(crate) fn withdraw_changes(
        &mut self,
        certain: i64,
    ) -> impl Iterator<Item = FleetDetection> {
        let back = move |change: FleetDetection| {
            let detection = LevelDetection {
                finding: Finding::Correction,
                at: change.detection.at,
                certain,
                before: Some(change.detection.after),
                after: change.detection.before?,
            };
            Some(FleetDetection {
                detection,
                ..change
            })
        };
        let changes = std::mem::take(&mut self.changes);
        changes.into_iter().rev().filter_map(back)
    }

    /// This number now belongs to another flow.
    pub(crate) fn forget(&mut self, flow: u32) {
        self.withdrawn.remove(&flow);
    }

    /// What to report of a flow: a first base after a withdrawn one is its correction.
    pub(crate) fn filter_detection(&mut self, mut decided: FleetDetection) -> FleetDetection {
        match decided.detection.finding {
            Finding::First => {
                if let Some(before) = self.withdrawn.remove(&decided.flow) {
                    decided.detection.finding = Finding::Correction;
                    decided.detection.before = Some(before);
                }
            }
            Finding::Change if self.based.is_some() && !self.is_over => self.changes.push(decided),
            Finding::Change | Finding::Correction => {}
        }
        decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const S: i64 = 1000 * MS;
    const PATHS: [i64; 3] = [80 * MS, 84 * MS, 90 * MS];

    /// 20 flows that changed from a path to another, `by` more than the paths differ.
    fn flows(of: impl Fn(usize) -> (usize, usize), by: i64) -> Vec<Reading> {
        let reading = |(from, to): (usize, usize)| Reading {
            sample: PATHS[to] + by,
            base: PATHS[from],
        };
        (0..20).map(of).map(reading).collect()
    }

    fn known(level: i64) -> bool {
        PATHS.iter().any(|path| (path - level).abs() < MS / 2)
    }

    fn stayed(flow: usize) -> (usize, usize) {
        (flow % 3, flow % 3)
    }

    #[test]
    fn flows_that_all_fall_below_new_bases_started_in_a_queue() {
        let mut beginning = Beginning::new(MS / 2, 30 * S);
        let queued = beginning.was_queued((3 * S, 4 * S), &flows(stayed, 0), known);
        assert_eq!(queued, None);
        let fell = flows(stayed, -5 * MS);
        let queued = beginning.was_queued((9 * S, 10 * S), &fell, known);
        assert_eq!(queued, Some(3 * S));
        let queued = beginning.was_queued((12 * S, 13 * S), &fell, known);
        assert_eq!(queued, Some(10 * S), "it went on draining");
    }

    #[test]
    fn long_lasting_bases_are_kept() {
        let mut beginning = Beginning::new(MS / 2, 30 * S);
        beginning.was_queued((0, S), &flows(stayed, 0), known);
        let fell = flows(stayed, -5 * MS);
        assert_eq!(
            beginning.was_queued((31 * S, 32 * S), &fell, known),
            None,
            "no queue stands so long"
        );
    }

    /// To paths that are known, or to one below all, with other flows still on their old paths.
    #[test]
    fn path_changes_to_lower_latency_are_no_ended_queue() {
        let mut beginning = Beginning::new(MS / 2, 30 * S);
        let lower = flows(|flow| (if flow % 9 == 0 { 0 } else { 2 }, 0), 0);
        assert_eq!(beginning.was_queued((0, S), &lower, known), None);
        let all_lower = flows(|_| (2, 1), 0);
        assert_eq!(beginning.was_queued((S, 2 * S), &all_lower, known), None);
    }

    #[test]
    fn changes_reported_in_a_queue_are_withdrawn_newest_first() {
        let mut beginning = Beginning::new(MS / 2, 30 * S);
        beginning.was_queued((0, S), &flows(stayed, 0), known);
        let detection = |nth, finding, before, after| FleetDetection {
            flow: 7,
            nth,
            detection: LevelDetection {
                finding,
                at: S,
                certain: 2 * S,
                before,
                after,
            },
        };
        for (nth, before, after) in [(0, 90, 84), (0, 84, 80), (1, 86, 80)] {
            beginning.filter_detection(detection(
                nth,
                Finding::Change,
                Some(before * MS),
                after * MS,
            ));
        }
        let back: Vec<_> = beginning
            .withdraw_changes(5 * S)
            .map(|back| {
                (
                    back.flow,
                    back.nth,
                    back.detection.finding,
                    back.detection.after / MS,
                )
            })
            .collect();
        let of = |nth, base| (7, nth, Finding::Correction, base);
        assert_eq!(back, [of(1, 86), of(0, 84), of(0, 90)]);
        beginning.withdraw_base(7, 80 * MS);
        let first = detection(1, Finding::First, None, 75 * MS);
        let corrected = beginning.filter_detection(first).detection;
        assert_eq!(
            (corrected.finding, corrected.before),
            (Finding::Correction, Some(80 * MS))
        );
        assert_eq!(beginning.filter_detection(first), first, "once");
    }
}
