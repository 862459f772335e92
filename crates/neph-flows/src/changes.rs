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
pub(crate) struct Link(NonZeroU32);

#[derive(Clone, Copy, Debug)]
struct RetainedChange {
    change: PathChange,
    before: Option<Link>,
    is_withdrawn: bool,
}

/// The path changes of all flows; see the module.
#[derive(Debug)]
pub(crate) struct Changes {
    retained: VecDeque<RetainedChange>,
    max: usize,
    forgotten: u32,
    /// Number of withdrawn changes, including those that are no longer kept.
    withdrawn: usize,
    horizon: Option<Instant<Local>>,
}

impl Changes {
    /// No changes yet; keeps at most `max`.
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            retained: VecDeque::new(),
            max,
            forgotten: 0,
            withdrawn: 0,
            horizon: None,
        }
    }

    /// Adds a change with the previous one of its flow.
    pub(crate) fn push(&mut self, change: PathChange, before: Option<Link>) -> Link {
        if self.retained.len() >= self.max
            && let Some(oldest) = self.retained.pop_front()
        {
            self.forgotten = self.forgotten.saturating_add(1);
            self.forget_until(oldest.change.at);
        }
        self.retained.push_back(RetainedChange {
            change,
            before,
            is_withdrawn: false,
        });
        let retained = u32::try_from(self.retained.len()).unwrap_or(u32::MAX);
        let number = self.forgotten.saturating_add(retained);
        Link(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
    }

    /// A change, if it is still kept.
    pub(crate) fn get(&self, link: Link) -> Option<&PathChange> {
        self.retained
            .get(self.index(link)?)
            .map(|retained| &retained.change)
    }

    /// Corrects the latency after a change.
    pub(crate) fn amend(&mut self, link: Link, after: Span) {
        let index = self.index(link);
        if let Some(retained) = index.and_then(|index| self.retained.get_mut(index)) {
            retained.change.after = after;
        }
    }

    /// Withdraws a change; returns it and the previous one of its flow.
    pub(crate) fn withdraw(&mut self, link: Link) -> Option<(PathChange, Option<Link>)> {
        let index = self.index(link)?;
        let retained = self.retained.get_mut(index)?;
        retained.is_withdrawn = true;
        self.withdrawn += 1;
        Some((retained.change, retained.before))
    }

    /// Stores whether its flow used other routers than before.
    pub(crate) fn record_trace(&mut self, change: &PathChange, others: bool) {
        let is_it = |retained: &&mut RetainedChange| retained.change.id() == change.id();
        if let Some(known) = self.retained.iter_mut().rev().find(is_it) {
            known.change.evidence.trace = Some(others);
        }
    }

    /// Number of changes that were reported and not withdrawn, including those that are no longer kept.
    pub(crate) fn reported(&self) -> usize {
        self.forgotten as usize + self.retained.len() - self.withdrawn
    }

    /// Changes before this moment are incomplete.
    pub(crate) const fn horizon(&self) -> Option<Instant<Local>> {
        self.horizon
    }

    /// Records that other data before this moment was dropped too.
    pub(crate) fn forget_until(&mut self, at: Instant<Local>) {
        self.horizon = self.horizon.max(Some(at));
    }

    /// A flow's changes since the horizon, by time; `latest` is its last one.
    pub(crate) fn of_flow(&self, latest: Option<Link>) -> Vec<PathChange> {
        let mut changes = Vec::new();
        let mut next = latest;
        while let Some(index) = next.and_then(|link| self.index(link)) {
            let Some(retained) = self.retained.get(index) else {
                break;
            };
            if Some(retained.change.at) <= self.horizon {
                break;
            }
            changes.push(retained.change);
            next = retained.before;
        }
        changes.reverse();
        changes
    }

    /// All since the horizon, by time.
    pub(crate) fn by_time(&self) -> Vec<PathChange> {
        let mut changes: Vec<PathChange> = self
            .retained
            .iter()
            .filter(|retained| !retained.is_withdrawn && Some(retained.change.at) > self.horizon)
            .map(|retained| retained.change)
            .collect();
        changes.sort_by_key(|change| (change.at, change.slot));
        changes
    }

    fn index(&self, link: Link) -> Option<usize> {
        let number = link.0.get().checked_sub(self.forgotten)?;
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

    fn moments(changes: &[PathChange]) -> Vec<i64> {
        changes.iter().map(|change| change.at.nanos()).collect()
    }

    #[test]
    fn each_flow_has_its_own_changes_without_withdrawn_ones() {
        let mut changes = Changes::new(MAX_CHANGES);
        let first = changes.push(change(0, 10), None);
        let other = changes.push(change(1, 12), None);
        let second = changes.push(change(0, 20), Some(first));
        assert_eq!(moments(&changes.of_flow(Some(second))), [10, 20]);
        assert_eq!(moments(&changes.of_flow(Some(other))), [12]);
        assert!(changes.of_flow(None).is_empty());
        changes.amend(second, Span::from_millis(5));
        assert_eq!(
            changes.get(second).map(|change| change.after),
            Some(Span::from_millis(5))
        );
        let (gone, before) = changes.withdraw(second).expect("it is known");
        assert_eq!((gone.at.nanos(), before), (20, Some(first)));
        assert_eq!(changes.reported(), 2);
        assert_eq!(moments(&changes.by_time()), [10, 12]);
    }

    #[test]
    fn of_too_many_the_oldest_are_forgotten_and_counted() {
        let mut changes = Changes::new(100);
        let mut latest = [None; 2];
        for number in 0..1000_u32 {
            let slot = number % 2;
            let latest = &mut latest[slot as usize];
            *latest = Some(changes.push(change(slot, number.into()), *latest));
        }
        assert_eq!(changes.reported(), 1000);
        assert_eq!(changes.horizon(), Some(Instant::from_nanos(899)));
        let known = moments(&changes.of_flow(latest[1]));
        assert_eq!((known.len(), known[0]), (50, 901));
        assert_eq!(changes.by_time().len(), 100);
    }
}
