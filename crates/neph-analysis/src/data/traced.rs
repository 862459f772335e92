//! What the traces of a fleet's flows say of its path changes, told to the changes they were made
//! for.

use std::collections::BTreeMap;

use neph_flows::PathChange;
use neph_model::{ChangeId, TracedRoute};

/// The changes of a fleet, which traces speak for or against. However many routes there are, only
/// the places of the changes are held.
#[derive(Debug)]
pub(crate) struct Verdicts<'a> {
    changes: &'a mut [PathChange],
    /// Where each change stands; empty until a trace asks for one.
    places: BTreeMap<ChangeId, usize>,
}

impl<'a> Verdicts<'a> {
    pub(crate) const fn on(changes: &'a mut [PathChange]) -> Self {
        Self {
            changes,
            places: BTreeMap::new(),
        }
    }

    /// Takes in routes, by time; those that follow no change, had nothing to be compared with, or
    /// whose change is not told any more, say nothing.
    pub(crate) fn take(&mut self, routes: &[TracedRoute]) {
        for traced in routes {
            let others = traced.change.and_then(|change| change.others);
            let Some((id, others)) = traced.change_id().zip(others) else {
                continue;
            };
            if let Some(place) = self.place(id) {
                self.changes[place].evidence.trace = Some(others);
            }
        }
    }

    fn place(&mut self, id: ChangeId) -> Option<usize> {
        if self.places.is_empty() {
            self.places = self.changes.iter().map(PathChange::id).zip(0..).collect();
        }
        self.places.get(&id).copied()
    }
}

#[cfg(test)]
mod tests {
    use neph_flows::Evidence;
    use neph_model::{FlowRoute, Instant, Lane, PathHash, Span, TraceEnd, TracedChange};

    use super::*;

    fn change(lane: u32, at: i64) -> PathChange {
        PathChange {
            lane: Lane(lane),
            source_port: 9,
            at: Instant::from_nanos(at),
            told: Instant::from_nanos(at),
            before: Span::from_millis(1),
            after: Span::from_millis(2),
            evidence: Evidence::default(),
        }
    }

    fn traced(lane: u32, at: i64, others: Option<bool>) -> TracedRoute {
        TracedRoute {
            lane: Lane(lane),
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
                others,
            }),
        }
    }

    #[test]
    fn a_trace_speaks_of_its_own_change_and_of_none_that_is_not_told() {
        let mut changes = [change(0, 1), change(1, 1), change(0, 2), change(1, 3)];
        let mut verdicts = Verdicts::on(&mut changes);
        verdicts.take(&[traced(0, 1, Some(false)), traced(1, 1, None)]);
        verdicts.take(&[traced(7, 1, Some(true)), traced(0, 2, Some(true))]);
        let told = changes.map(|change| change.evidence.trace);
        assert_eq!(told, [Some(false), None, Some(true), None]);
    }
}
