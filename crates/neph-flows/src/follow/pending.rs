//! Finished traces whose changes are not certain yet.
//!
//! Owns how long each waits. Does not own the verdict.

use std::collections::{BTreeMap, VecDeque};

use neph_model::{Instant, Local, Slot};

use super::TraceRequest;
use super::history::KnownRoute;

/// A finished trace.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) request: TraceRequest,
    pub(super) known: KnownRoute,
    /// When it finished.
    pub(super) at: Instant<Local>,
}

/// Finished traces that wait; see the module.
#[derive(Debug, Default)]
pub(super) struct Pending {
    by_slot: BTreeMap<Slot, Vec<Finished>>,
    /// Almost sorted by time: traces take some seconds. Entries remain after they are reported.
    certain: VecDeque<(Instant<Local>, Slot)>,
}

impl Pending {
    /// Waits until this moment.
    pub(super) fn push(&mut self, slot: Slot, certain: Instant<Local>, finished: Finished) {
        self.by_slot.entry(slot).or_default().push(finished);
        self.certain.push_back((certain, slot));
    }

    /// A slot with a trace that has waited long enough; each trace is returned once.
    pub(super) fn certain(&mut self, now: Instant<Local>) -> Option<Slot> {
        let next = self.certain.pop_front_if(|(at, _)| *at <= now);
        next.map(|(_, slot)| slot)
    }

    /// The requests of a slot's traces.
    pub(super) fn of(&mut self, slot: Slot) -> impl Iterator<Item = &mut TraceRequest> {
        let finished = self.by_slot.get_mut(&slot).into_iter().flatten();
        finished.map(|finished| &mut finished.request)
    }

    /// Removes the traces of a slot that need not wait any longer.
    pub(super) fn take_if(
        &mut self,
        slot: Slot,
        is_over: impl Fn(&Finished) -> bool,
    ) -> Vec<Finished> {
        let Some(finished) = self.by_slot.get_mut(&slot) else {
            return Vec::new();
        };
        let over = finished.extract_if(.., |trace| is_over(trace)).collect();
        if finished.is_empty() {
            self.by_slot.remove(&slot);
        }
        over
    }

    /// Removes all traces of a slot.
    pub(super) fn take(&mut self, slot: Slot) -> Vec<Finished> {
        self.by_slot.remove(&slot).unwrap_or_default()
    }

    /// Removes all traces.
    pub(super) fn all(&mut self) -> impl Iterator<Item = (Slot, Finished)> + use<> {
        let all = std::mem::take(&mut self.by_slot).into_iter();
        all.flat_map(|(slot, finished)| finished.into_iter().map(move |trace| (slot, trace)))
    }
}
