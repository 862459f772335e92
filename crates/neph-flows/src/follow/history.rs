//! The history of a slot's flow: its recent path changes and its routes.
//!
//! Owns the assignment of routes to paths. A change is reported seconds after it happened, so an earlier
//! trace may already show the path after it.

use std::collections::VecDeque;

use neph_model::{FlowRoute, Instant, Local, Span};

use super::verdict::{RouteComparison, UncomparedReason};

/// Maximum number of routes and changes: more than are reported during a trace.
const MAX_ENTRIES: usize = 4;

/// A route, and when its answered probes departed; unanswered probes give no information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownRoute {
    pub(super) route: FlowRoute,
    pub(super) first: Instant<Local>,
    pub(super) last: Instant<Local>,
}

/// The history of a flow; see the module.
#[derive(Debug)]
pub(super) struct History {
    pub(super) source_port: u16,
    /// By time.
    changes: VecDeque<Instant<Local>>,
    /// In the order in which they were found.
    routes: VecDeque<KnownRoute>,
}

impl History {
    pub(super) const fn of(source_port: u16) -> Self {
        Self {
            source_port,
            changes: VecDeque::new(),
            routes: VecDeque::new(),
        }
    }

    /// Adds a path change at this moment.
    pub(super) fn record_change(&mut self, at: Instant<Local>) {
        self.changes.push_back(at);
        if self.changes.len() > MAX_ENTRIES {
            self.changes.pop_front();
        }
    }

    /// Withdraws a path change.
    pub(super) fn record_withdrawal(&mut self, at: Instant<Local>) {
        self.changes.retain(|change| *change != at);
    }

    pub(super) fn record_result(&mut self, route: KnownRoute) {
        self.routes.push_back(route);
        if self.routes.len() > MAX_ENTRIES {
            self.routes.pop_front();
        }
    }

    /// Whether a route of the path since the last change is known.
    pub(super) fn is_traced(&self) -> bool {
        let previous_change = self.changes.back();
        let is_after_change =
            |route: &KnownRoute| previous_change.is_none_or(|at| route.first >= *at);
        self.routes.iter().any(is_after_change)
    }

    /// Whether the path changed again after this change.
    pub(super) fn has_later_change(&self, change: Instant<Local>) -> bool {
        self.changes.iter().any(|at| *at > change)
    }

    /// Whether `after` lies completely on the path that began with this change. The moment of a change is
    /// known only to within an `interval`, the time between two messages.
    pub(super) fn covers(
        &self,
        change: Instant<Local>,
        after: &KnownRoute,
        interval: Span,
    ) -> bool {
        let next_change = self.changes.iter().find(|at| **at > change);
        after.first >= change && next_change.is_none_or(|at| after.last + interval <= *at)
    }

    /// Compares what was traced for a change with the latest route of the path before it.
    ///
    /// # Errors
    /// Why they cannot be compared.
    pub(super) fn compare(
        &self,
        change: Instant<Local>,
        after: &KnownRoute,
        interval: Span,
    ) -> Result<(RouteComparison, &KnownRoute), (UncomparedReason, Option<&KnownRoute>)> {
        if !self.covers(change, after, interval) {
            return Err((UncomparedReason::MovedOn, None));
        }
        let previous_change = self.changes.iter().rev().find(|at| **at < change);
        let is_before = |route: &&KnownRoute| {
            route.last + interval <= change && previous_change.is_none_or(|at| route.first >= *at)
        };
        let Some(before) = self.routes.iter().rev().find(is_before) else {
            return Err((UncomparedReason::NoBefore, None));
        };
        let Some(others) = routers_differ(&before.route, &after.route) else {
            return Err((UncomparedReason::NoRouter, Some(before)));
        };
        let comparison = RouteComparison {
            others,
            before: before.last,
        };
        Ok((comparison, before))
    }
}

/// Whether two routes of a flow have different routers at some distance. `None` if no distance is known in
/// both; a router that does not answer is no difference.
fn routers_differ(before: &FlowRoute, after: &FlowRoute) -> Option<bool> {
    let differences: Vec<bool> = before
        .hops
        .iter()
        .zip(&after.hops)
        .filter_map(|(hop, other)| Some(hop.address? != other.address?))
        .collect();
    (!differences.is_empty()).then(|| differences.contains(&true))
}

