//! The consecutive flows of each slot: running ones, ended ones with pending detector events, and finished
//! ones. Stores them; evaluates nothing.
//!
//! The detector waits for messages of other flows. So its events may concern a flow that its slot no longer
//! has, even two flows back if flows are replaced quickly.

use std::collections::{BTreeMap, VecDeque};

use neph_model::{FleetMessage, Instant, Local, Slot, Span};

use crate::flow::{Flow, Past};

/// Maximum number of finished flows, if flows are replaced: 80 bytes each.
const MAX_OVER: usize = 1 << 19;

/// The flows of all slots; see the module.
#[derive(Debug)]
pub(crate) struct Succession {
    /// By slot.
    current: Vec<Option<Flow>>,
    /// Flows with pending detector events: by slot and number of earlier flows of the slot.
    leaving: BTreeMap<(Slot, u32), Flow>,
    /// Sorted by time within a slot.
    over: VecDeque<Past>,
    pub(crate) most_over: usize,
}

impl Default for Succession {
    fn default() -> Self {
        Self {
            current: Vec::new(),
            leaving: BTreeMap::new(),
            over: VecDeque::new(),
            most_over: MAX_OVER,
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
    /// first `received` flows, so these are finished. Beyond the maximum, drops the oldest and returns the
    /// time until which.
    pub(crate) fn renew(
        &mut self,
        message: &FleetMessage,
        received: u32,
    ) -> Option<Instant<Local>> {
        let slot = message.slot;
        let current = self.current.get_mut(slot.0 as usize)?;
        let next = current.as_ref().map_or(0, |flow| flow.nth() + 1);
        if let Some(old) = current.replace(Flow::begun_by(message, next)) {
            self.leaving.insert((slot, old.nth()), old);
        }
        let mut forgotten = None;
        while let Some(entry) = self.leaving.range((slot, 0)..(slot, received)).next() {
            let key = *entry.0;
            let past = self.leaving.remove(&key).map(|flow| flow.past(slot, None));
            if self.over.len() >= self.most_over {
                forgotten = forgotten.max(self.over.pop_front().map(|past| past.until()));
            }
            self.over.extend(past);
        }
        forgotten
    }

    /// The flow of a message, which continues with it or begins.
    pub(crate) fn current(&mut self, message: &FleetMessage) -> &mut Flow {
        let index = message.slot.0 as usize;
        if self.current.len() <= index {
            self.current.resize_with(index + 1, || None);
        }
        self.current[index].get_or_insert_with(|| Flow::begun_by(message, 0))
    }

    /// The flow with `nth` flows before it on its slot, unless it is finished.
    pub(crate) fn find(&mut self, slot: Slot, nth: u32) -> Option<&mut Flow> {
        let current = self.current.get_mut(slot.0 as usize)?.as_mut();
        match current.filter(|flow| flow.nth() == nth) {
            Some(flow) => Some(flow),
            None => self.leaving.get_mut(&(slot, nth)),
        }
    }

    /// The finished flow that a slot had at a moment, if it had a base latency by then.
    pub(crate) fn find_over(&mut self, slot: Slot, at: Instant<Local>) -> Option<&mut Past> {
        let flows = self.over.iter_mut().rev();
        flows
            .filter(|past| past.slot() == slot)
            .find(|past| past.was_known(at))
    }

    /// All flows by slot, then by time. `detector` returns the flow of a slot that it has reached, and that
    /// flow's base latency in full precision.
    pub(crate) fn end(self, detector: impl Fn(Slot) -> (u32, Option<Span>)) -> Vec<Past> {
        let mut pasts: Vec<Past> = self.over.into();
        let look = |slot: Slot, flow: &Flow| {
            let (nth, base) = detector(slot);
            flow.past(slot, base.filter(|_| flow.nth() == nth))
        };
        let leaving = self.leaving.iter();
        pasts.extend(leaving.map(|(&(slot, _), flow)| look(slot, flow)));
        for (slot, flow) in (0..).map(Slot).zip(&self.current) {
            pasts.extend(flow.as_ref().map(|flow| look(slot, flow)));
        }
        // Within a slot they are sorted by time already, and a stable sort keeps that.
        if !pasts.is_sorted_by_key(Past::slot) {
            pasts.sort_by_key(Past::slot);
        }
        pasts
    }
}

#[cfg(test)]
mod tests;
