//! Assigns the traces of a fleet's flows to the path changes that triggered them. A trace confirms or
//! contradicts its path change.

use std::collections::BTreeMap;

use neph_flows::PathChange;
use neph_model::{ChangeId, TracedRoute};

/// The path changes of a fleet, with the verdicts of traces. Memory depends on the number of changes, not on
/// the number of routes.
#[derive(Debug)]
pub(crate) struct Verdicts<'a> {
    changes: &'a mut [PathChange],
    /// The index of each change; empty until a trace refers to one.
    indices: BTreeMap<ChangeId, usize>,
}

impl<'a> Verdicts<'a> {
    pub(crate) const fn new(changes: &'a mut [PathChange]) -> Self {
        Self {
            changes,
            indices: BTreeMap::new(),
        }
    }

    /// Adds routes, by time. Ignores routes that follow no change, that have no earlier route to compare
    /// with, or whose change is no longer reported.
    pub(crate) fn add(&mut self, routes: &[TracedRoute]) {
        for traced in routes {
            let has_other_routers = traced.change.and_then(|change| change.other_routers);
            let Some((id, has_other_routers)) = traced.change_id().zip(has_other_routers) else {
                continue;
            };
            if let Some(index) = self.index_of(id) {
                self.changes[index].evidence.trace = Some(has_other_routers);
            }
        }
    }

    fn index_of(&mut self, id: ChangeId) -> Option<usize> {
        if self.indices.is_empty() {
            self.indices = self.changes.iter().map(PathChange::id).zip(0..).collect();
        }
        self.indices.get(&id).copied()
    }
}

#[cfg(test)]
mod tests {
    use neph_flows::Evidence;
    use neph_model::{FlowRoute, Instant, PathHash, Slot, Span, TraceEnd, TracedChange};

    use super::*;

    fn change(slot: u32, at: i64) -> PathChange {
        PathChange {
            slot: Slot(slot),
            source_port: 9,
            at: Instant::from_nanos(at),
            reported: Instant::from_nanos(at),
            before: Span::from_millis(1),
            after: Span::from_millis(2),
            evidence: Evidence::default(),
        }
    }

    fn traced(slot: u32, at: i64, others: Option<bool>) -> TracedRoute {
        TracedRoute {
            slot: Slot(slot),
            at: Instant::from_nanos(at + 5),
            route: FlowRoute {
                source_port: 9,
                hops: Vec::new(),
                hash: PathHash::of(&[]),
                end: TraceEnd::Stopped,
            },
            change: Some(TracedChange {
                at: Instant::from_nanos(at),
                before: None,
                other_routers: others,
            }),
        }
    }

    #[test]
    fn each_trace_sets_the_verdict_of_its_own_change_only() {
        let mut changes = [change(0, 1), change(1, 1), change(0, 2), change(1, 3)];
        let mut verdicts = Verdicts::new(&mut changes);
        verdicts.add(&[traced(0, 1, Some(false)), traced(1, 1, None)]);
        verdicts.add(&[traced(7, 1, Some(true)), traced(0, 2, Some(true))]);
        let traces = changes.map(|change| change.evidence.trace);
        assert_eq!(traces, [Some(false), None, Some(true), None]);
    }
}