#[cfg(test)]
mod tests {
    use super::super::tests::route;
    use super::*;

    const INTERVAL: Span = Span::from_nanos(10);

    fn instant(nanos: i64) -> Instant<Local> {
        Instant::from_nanos(nanos)
    }

    fn known_route(hops: &[u8], first: i64, last: i64) -> KnownRoute {
        KnownRoute {
            route: route(9, hops),
            first: instant(first),
            last: instant(last),
        }
    }

    /// The result for the change at 100, with these other changes and routes.
    fn comparison(
        changes: &[i64],
        routes: &[KnownRoute],
        after: &KnownRoute,
    ) -> Result<(bool, i64), UncomparedReason> {
        let mut history = History::of(9);
        let mut changes = [changes, &[100]].concat();
        changes.sort_unstable();
        for change in changes {
            history.record_change(instant(change));
        }
        for route in routes {
            history.record_result(route.clone());
        }
        history
            .compare(instant(100), after, INTERVAL)
            .map(|(comparison, _)| (comparison.others, comparison.before.nanos()))
            .map_err(|(reason, _)| reason)
    }

    #[test]
    fn a_trace_between_a_change_and_its_report_is_not_used_as_the_old_route() {
        let (old_route, route_between) = (known_route(&[1], 20, 30), known_route(&[2], 120, 130));
        let after = known_route(&[2], 200, 210);
        let both_routes = [old_route.clone(), route_between.clone()];
        assert_eq!(comparison(&[], &both_routes, &after), Ok((true, 30)));
        assert_eq!(
            comparison(&[], &[route_between], &after),
            Err(UncomparedReason::NoBefore)
        );
        // Nor a route with some probes after the change, or in the time in which it may have happened.
        let route_across_change = known_route(&[1], 95, 105);
        assert_eq!(
            comparison(&[], &[route_across_change], &after),
            Err(UncomparedReason::NoBefore)
        );
        let late_route = known_route(&[1], 85, 91);
        assert_eq!(
            comparison(&[], &[late_route], &after),
            Err(UncomparedReason::NoBefore)
        );
        // Nor a route of the path before the previous one.
        assert_eq!(
            comparison(&[50], &[old_route], &after),
            Err(UncomparedReason::NoBefore)
        );
        let after_previous = known_route(&[3], 50, 60);
        assert_eq!(comparison(&[50], &[after_previous], &after), Ok((true, 60)));
    }

    #[test]
    fn a_trace_that_overlaps_the_next_change_is_assigned_to_no_path() {
        let before = [known_route(&[1], 20, 30)];
        let compare_until = |last| comparison(&[300], &before, &known_route(&[2], 200, last));
        assert_eq!(compare_until(290), Ok((true, 30)));
        assert_eq!(compare_until(291), Err(UncomparedReason::MovedOn));
        let late_route = known_route(&[1], 310, 320);
        assert_eq!(
            comparison(&[300], &before, &late_route),
            Err(UncomparedReason::MovedOn)
        );
    }

    #[test]
    fn a_withdrawn_change_separates_no_paths() {
        let mut history = History::of(9);
        history.record_result(known_route(&[1], 20, 30));
        assert!(history.is_traced());
        history.record_change(instant(50));
        assert!(!history.is_traced() && history.has_later_change(instant(40)));
        history.record_withdrawal(instant(50));
        assert!(history.is_traced() && !history.has_later_change(instant(40)));
        history.record_change(instant(100));
        let after = known_route(&[1], 150, 160);
        let comparison = history.compare(instant(100), &after, INTERVAL);
        assert_eq!(
            comparison.map(|(comparison, _)| comparison.others),
            Ok(false)
        );
    }

    #[test]
    fn only_routers_that_answered_in_both_traces_are_compared() {
        let differ =
            |before: &[u8], after: &[u8]| routers_differ(&route(9, before), &route(9, after));
        assert_eq!(differ(&[1, 2, 3], &[1, 2, 3]), Some(false));
        assert_eq!(differ(&[1, 2, 3], &[1, 4, 3]), Some(true));
        assert_eq!(differ(&[1, 0, 3], &[1, 4, 3]), Some(false));
        assert_eq!(differ(&[1, 2], &[1, 2, 3]), Some(false));
        assert_eq!(differ(&[0], &[1]), None);
    }
}
