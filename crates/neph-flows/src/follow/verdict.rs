//! The verdict of a trace on the path change that it follows, or why there is none.

use crate::PathChange;
use neph_model::{Instant, Local};

/// Why the routes before and after a change are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UncomparedReason {
    /// The path before the change was not traced in time.
    NoBefore,
    /// The path changed again before the trace was finished.
    MovedOn,
    /// No router answered at the same distance in both traces.
    NoRouter,
    /// Its trace failed, or was unfinished at the end.
    Unfinished,
}

impl UncomparedReason {
    const ALL: [Self; 4] = [
        Self::NoBefore,
        Self::MovedOn,
        Self::NoRouter,
        Self::Unfinished,
    ];

    /// The reason as text.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoBefore => "no route of the path before it is known",
            Self::MovedOn => "the path changed again before the trace was over",
            Self::NoRouter => "no router answered both times",
            Self::Unfinished => "its trace did not come to an end",
        }
    }

    /// The key in files.
    pub const fn key(self) -> &'static str {
        match self {
            Self::NoBefore => "no_route_before",
            Self::MovedOn => "changed_again",
            Self::NoRouter => "no_router_both_times",
            Self::Unfinished => "not_traced",
        }
    }
}

/// The result of comparing two routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteComparison {
    /// Whether the flow used other routers than before.
    pub others: bool,
    /// When the last router of the earlier route was probed. The comparison includes unreported changes since
    /// then, for example in a flow's first messages.
    pub before: Instant<Local>,
}

/// The verdict of a trace on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub change: PathChange,
    pub comparison: Result<RouteComparison, UncomparedReason>,
    /// The change was withdrawn while the trace ran.
    pub is_withdrawn: bool,
}

/// Number of changes that were not compared, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncompared([u64; UncomparedReason::ALL.len()]);

impl Uncompared {
    pub const fn add(&mut self, reason: UncomparedReason) {
        self.0[reason as usize] += 1;
    }

    /// The total.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that occurred, most frequent first.
    pub fn by_reason(&self) -> Vec<(UncomparedReason, u64)> {
        let mut counts: Vec<(UncomparedReason, u64)> =
            UncomparedReason::ALL.into_iter().zip(self.0).collect();
        counts.retain(|(_, count)| *count > 0);
        counts.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), *reason));
        counts
    }

    /// Every reason with its count, including 0.
    pub fn every_reason(&self) -> impl Iterator<Item = (UncomparedReason, u64)> {
        UncomparedReason::ALL.into_iter().zip(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_separately() {
        let mut uncompared = Uncompared::default();
        for reason in UncomparedReason::ALL {
            uncompared.add(reason);
        }
        uncompared.add(UncomparedReason::MovedOn);
        assert_eq!(uncompared.total(), 5);
        assert_eq!(uncompared.by_reason()[0], (UncomparedReason::MovedOn, 2));
        let find_reason = |key: &str| {
            uncompared
                .every_reason()
                .find(|(reason, _)| reason.key() == key)
        };
        assert_eq!(
            find_reason("changed_again").map(|(_, count)| count),
            Some(2)
        );
        assert_eq!(find_reason("not_traced").map(|(_, count)| count), Some(1));
    }
}
