//! The path changes of all flows in the order in which they were reported, each linked to the previous change
//! of its flow. Beyond a maximum the oldest are dropped, so memory is limited.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use neph_model::{Instant, Local, Span};

use crate::view::PathChange;

/// Maximum number of changes that are kept (56 MiB).
pub(crate) const MAX_CHANGES: usize = 1 << 20;

/// The number of a change, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeNumber(NonZeroU32);

#[derive(Clone, Copy, Debug)]
struct RetainedChange {
    change: PathChange,
    previous: Option<ChangeNumber>,
    is_withdrawn: bool,
}

/// The path changes of all flows; see the module.
#[derive(Debug)]
pub(crate) struct PathChangeHistory {
    retained: VecDeque<RetainedChange>,
    max_retained: usize,
    dropped_count: u32,
    /// Number of withdrawn changes, including those that are no longer kept.
    withdrawn_count: usize,
    complete_since: Option<Instant<Local>>,
}

impl PathChangeHistory {
    /// No changes yet; keeps at most `max_retained`.
    pub(crate) const fn new(max_retained: usize) -> Self {
        Self {
            retained: VecDeque::new(),
            max_retained,
            dropped_count: 0,
            withdrawn_count: 0,
            complete_since: None,
        }
    }

    /// Adds a change with the previous one of its flow.
    pub(crate) fn push(
        &mut self,
        change: PathChange,
        previous: Option<ChangeNumber>,
    ) -> ChangeNumber {
        if self.retained.len() >= self.max_retained
            && let Some(oldest) = self.retained.pop_front()
        {
            self.dropped_count = self.dropped_count.saturating_add(1);
            self.set_complete_since(oldest.change.at);
        }
        self.retained.push_back(RetainedChange {
            change,
            previous,
            is_withdrawn: false,
        });
        let retained_count = u32::try_from(self.retained.len()).unwrap_or(u32::MAX);
        let number = self.dropped_count.saturating_add(retained_count);
        ChangeNumber(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
    }

    /// A change, if it is still kept.
    pub(crate) fn get(&self, number: ChangeNumber) -> Option<&PathChange> {
        self.retained
            .get(self.index(number)?)
            .map(|retained| &retained.change)
    }

    /// Corrects the latency after a change.
    pub(crate) fn set_latency_after(&mut self, number: ChangeNumber, after: Span) {
        let index = self.index(number);
        if let Some(retained) = index.and_then(|index| self.retained.get_mut(index)) {
            retained.change.after = after;
        }
    }

    /// Withdraws a change; returns it and the previous one of its flow.
    pub(crate) fn withdraw(
        &mut self,
        number: ChangeNumber,
    ) -> Option<(PathChange, Option<ChangeNumber>)> {
        let index = self.index(number)?;
        let retained = self.retained.get_mut(index)?;
        retained.is_withdrawn = true;
        self.withdrawn_count += 1;
        Some((retained.change, retained.previous))
    }

    /// Stores whether its flow used other routers than before.
    pub(crate) fn record_trace(&mut self, change: &PathChange, routers_differ: bool) {
        let is_same_change = |retained: &&mut RetainedChange| retained.change.id() == change.id();
        if let Some(retained) = self.retained.iter_mut().rev().find(is_same_change) {
            retained.change.evidence.trace = Some(routers_differ);
        }
    }

    /// Number of changes that were reported and not withdrawn, including those that are no longer kept.
    pub(crate) fn reported_count(&self) -> usize {
        self.dropped_count as usize + self.retained.len() - self.withdrawn_count
    }

    /// Changes before this moment are incomplete.
    pub(crate) const fn complete_since(&self) -> Option<Instant<Local>> {
        self.complete_since
    }

    /// Records that other data before this moment was dropped too.
    pub(crate) fn set_complete_since(&mut self, at: Instant<Local>) {
        self.complete_since = self.complete_since.max(Some(at));
    }

    /// A flow's changes since the horizon, by time; `latest` is its last one.
    pub(crate) fn changes_of_flow(&self, latest: Option<ChangeNumber>) -> Vec<PathChange> {
        let mut changes = Vec::new();
        let mut next_number = latest;
        while let Some(index) = next_number.and_then(|number| self.index(number)) {
            let Some(retained) = self.retained.get(index) else {
                break;
            };
            if Some(retained.change.at) <= self.complete_since {
                break;
            }
            changes.push(retained.change);
            next_number = retained.previous;
        }
        changes.reverse();
        changes
    }

    /// All since the horizon, by time.
    pub(crate) fn by_time(&self) -> Vec<PathChange> {
        let mut changes: Vec<PathChange> = self
            .retained
            .iter()
            .filter(|retained| {
                !retained.is_withdrawn && Some(retained.change.at) > self.complete_since
            })
            .map(|retained| retained.change)
            .collect();
        changes.sort_by_key(|change| (change.at, change.slot));
        changes
    }

    fn index(&self, number: ChangeNumber) -> Option<usize> {
        let number = number.0.get().checked_sub(self.dropped_count)?;
        usize::try_from(number.checked_sub(1)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use neph_model::Slot;

    use super::*;
    use crate::view::Evidence;

    fn change(slot: u32, at: i64) -> PathChange {
        PathChange {
            slot: Slot(slot),
            source_port: 1,
            at: Instant::from_nanos(at),
            reported: Instant::from_nanos(at + 1),
            before: Span::from_millis(20),
            after: Span::from_millis(18),
            evidence: Evidence::default(),
        }
    }

    fn times(changes: &[PathChange]) -> Vec<i64> {
        changes.iter().map(|change| change.at.nanos()).collect()
    }

    #[test]
    fn the_changes_of_a_flow_exclude_withdrawn_ones() {
        let mut changes = PathChangeHistory::new(MAX_CHANGES);
        let first = changes.push(change(0, 10), None);
        let other = changes.push(change(1, 12), None);
        let second = changes.push(change(0, 20), Some(first));
        assert_eq!(times(&changes.changes_of_flow(Some(second))), [10, 20]);
        assert_eq!(times(&changes.changes_of_flow(Some(other))), [12]);
        assert!(changes.changes_of_flow(None).is_empty());
        changes.set_latency_after(second, Span::from_millis(5));
        assert_eq!(
            changes.get(second).map(|change| change.after),
            Some(Span::from_millis(5))
        );
        let (withdrawn, previous) = changes.withdraw(second).expect("it is known");
        assert_eq!((withdrawn.at.nanos(), previous), (20, Some(first)));
        assert_eq!(changes.reported_count(), 2);
        assert_eq!(times(&changes.by_time()), [10, 12]);
    }

    #[test]
    fn changes_beyond_the_maximum_evict_the_oldest_and_are_counted() {
        let mut changes = PathChangeHistory::new(100);
        let mut latest = [None; 2];
        for number in 0..1000_u32 {
            let slot = number % 2;
            let latest = &mut latest[slot as usize];
            *latest = Some(changes.push(change(slot, number.into()), *latest));
        }
        assert_eq!(changes.reported_count(), 1000);
        assert_eq!(changes.complete_since(), Some(Instant::from_nanos(899)));
        let retained = times(&changes.changes_of_flow(latest[1]));
        assert_eq!((retained.len(), retained[0]), (50, 901));
        assert_eq!(changes.by_time().len(), 100);
    }
}
