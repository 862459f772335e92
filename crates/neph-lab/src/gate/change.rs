//! What happens to a link at times that are counted from the lab's cue.

use neph_model::Span;

use super::Partial;
use super::shape::Shape;
use crate::counters::Direction;

/// An entry of a link's schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The only direction it is about, if it is about one.
    pub direction: Option<Direction>,
    /// When it begins, after the cue.
    pub at: Span,
    /// When it ends, after the cue; for ever if none. Later than [`Self::at`].
    pub until: Option<Span>,
    /// After how long it begins again; longer than it lasts.
    pub every: Option<Span>,
    /// What it does.
    pub what: What,
}

/// What a change does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It draws a new seed for the hash that chooses paths.
    Reshuffle,
    /// While it holds, this is so, for all paths.
    Override(Partial),
    /// While it holds, this is so for one path: its index, its weight, its wire.
    OverridePath(usize, Option<u32>, super::PartialWire),
}

/// What happened at a moment of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// A change holds from now on.
    Begins,
    /// A change does not hold any more.
    Ends,
    /// Flows were spread over the paths anew.
    Reshuffles,
}

impl Turn {
    /// Its word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Begins => "begins",
            Self::Ends => "ends",
            Self::Reshuffles => "reshuffles",
        }
    }
}

impl Change {
    /// How often it has begun by `time` after the cue.
    pub(super) fn begun(&self, time: Span) -> i64 {
        self.count(self.at, time)
    }

    /// How often it has ended by `time` after the cue.
    pub(super) fn ended(&self, time: Span) -> i64 {
        self.until.map_or(0, |until| self.count(until, time))
    }

    /// How often what is first at `first` has been by `time`.
    fn count(&self, first: Span, time: Span) -> i64 {
        match self.every {
            _ if time < first => 0,
            None => 1,
            Some(every) => 1 + (time - first).nanos() / every.nanos().max(1),
        }
    }

    /// When it begins or ends next after `time`.
    pub(super) fn next_after(&self, time: Span) -> Option<Span> {
        let next = |first: Span| match self.every {
            _ if time < first => Some(first),
            None => None,
            Some(every) => Some(first + every.times(self.count(first, time))),
        };
        let begins = next(self.at);
        let ends = self.until.and_then(next);
        begins.into_iter().chain(ends).min()
    }

    /// Changes `shape` as it is at `time`.
    pub(super) fn apply(&self, time: Span, shape: &mut Shape) {
        if self.begun(time) <= self.ended(time) {
            return;
        }
        match &self.what {
            What::Reshuffle => {}
            What::Override(partial) => {
                partial.apply(shape);
                for path in &mut shape.paths {
                    partial.wire.apply(&mut path.wire);
                }
            }
            What::OverridePath(index, weight, wire) => {
                if let Some(path) = shape.paths.get_mut(*index) {
                    wire.apply(&mut path.wire);
                    path.weight = weight.unwrap_or(path.weight);
                }
            }
        }
    }
}
