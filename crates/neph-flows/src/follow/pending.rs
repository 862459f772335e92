//! Finished traces whose changes are not certain yet.
//!
//! Owns how long each waits. Does not own the verdict.

use std::collections::{BTreeMap, VecDeque};

use neph_model::{Instant, Local, Slot};

use super::TraceRequest;
use super::history::KnownRoute;

/// A finished trace.
#[derive(Clone, Debug)]
pub(super) struct FinishedTrace {
    pub(super) request: TraceRequest,
    pub(super) traced_route: KnownRoute,
    /// When it finished.
    pub(super) at: Instant<Local>,
}

/// Finished traces that wait; see the module.
#[derive(Debug, Default)]
pub(super) struct Pending {
    by_slot: BTreeMap<Slot, Vec<FinishedTrace>>,
    /// Almost sorted by time: traces take some seconds. Entries remain after they are reported.
    due: VecDeque<(Instant<Local>, Slot)>,
}

impl Pending {
    /// Waits until this moment.
    pub(super) fn push(&mut self, slot: Slot, due: Instant<Local>, finished: FinishedTrace) {
        self.by_slot.entry(slot).or_default().push(finished);
        self.due.push_back((due, slot));
    }

    /// A slot with a trace that has waited long enough; each trace is returned once.
    pub(super) fn pop_due(&mut self, now: Instant<Local>) -> Option<Slot> {
        let due_entry = self.due.pop_front_if(|(at, _)| *at <= now);
        due_entry.map(|(_, slot)| slot)
    }

    /// The requests of a slot's traces.
    pub(super) fn requests_of(&mut self, slot: Slot) -> impl Iterator<Item = &mut TraceRequest> {
        let traces = self.by_slot.get_mut(&slot).into_iter().flatten();
        traces.map(|finished| &mut finished.request)
    }

    /// Removes the traces of a slot that need not wait any longer.
    pub(super) fn take_if(
        &mut self,
        slot: Slot,
        is_certain: impl Fn(&FinishedTrace) -> bool,
    ) -> Vec<FinishedTrace> {
        let Some(traces) = self.by_slot.get_mut(&slot) else {
            return Vec::new();
        };
        let certain_traces = traces.extract_if(.., |trace| is_certain(trace)).collect();
        if traces.is_empty() {
            self.by_slot.remove(&slot);
        }
        certain_traces
    }

    /// Removes all traces of a slot.
    pub(super) fn take(&mut self, slot: Slot) -> Vec<FinishedTrace> {
        self.by_slot.remove(&slot).unwrap_or_default()
    }

    /// Removes all traces.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (Slot, FinishedTrace)> + use<> {
        let by_slot = std::mem::take(&mut self.by_slot).into_iter();
        by_slot.flat_map(|(slot, traces)| traces.into_iter().map(move |trace| (slot, trace)))
    }
}
