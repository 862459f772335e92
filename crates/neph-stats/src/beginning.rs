//! Whether a measurement began in a queue that all flows shared. Owns the sign of it, and which
//! flows' first bases were withdrawn for it; finds no bases.
//!
//! A queue only adds. So when nearly all flows fall below their young bases, and the lowest of them
//! below what any had, the queue was there before, and no base that was met in it is one. Bases that
//! were met at different depths of it do not fall by one amount: no shift mends them.

use std::collections::BTreeMap;

use crate::congestion::{LEAST_CROWD, Reading};
use crate::fleet_told::FleetTold;
use crate::flow_level::{Finding, Told};

/// The beginning of a fleet's measurement.
#[derive(Debug)]
pub(crate) struct Beginning {
    tolerance: i64,
    /// Bases that are older are believed, nanoseconds.
    hold: i64,
    /// When the first sample was sent that is not withdrawn.
    since: Option<i64>,
    /// When enough flows had bases.
    based: Option<i64>,
    /// Whether the bases are believed.
    is_over: bool,
    /// Bases that were told and withdrawn, of flows that have no other yet.
    withdrawn: BTreeMap<u32, i64>,
    /// Changes that were told while bases were young.
    changes: Vec<FleetTold>,
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

    /// Whether the bases are believed by now.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes a crowd of samples that were sent from the first moment to the second, beside young
    /// bases. If all that was met so far was met in a queue, returns since when; `known` says
    /// whether a path has that latency.
    pub(crate) fn was_queued(
        &mut self,
        (from, until): (i64, i64),
        crowd: &[Reading],
        known: impl Fn(i64) -> bool,
    ) -> Option<i64> {
        let since = *self.since.get_or_insert(from);
        let old = |based: i64| from.saturating_sub(based) >= self.hold;
        if self.based.is_some_and(old) {
            self.is_over = true;
            self.changes = Vec::new();
        }
        if self.is_over || crowd.len() < LEAST_CROWD {
            return None;
        }
        self.based.get_or_insert(from);
        if !self.all_fell(crowd, known) {
            return None;
        }
        (self.since, self.based) = (Some(until), None);
        Some(since)
    }

    fn all_fell(&self, crowd: &[Reading], known: impl Fn(i64) -> bool) -> bool {
        // Half the tolerance is more than nearly all of them fall by chance.
        let least = self.tolerance / 2;
        let fell = |r: &&Reading| r.sample.saturating_add(least) < r.base;
        if 4 * crowd.iter().filter(fell).count() < 3 * crowd.len() {
            return false;
        }
        // Not the very lowest: a sample may be a stray, a base from before the queue grew.
        let low = |of: fn(&Reading) -> i64| {
            let mut all: Vec<i64> = crowd.iter().map(of).collect();
            *all.select_nth_unstable(crowd.len() / 10).1
        };
        let lower = low(|r| r.sample).saturating_add(least) < low(|r| r.base);
        // Otherwise most went to lower paths together.
        lower && 5 * crowd.iter().filter(|r| known(r.sample)).count() < 4 * crowd.len()
    }

    /// A flow's base was met in the queue.
    pub(crate) fn withdraw_base(&mut self, flow: u32, base: i64) {
        self.withdrawn.insert(flow, base);
    }

    /// All changes were between levels in the queue: what corrects them, the latest first.
    pub(crate) fn withdraw_changes(&mut self, certain: i64) -> impl Iterator<Item = FleetTold> {
        let back = move |change: FleetTold| {
            let told = Told {
                finding: Finding::Correction,
                at: change.told.at,
                certain,
                before: Some(change.told.after),
                after: change.told.before?,
            };
            Some(FleetTold { told, ..change })
        };
        let changes = std::mem::take(&mut self.changes);
        changes.into_iter().rev().filter_map(back)
    }

    /// This number stands for another flow.
    pub(crate) fn forget(&mut self, flow: u32) {
        self.withdrawn.remove(&flow);
    }

    /// What is to be told of a flow: a first base that comes after another is its correction.
    pub(crate) fn hear(&mut self, mut found: FleetTold) -> FleetTold {
        match found.told.finding {
            Finding::First => {
                if let Some(before) = self.withdrawn.remove(&found.flow) {
                    found.told.finding = Finding::Correction;
                    found.told.before = Some(before);
                }
            }
            Finding::Change if self.based.is_some() && !self.is_over => self.changes.push(found),
            Finding::Change | Finding::Correction => {}
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const S: i64 = 1000 * MS;
    const PATHS: [i64; 3] = [80 * MS, 84 * MS, 90 * MS];

    /// 20 flows that went from a path to another, `by` more than the paths say.
    fn crowd(of: impl Fn(usize) -> (usize, usize), by: i64) -> Vec<Reading> {
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
    fn all_that_fall_below_their_young_bases_were_in_a_queue() {
        let mut beginning = Beginning::new(MS / 2, 30 * S);
        let said = beginning.was_queued((3 * S, 4 * S), &crowd(stayed, 0), known);
        assert_eq!(said, None);
        let fell = crowd(stayed, -5 * MS);
        let said = beginning.was_queued((9 * S, 10 * S), &fell, known);
        assert_eq!(said, Some(3 * S));
        let said = beginning.was_queued((12 * S, 13 * S), &fell, known);
        assert_eq!(said, Some(10 * S), "it went on draining");
    }

    #[test]
    fn bases_that_have_lasted_are_believed() {
        let mut beginning = Beginning::new(MS / 2, 30 * S);
        beginning.was_queued((0, S), &crowd(stayed, 0), known);
        let fell = crowd(stayed, -5 * MS);
        assert_eq!(
            beginning.was_queued((31 * S, 32 * S), &fell, known),
            None,
            "no queue stands so long"
        );
    }

    /// To paths that are known, or to one below all, of which others are still where they were.
    #[test]
    fn a_reshuffle_to_lower_paths_is_no_queue_that_ended() {
        let mut beginning = Beginning::new(MS / 2, 30 * S);
        let lower = crowd(|flow| (if flow % 9 == 0 { 0 } else { 2 }, 0), 0);
        assert_eq!(beginning.was_queued((0, S), &lower, known), None);
        let all_lower = crowd(|_| (2, 1), 0);
        assert_eq!(beginning.was_queued((S, 2 * S), &all_lower, known), None);
    }

    #[test]
    fn what_was_told_in_the_queue_is_taken_back_the_latest_first() {
        let mut beginning = Beginning::new(MS / 2, 30 * S);
        beginning.was_queued((0, S), &crowd(stayed, 0), known);
        let told = |nth, finding, before, after| FleetTold {
            flow: 7,
            nth,
            told: Told {
                finding,
                at: S,
                certain: 2 * S,
                before,
                after,
            },
        };
        for (nth, before, after) in [(0, 90, 84), (0, 84, 80), (1, 86, 80)] {
            beginning.hear(told(nth, Finding::Change, Some(before * MS), after * MS));
        }
        let back: Vec<_> = beginning
            .withdraw_changes(5 * S)
            .map(|back| (back.flow, back.nth, back.told.finding, back.told.after / MS))
            .collect();
        let of = |nth, base| (7, nth, Finding::Correction, base);
        assert_eq!(back, [of(1, 86), of(0, 84), of(0, 90)]);
        beginning.withdraw_base(7, 80 * MS);
        let first = told(1, Finding::First, None, 75 * MS);
        let anew = beginning.hear(first).told;
        assert_eq!(
            (anew.finding, anew.before),
            (Finding::Correction, Some(80 * MS))
        );
        assert_eq!(beginning.hear(first), first, "once");
    }
}
