//! What a trace says of the path change that it was made for, or why it says nothing.

use crate::PathChange;
use neph_model::{Instant, Own};

/// Why the routes before and after a change are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The path before it was left before it was traced.
    NoBefore,
    /// The path changed again before the trace was over.
    MovedOn,
    /// No router answered at the same distance both times.
    NoRouter,
    /// Its trace failed, or was not over at the end.
    Unfinished,
}

impl Why {
    const ALL: [Self; 4] = [
        Self::NoBefore,
        Self::MovedOn,
        Self::NoRouter,
        Self::Unfinished,
    ];

    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoBefore => "no route of the path before it is known",
            Self::MovedOn => "the path changed again before the trace was over",
            Self::NoRouter => "no router answered both times",
            Self::Unfinished => "its trace did not come to an end",
        }
    }

    /// For programs.
    pub const fn key(self) -> &'static str {
        match self {
            Self::NoBefore => "no_route_before",
            Self::MovedOn => "changed_again",
            Self::NoRouter => "no_router_both_times",
            Self::Unfinished => "not_traced",
        }
    }
}

/// What two routes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether the flow met other routers than before.
    pub others: bool,
    /// When the last router of the route before was asked. A move since then that was not told is in
    /// the comparison too: one in the first messages of a flow, whose level is not settled.
    pub before: Instant<Own>,
}

/// What a trace says of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub change: PathChange,
    pub said: Result<Said, Why>,
    /// The change was taken back while the trace ran.
    pub is_withdrawn: bool,
}

/// How many changes were not compared, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncompared([u64; Why::ALL.len()]);

impl Uncompared {
    pub const fn add(&mut self, why: Why) {
        self.0[why as usize] += 1;
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that there are, most frequent first.
    pub fn by_reason(&self) -> Vec<(Why, u64)> {
        let mut counted: Vec<(Why, u64)> = Why::ALL.into_iter().zip(self.0).collect();
        counted.retain(|(_, count)| *count > 0);
        counted.sort_by_key(|(why, count)| (std::cmp::Reverse(*count), *why));
        counted
    }

    /// Each reason with its count, those without any too.
    pub fn every_reason(&self) -> impl Iterator<Item = (Why, u64)> {
        Why::ALL.into_iter().zip(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_as_itself() {
        let mut counted = Uncompared::default();
        for why in Why::ALL {
            counted.add(why);
        }
        counted.add(Why::MovedOn);
        assert_eq!(counted.all(), 5);
        assert_eq!(counted.by_reason()[0], (Why::MovedOn, 2));
        let of = |key: &str| counted.every_reason().find(|(why, _)| why.key() == key);
        assert_eq!(of("changed_again").map(|(_, count)| count), Some(2));
        assert_eq!(of("not_traced").map(|(_, count)| count), Some(1));
    }
}
