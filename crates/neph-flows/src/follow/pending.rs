//! Traces that are over and whose changes are not certain yet.
//!
//! Owns until when each waits. Does not own what is certain then.

use std::collections::{BTreeMap, VecDeque};

use neph_model::{Instant, Lane, Own};

use super::Wanted;
use super::history::Known;

/// A trace that is over.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) wanted: Wanted,
    pub(super) known: Known,
    /// When it was.
    pub(super) at: Instant<Own>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pending {
    by_lane: BTreeMap<Lane, Vec<Finished>>,
    /// By time, nearly: traces take some seconds. What was told already is still in it.
    certain: VecDeque<(Instant<Own>, Lane)>,
}

impl Pending {
    /// Waits until this moment.
    pub(super) fn push(&mut self, lane: Lane, certain: Instant<Own>, finished: Finished) {
        self.by_lane.entry(lane).or_default().push(finished);
        self.certain.push_back((certain, lane));
    }

    /// A lane one of whose traces has waited long enough by now; each is told once.
    pub(super) fn certain(&mut self, now: Instant<Own>) -> Option<Lane> {
        let next = self.certain.pop_front_if(|(at, _)| *at <= now);
        next.map(|(_, lane)| lane)
    }

    /// What a lane's traces were wanted for.
    pub(super) fn of(&mut self, lane: Lane) -> impl Iterator<Item = &mut Wanted> {
        let own = self.by_lane.get_mut(&lane).into_iter().flatten();
        own.map(|finished| &mut finished.wanted)
    }

    /// Those of a lane that wait no more.
    pub(super) fn take_if(
        &mut self,
        lane: Lane,
        is_over: impl Fn(&Finished) -> bool,
    ) -> Vec<Finished> {
        let Some(own) = self.by_lane.get_mut(&lane) else {
            return Vec::new();
        };
        let over = own.extract_if(.., |one| is_over(one)).collect();
        if own.is_empty() {
            self.by_lane.remove(&lane);
        }
        over
    }

    /// All of a lane.
    pub(super) fn take(&mut self, lane: Lane) -> Vec<Finished> {
        self.by_lane.remove(&lane).unwrap_or_default()
    }

    /// All of them.
    pub(super) fn all(&mut self) -> impl Iterator<Item = (Lane, Finished)> + use<> {
        let all = std::mem::take(&mut self.by_lane).into_iter();
        all.flat_map(|(lane, finished)| finished.into_iter().map(move |one| (lane, one)))
    }
}
