//! The flows that each lane has, one after the other: those that go on, those of which the detector
//! may still speak, and those that are over. Keeps them apart; finds nothing out about them.
//!
//! The detector waits for messages of other flows, so what it says may be of a flow that its lane has
//! no more, and where flows are renewed soon, of one that two others have followed since.

use std::collections::{BTreeMap, VecDeque};

use neph_model::{FleetMessage, Instant, Lane, Own, Span};

use crate::flow::{Flow, Past};

/// Flows that are over and kept, where flows are renewed: 80 bytes each.
const MOST_OVER: usize = 1 << 19;

/// See the module.
#[derive(Debug)]
pub(crate) struct Succession {
    /// By lane.
    current: Vec<Option<Flow>>,
    /// Those that the detector has not let go: by lane and how many flows the lane had before.
    leaving: BTreeMap<(Lane, u32), Flow>,
    /// Of a lane in the order of time.
    over: VecDeque<Past>,
    pub(crate) most_over: usize,
}

impl Default for Succession {
    fn default() -> Self {
        Self {
            current: Vec::new(),
            leaving: BTreeMap::new(),
            over: VecDeque::new(),
            most_over: MOST_OVER,
        }
    }
}

impl Succession {
    /// Whether the lane of a message had another flow until now.
    pub(crate) fn is_renewed_by(&self, message: &FleetMessage) -> bool {
        let current = self.current.get(message.lane.0 as usize);
        current
            .and_then(Option::as_ref)
            .is_some_and(|flow| !flow.owns(message))
    }

    /// The lane of a message has another flow from now on. The detector has said all that it will
    /// about the lane's first `heard` flows: these are over. Where that makes too many, the oldest
    /// are forgotten; returns until when.
    pub(crate) fn renew(&mut self, message: &FleetMessage, heard: u32) -> Option<Instant<Own>> {
        let lane = message.lane;
        let current = self.current.get_mut(lane.0 as usize)?;
        let next = current.as_ref().map_or(0, |flow| flow.nth() + 1);
        if let Some(old) = current.replace(Flow::begun_by(message, next)) {
            self.leaving.insert((lane, old.nth()), old);
        }
        let mut forgotten = None;
        while let Some(entry) = self.leaving.range((lane, 0)..(lane, heard)).next() {
            let key = *entry.0;
            let past = self.leaving.remove(&key).map(|flow| flow.past(lane, None));
            if self.over.len() >= self.most_over {
                forgotten = forgotten.max(self.over.pop_front().map(|past| past.until()));
            }
            self.over.extend(past);
        }
        forgotten
    }

    /// The flow of a message, which goes on with it, or begins.
    pub(crate) fn current(&mut self, message: &FleetMessage) -> &mut Flow {
        let index = message.lane.0 as usize;
        if self.current.len() <= index {
            self.current.resize_with(index + 1, || None);
        }
        self.current[index].get_or_insert_with(|| Flow::begun_by(message, 0))
    }

    /// The flow before which a lane had so many, unless it is over.
    pub(crate) fn find(&mut self, lane: Lane, nth: u32) -> Option<&mut Flow> {
        let current = self.current.get_mut(lane.0 as usize)?.as_mut();
        match current.filter(|flow| flow.nth() == nth) {
            Some(flow) => Some(flow),
            None => self.leaving.get_mut(&(lane, nth)),
        }
    }

    /// The flow that a lane had at a moment, if it is over and had a base latency by then.
    pub(crate) fn find_over(&mut self, lane: Lane, at: Instant<Own>) -> Option<&mut Past> {
        let flows = self.over.iter_mut().rev();
        flows
            .filter(|past| past.lane() == lane)
            .find(|past| past.was_known(at))
    }

    /// All of them by lane, then by time. `detector` says of a lane which of its flows it is at, and
    /// that one's base latency as exactly as it is known.
    pub(crate) fn end(self, detector: impl Fn(Lane) -> (u32, Option<Span>)) -> Vec<Past> {
        let mut pasts: Vec<Past> = self.over.into();
        let look = |lane: Lane, flow: &Flow| {
            let (nth, base) = detector(lane);
            flow.past(lane, base.filter(|_| flow.nth() == nth))
        };
        let leaving = self.leaving.iter();
        pasts.extend(leaving.map(|(&(lane, _), flow)| look(lane, flow)));
        for (lane, flow) in (0..).map(Lane).zip(&self.current) {
            pasts.extend(flow.as_ref().map(|flow| look(lane, flow)));
        }
        // Of one lane they are in the order of time already, and the sort keeps it.
        if !pasts.is_sorted_by_key(Past::lane) {
            pasts.sort_by_key(Past::lane);
        }
        pasts
    }
}

#[cfg(test)]
mod tests;
