//! The consecutive flows of each slot: running ones, ended ones with pending detector events, and finished
//! ones. Stores them; evaluates nothing.
//!
//! The detector waits for messages of other flows. So its events may concern a flow that its slot no longer
//! has, even two flows back if flows are replaced quickly.

use std::collections::{BTreeMap, VecDeque};

use neph_model::{FleetMessage, Instant, Local, Slot, Span};

use crate::flow::{Flow, FlowSnapshot};

/// Maximum number of finished flows, if flows are replaced: 80 bytes each.
const MAX_FINISHED: usize = 1 << 19;

/// The flows of all slots; see the module.
#[derive(Debug)]
pub(crate) struct Succession {
    /// By slot.
    current: Vec<Option<Flow>>,
    /// Flows with pending detector events: by slot and number of earlier flows of the slot.
    pending: BTreeMap<(Slot, u32), Flow>,
    /// Sorted by time within a slot.
    finished: VecDeque<FlowSnapshot>,
    pub(crate) max_finished: usize,
}

impl Default for Succession {
    fn default() -> Self {
        Self {
            current: Vec::new(),
            pending: BTreeMap::new(),
            finished: VecDeque::new(),
            max_finished: MAX_FINISHED,
        }
    }
}

impl Succession {
    /// Whether the slot of a message had another flow until now.
    pub(crate) fn is_replaced_by(&self, message: &FleetMessage) -> bool {
        let current = self.current.get(message.slot.0 as usize);
        current
            .and_then(Option::as_ref)
            .is_some_and(|flow| !flow.owns(message))
    }

    /// Replaces the flow of the message's slot by a new one. The detector has no more events for the slot's
    /// first `detector_nth` flows, so these are finished. Beyond the maximum, drops the oldest and returns the
    /// time until which.
    pub(crate) fn replace(
        &mut self,
        message: &FleetMessage,
        detector_nth: u32,
    ) -> Option<Instant<Local>> {
        let slot = message.slot;
        let current = self.current.get_mut(slot.0 as usize)?;
        let next_nth = current.as_ref().map_or(0, |flow| flow.nth() + 1);
        if let Some(replaced_flow) = current.replace(Flow::from_first_message(message, next_nth)) {
            self.pending
                .insert((slot, replaced_flow.nth()), replaced_flow);
        }
        let mut dropped_until = None;
        while let Some(entry) = self.pending.range((slot, 0)..(slot, detector_nth)).next() {
            let key = *entry.0;
            let snapshot = self
                .pending
                .remove(&key)
                .map(|flow| flow.snapshot(slot, None));
            if self.finished.len() >= self.max_finished {
                dropped_until =
                    dropped_until.max(self.finished.pop_front().map(|snapshot| snapshot.until()));
            }
            self.finished.extend(snapshot);
        }
        dropped_until
    }

    /// The flow of a message, which continues with it or begins.
    pub(crate) fn current(&mut self, message: &FleetMessage) -> &mut Flow {
        let index = message.slot.0 as usize;
        if self.current.len() <= index {
            self.current.resize_with(index + 1, || None);
        }
        self.current[index].get_or_insert_with(|| Flow::from_first_message(message, 0))
    }

    /// The flow with `nth` flows before it on its slot, unless it is finished.
    pub(crate) fn find(&mut self, slot: Slot, nth: u32) -> Option<&mut Flow> {
        let current = self.current.get_mut(slot.0 as usize)?.as_mut();
        match current.filter(|flow| flow.nth() == nth) {
            Some(flow) => Some(flow),
            None => self.pending.get_mut(&(slot, nth)),
        }
    }

    /// The finished flow that a slot had at a moment, if it had a base latency by then.
    pub(crate) fn find_finished(
        &mut self,
        slot: Slot,
        at: Instant<Local>,
    ) -> Option<&mut FlowSnapshot> {
        let flows = self.finished.iter_mut().rev();
        flows
            .filter(|snapshot| snapshot.slot() == slot)
            .find(|snapshot| snapshot.has_base_at(at))
    }

    /// All flows by slot, then by time. `detector` returns the flow of a slot that it has reached, and that
    /// flow's base latency in full precision.
    pub(crate) fn into_snapshots(
        self,
        detector: impl Fn(Slot) -> (u32, Option<Span>),
    ) -> Vec<FlowSnapshot> {
        let mut snapshots: Vec<FlowSnapshot> = self.finished.into();
        let to_snapshot = |slot: Slot, flow: &Flow| {
            let (nth, base) = detector(slot);
            flow.snapshot(slot, base.filter(|_| flow.nth() == nth))
        };
        let pending = self.pending.iter();
        snapshots.extend(pending.map(|(&(slot, _), flow)| to_snapshot(slot, flow)));
        for (slot, flow) in (0..).map(Slot).zip(&self.current) {
            snapshots.extend(flow.as_ref().map(|flow| to_snapshot(slot, flow)));
        }
        // Within a slot they are sorted by time already, and a stable sort keeps that.
        if !snapshots.is_sorted_by_key(FlowSnapshot::slot) {
            snapshots.sort_by_key(FlowSnapshot::slot);
        }
        snapshots
    }
}

#[cfg(test)]
mod tests;
