//! What is known of a lane's flow: when its path changed lately, and which routes it was seen to have.
//!
//! Owns which route is that of which path: a change is told seconds after it happened, so that what
//! was traced in between is of the path after it, whoever asked for it.

use std::collections::VecDeque;

use neph_model::{FlowRoute, Instant, Own, Span};

use super::verdict::{Said, Why};

/// Routes and changes that are kept: more than were ever told of the time that a trace takes.
const MOST: usize = 4;

/// A route, and when the probes left that somebody answered: those that nobody did tell nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) route: FlowRoute,
    pub(super) first: Instant<Own>,
    pub(super) last: Instant<Own>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct History {
    pub(super) source_port: u16,
    /// By time.
    changes: VecDeque<Instant<Own>>,
    /// In the order in which they were found.
    routes: VecDeque<Known>,
}

impl History {
    pub(super) const fn of(source_port: u16) -> Self {
        Self {
            source_port,
            changes: VecDeque::new(),
            routes: VecDeque::new(),
        }
    }

    /// The flow's path changed at this moment.
    pub(super) fn changed(&mut self, at: Instant<Own>) {
        self.changes.push_back(at);
        if self.changes.len() > MOST {
            self.changes.pop_front();
        }
    }

    /// It did not after all.
    pub(super) fn withdrawn(&mut self, at: Instant<Own>) {
        self.changes.retain(|one| *one != at);
    }

    pub(super) fn found(&mut self, known: Known) {
        self.routes.push_back(known);
        if self.routes.len() > MOST {
            self.routes.pop_front();
        }
    }

    /// Whether a route of the path since the last change is known.
    pub(super) fn is_traced(&self) -> bool {
        let since = self.changes.back();
        let is_of_it = |known: &Known| since.is_none_or(|at| known.first >= *at);
        self.routes.iter().any(is_of_it)
    }

    /// Whether the path changed again after this change.
    pub(super) fn is_left(&self, change: Instant<Own>) -> bool {
        self.changes.iter().any(|at| *at > change)
    }

    /// Whether `after` is wholly of the path that began with this change. A path changed at some time
    /// between two messages of its flow, which are an `interval` apart.
    pub(super) fn is_of(&self, change: Instant<Own>, after: &Known, interval: Span) -> bool {
        let next = self.changes.iter().find(|at| **at > change);
        after.first >= change && next.is_none_or(|at| after.last + interval <= *at)
    }

    /// Holds what was traced for a change against the latest route of the path before it.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(super) fn compare(
        &self,
        change: Instant<Own>,
        after: &Known,
        interval: Span,
    ) -> Result<(Said, &Known), (Why, Option<&Known>)> {
        if !self.is_of(change, after, interval) {
            return Err((Why::MovedOn, None));
        }
        let since = self.changes.iter().rev().find(|at| **at < change);
        let is_before = |known: &&Known| {
            known.last + interval <= change && since.is_none_or(|at| known.first >= *at)
        };
        let Some(before) = self.routes.iter().rev().find(is_before) else {
            return Err((Why::NoBefore, None));
        };
        let Some(others) = differs(&before.route, &after.route) else {
            return Err((Why::NoRouter, Some(before)));
        };
        let said = Said {
            others,
            before: before.last,
        };
        Ok((said, before))
    }
}

/// Whether two routes of a flow have different routers at some distance; `None` where no distance is
/// known of both. A router that does not answer is no other router.
fn differs(before: &FlowRoute, after: &FlowRoute) -> Option<bool> {
    let known: Vec<bool> = before
        .hops
        .iter()
        .zip(&after.hops)
        .filter_map(|(one, other)| Some(one.address? != other.address?))
        .collect();
    (!known.is_empty()).then(|| known.contains(&true))
}

#[cfg(test)]
mod tests {
    use super::super::tests::route;
    use super::*;

    const INTERVAL: Span = Span::from_nanos(10);

    fn at(nanos: i64) -> Instant<Own> {
        Instant::from_nanos(nanos)
    }

    fn known(hops: &[u8], first: i64, last: i64) -> Known {
        Known {
            route: route(9, hops),
            first: at(first),
            last: at(last),
        }
    }

    /// What is said of the change at 100, with these other changes and routes.
    fn said(changes: &[i64], routes: &[Known], after: &Known) -> Result<(bool, i64), Why> {
        let mut history = History::of(9);
        let mut changes = [changes, &[100]].concat();
        changes.sort_unstable();
        for one in changes {
            history.changed(at(one));
        }
        for one in routes {
            history.found(one.clone());
        }
        history
            .compare(at(100), after, INTERVAL)
            .map(|(said, _)| (said.others, said.before.nanos()))
            .map_err(|(why, _)| why)
    }

    #[test]
    fn what_was_traced_between_a_change_and_its_telling_is_not_the_route_before_it() {
        let (old, between) = (known(&[1], 20, 30), known(&[2], 120, 130));
        let after = known(&[2], 200, 210);
        let both = [old.clone(), between.clone()];
        assert_eq!(said(&[], &both, &after), Ok((true, 30)));
        assert_eq!(said(&[], &[between], &after), Err(Why::NoBefore));
        // Nor one of whose probes some left after it, or when it may have happened already.
        let across = known(&[1], 95, 105);
        assert_eq!(said(&[], &[across], &after), Err(Why::NoBefore));
        let late = known(&[1], 85, 91);
        assert_eq!(said(&[], &[late], &after), Err(Why::NoBefore));
        // Nor one of the path before the path before.
        assert_eq!(said(&[50], &[old], &after), Err(Why::NoBefore));
        let since = known(&[3], 50, 60);
        assert_eq!(said(&[50], &[since], &after), Ok((true, 60)));
    }

    #[test]
    fn a_trace_that_was_not_over_before_the_next_change_is_of_neither_path() {
        let before = [known(&[1], 20, 30)];
        let of = |last| said(&[300], &before, &known(&[2], 200, last));
        assert_eq!(of(290), Ok((true, 30)));
        assert_eq!(of(291), Err(Why::MovedOn));
        let late = known(&[1], 310, 320);
        assert_eq!(said(&[300], &before, &late), Err(Why::MovedOn));
    }

    #[test]
    fn a_change_that_was_withdrawn_parts_no_paths() {
        let mut history = History::of(9);
        history.found(known(&[1], 20, 30));
        assert!(history.is_traced());
        history.changed(at(50));
        assert!(!history.is_traced() && history.is_left(at(40)));
        history.withdrawn(at(50));
        assert!(history.is_traced() && !history.is_left(at(40)));
        history.changed(at(100));
        let after = known(&[1], 150, 160);
        let told = history.compare(at(100), &after, INTERVAL);
        assert_eq!(told.map(|(said, _)| said.others), Ok(false));
    }

    #[test]
    fn only_routers_that_answered_both_times_are_compared() {
        let of = |before: &[u8], after: &[u8]| differs(&route(9, before), &route(9, after));
        assert_eq!(of(&[1, 2, 3], &[1, 2, 3]), Some(false));
        assert_eq!(of(&[1, 2, 3], &[1, 4, 3]), Some(true));
        assert_eq!(of(&[1, 0, 3], &[1, 4, 3]), Some(false));
        assert_eq!(of(&[1, 2], &[1, 2, 3]), Some(false));
        assert_eq!(of(&[0], &[1]), None);
    }
}
