//! What happens to a link at times that are counted from the lab's cue.

use neph_model::Span;

use super::PartialShape;
use super::recurrence::Recurrence;
use super::shape::Shape;
use super::traffic_engineering::TrafficEngineering;
use crate::direction::Direction;

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
    pub action: ChangeAction,
}

/// What a change does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeAction {
    /// It draws a new seed for the hash that chooses paths.
    Reshuffle,
    /// While it holds, this is so, for all paths.
    Override(PartialShape),
    /// While it holds, this is so for one path: its index, its weight, its wire.
    OverridePath(usize, Option<u32>, super::PartialWire),
    /// A controller sets the weights of all paths, each time that it begins.
    Rebalance(TrafficEngineering),
}

/// What happened at a moment of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScheduleEvent {
    /// A change holds from now on.
    Begins,
    /// A change does not hold any more.
    Ends,
    /// The hash got a new seed, so flows may be on other paths.
    Reshuffles,
    /// A controller set new weights of the paths.
    Rebalances,
}

impl ScheduleEvent {
    /// Its word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Begins => "begins",
            Self::Ends => "ends",
            Self::Reshuffles => "reshuffles",
            Self::Rebalances => "rebalances",
        }
    }
}

impl Change {
    /// Its times.
    pub(super) const fn recurrence(&self) -> Recurrence {
        Recurrence {
            at: self.at,
            until: self.until,
            every: self.every,
        }
    }

    /// Changes `shape` to what it is at `time`, in the gate with this seed.
    pub(super) fn apply(&self, seed: u64, time: Span, shape: &mut Shape) {
        let recurrence = self.recurrence();
        let Some(begin) = recurrence
            .last_begin(time)
            .filter(|_| recurrence.is_active_at(time))
        else {
            return;
        };
        match &self.action {
            ChangeAction::Reshuffle => {}
            ChangeAction::Override(partial) => {
                partial.apply(shape);
                for path in &mut shape.paths {
                    partial.wire.apply(&mut path.wire);
                }
            }
            ChangeAction::OverridePath(index, weight, wire) => {
                if let Some(path) = shape.paths.get_mut(*index) {
                    wire.apply(&mut path.wire);
                    path.weight = weight.unwrap_or(path.weight);
                }
            }
            ChangeAction::Rebalance(traffic_engineering) => {
                traffic_engineering.apply(seed, begin, shape);
            }
        }
    }
}
