//! What the traces of a fleet's flows say of its path changes, told to the changes they were made
//! for.

use std::collections::BTreeMap;

use neph_flows::FleetView;
use neph_model::{Instant, Lane, Own, TracedRoute};

/// What tells one change of a fleet from the others.
type Which = (Instant<Own>, Lane, u16);

/// The verdicts of traces, by change.
#[derive(Debug, Default)]
pub(crate) struct Verdicts(BTreeMap<Which, bool>);

impl Verdicts {
    /// Takes in routes; those that follow no change, or had nothing to be compared with, say nothing.
    pub(crate) fn take(&mut self, routes: &[TracedRoute]) {
        let told = routes.iter().filter_map(|traced| {
            let change = traced.change?;
            let which = (change.at, traced.lane, traced.route.source_port);
            Some((which, change.others?))
        });
        self.0.extend(told);
    }

    /// Tells them to the changes of a view. One whose change is not told any more is left out.
    pub(crate) fn told_to(&self, view: &mut FleetView) {
        for change in &mut view.changes {
            let which = (change.at, change.lane, change.source_port);
            if let Some(others) = self.0.get(&which) {
                change.evidence.trace = Some(*others);
            }
        }
    }
}
