//! A route change while flows are compared. It moves all paths equally, permanently or for some time, and
//! hides which port uses which path.

use std::collections::BTreeSet;

use super::{Class, Path, class_gap, classes, levels};
use crate::numbers::millis;

/// Maximum number of moments that are tried for the route change ...
const MOMENTS: usize = 16;
/// ... maximum number of RTT levels that are tried ...
const LEVELS: usize = 8;
/// ... minimum number of flows ...
const FLOWS: usize = 8;
/// ... and minimum number of flows before and after it.
const MEANWHILE: usize = 2;

/// A flow's path, without the latency that a route change adds.
#[derive(Clone, Copy)]
pub(crate) struct Aligned<'a> {
    pub(crate) path: &'a Path<'a>,
    /// The least round trip in milliseconds.
    pub(crate) base: f64,
}

/// A range of flows, by time, that took a route which adds this many milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    from: usize,
    to: usize,
    by: f64,
}

impl Change {
    /// Describes which of the flows the change concerns.
    pub(crate) fn to_text(self, paths: &[Path<'_>]) -> String {
        let block = |index: usize| {
            let path = paths.get(index);
            path.map_or(0, |path| path.run.experiment.block())
        };
        let (first, last) = (block(self.from), block(self.to.saturating_sub(1)));
        let how = if self.by > 0.0 { "longer" } else { "shorter" };
        format!(
            " From block {first} to {last} the route itself was {} {how}, which is left aside here.",
            millis(self.by.abs())
        )
    }

    const fn contains(&self, index: usize) -> bool {
        self.from <= index && index < self.to
    }

    /// Whether at least two of the paths were used with both routes. Otherwise the choice of the port may be
    /// the reason.
    fn is_shared(&self, flows: &[Aligned<'_>]) -> bool {
        let has_both_routes = |class: &Class| {
            let members = flows.iter().enumerate();
            let members = members.filter(|(_, flow)| class.contains(flow));
            let meanwhile: BTreeSet<bool> =
                members.map(|(index, _)| self.contains(index)).collect();
            meanwhile.len() == 2
        };
        classes(flows)
            .iter()
            .filter(|class| has_both_routes(class))
            .count()
            >= 2
    }
}

/// The flows without the latency that a change adds.
pub(crate) fn aligned<'a>(paths: &'a [Path<'a>], change: Option<&Change>) -> Vec<Aligned<'a>> {
    let paths = paths.iter().enumerate();
    paths
        .map(|(index, path)| {
            let change = change.filter(|change| change.contains(index));
            let base = path.base - change.map_or(0.0, |change| change.by);
            Aligned { path, base }
        })
        .collect()
}

/// Changes that leave several distinct paths. Ordered by number of paths, then by number of flows on no path,
/// fewest first.
pub(crate) fn changes(paths: &[Path<'_>]) -> Vec<Change> {
    let raw = levels(&aligned(paths, None));
    if paths.len() < FLOWS || raw.len() > LEVELS {
        return Vec::new();
    }
    let lows = || raw.iter().map(|level| level.low);
    let steps: Vec<f64> = lows()
        .flat_map(|low| lows().map(move |other| low - other))
        .filter(|step| *step != 0.0)
        .collect();
    let mut scored: Vec<((usize, usize), Change)> = Vec::new();
    for (from, to) in periods(paths.len()) {
        for by in &steps {
            let change = Change { from, to, by: *by };
            scored.extend(score(paths, &change).map(|score| (score, change)));
        }
    }
    // Of equal changes the one that affects fewer flows is more likely.
    scored.sort_by(|(a, change), (b, other)| {
        let by = change.by.abs().total_cmp(&other.by.abs());
        a.cmp(b).then(by)
    });
    scored.into_iter().map(|(_, change)| change).collect()
}

/// From some moment to the end, or to a later moment.
fn periods(flows: usize) -> Vec<(usize, usize)> {
    let step = flows.div_ceil(MOMENTS).max(1);
    let moments = || (MEANWHILE..flows).step_by(step);
    moments()
        .flat_map(|from| moments().chain([flows]).map(move |to| (from, to)))
        .filter(|(from, to)| from + MEANWHILE <= *to)
        .collect()
}

/// Number of paths that remain, and of flows on none of them; `None` if the paths are not distinct.
fn score(paths: &[Path<'_>], change: &Change) -> Option<(usize, usize)> {
    let flows = aligned(paths, Some(change));
    let classes = classes(&flows);
    let (widest, gap) = class_gap(&classes)?;
    if widest * super::TIGHT > gap || !change.is_shared(&flows) {
        return None;
    }
    let flows_on_paths: usize = classes.iter().map(|class| class.flows).sum();
    Some((classes.len(), paths.len() - flows_on_paths))
}
