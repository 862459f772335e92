//! A route change while flows are compared. It moves all paths equally, permanently or for some time, and
//! hides which port uses which path.

use std::collections::BTreeSet;

use super::{Class, FlowPath, class_gap, classes, rtt_levels};
use crate::numbers::millis;

/// Maximum number of moments that are tried for the route change ...
const MAX_MOMENTS: usize = 16;
/// ... maximum number of RTT levels that are tried ...
const MAX_LEVELS: usize = 8;
/// ... minimum number of flows ...
const MIN_FLOWS: usize = 8;
/// ... and minimum number of flows before and after it.
const MIN_FLOWS_PER_SIDE: usize = 2;

/// A flow's path, without the latency that a route change adds.
#[derive(Clone, Copy)]
pub(crate) struct AlignedPath<'a> {
    pub(crate) path: &'a FlowPath<'a>,
    /// The least round trip in milliseconds.
    pub(crate) min_rtt_ms: f64,
}

/// A range of flows, by time, that took a route which adds this many milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct RouteChange {
    from: usize,
    to: usize,
    added_ms: f64,
}

impl RouteChange {
    /// Describes which of the flows the change concerns.
    pub(crate) fn to_text(self, paths: &[FlowPath<'_>]) -> String {
        let block = |index: usize| {
            let path = paths.get(index);
            path.map_or(0, |path| path.run.experiment.block())
        };
        let (first, last) = (block(self.from), block(self.to.saturating_sub(1)));
        let comparison = if self.added_ms > 0.0 {
            "longer"
        } else {
            "shorter"
        };
        format!(
            " From block {first} to {last} the route itself was {} {comparison}, which is left aside here.",
            millis(self.added_ms.abs())
        )
    }

    const fn contains(&self, index: usize) -> bool {
        self.from <= index && index < self.to
    }

    /// Whether at least two of the paths were used with both routes. Otherwise the choice of the port may be
    /// the reason.
    fn affects_several_paths(&self, flows: &[AlignedPath<'_>]) -> bool {
        let has_both_routes = |class: &Class| {
            let members = flows.iter().enumerate();
            let members = members.filter(|(_, flow)| class.contains(flow));
            let routes: BTreeSet<bool> = members.map(|(index, _)| self.contains(index)).collect();
            routes.len() == 2
        };
        classes(flows)
            .iter()
            .filter(|class| has_both_routes(class))
            .count()
            >= 2
    }
}

/// The flows without the latency that a change adds.
pub(crate) fn align_paths<'a>(
    paths: &'a [FlowPath<'a>],
    change: Option<&RouteChange>,
) -> Vec<AlignedPath<'a>> {
    let paths = paths.iter().enumerate();
    paths
        .map(|(index, path)| {
            let change = change.filter(|change| change.contains(index));
            let min_rtt_ms = path.min_rtt_ms - change.map_or(0.0, |change| change.added_ms);
            AlignedPath { path, min_rtt_ms }
        })
        .collect()
}

/// Changes that leave several distinct paths. Ordered by number of paths, then by number of flows on no path,
/// fewest first.
pub(crate) fn find_route_changes(paths: &[FlowPath<'_>]) -> Vec<RouteChange> {
    let unaligned_levels = rtt_levels(&align_paths(paths, None));
    if paths.len() < MIN_FLOWS || unaligned_levels.len() > MAX_LEVELS {
        return Vec::new();
    }
    let level_lows_ms = || unaligned_levels.iter().map(|level| level.low_ms);
    let steps_ms: Vec<f64> = level_lows_ms()
        .flat_map(|low_ms| level_lows_ms().map(move |other_low_ms| low_ms - other_low_ms))
        .filter(|step_ms| *step_ms != 0.0)
        .collect();
    let mut scored: Vec<((usize, usize), RouteChange)> = Vec::new();
    for (from, to) in candidate_periods(paths.len()) {
        for added_ms in &steps_ms {
            let change = RouteChange {
                from,
                to,
                added_ms: *added_ms,
            };
            scored.extend(score(paths, &change).map(|score| (score, change)));
        }
    }
    // Of equal changes the one that affects fewer flows is more likely.
    scored.sort_by(|(score, change), (other_score, other)| {
        let by_size = change.added_ms.abs().total_cmp(&other.added_ms.abs());
        score.cmp(other_score).then(by_size)
    });
    scored.into_iter().map(|(_, change)| change).collect()
}

/// From some moment to the end, or to a later moment.
fn candidate_periods(flows: usize) -> Vec<(usize, usize)> {
    let step = flows.div_ceil(MAX_MOMENTS).max(1);
    let moments = || (MIN_FLOWS_PER_SIDE..flows).step_by(step);
    moments()
        .flat_map(|from| moments().chain([flows]).map(move |to| (from, to)))
        .filter(|(from, to)| from + MIN_FLOWS_PER_SIDE <= *to)
        .collect()
}

/// Number of paths that remain, and of flows on none of them; `None` if the paths are not distinct.
fn score(paths: &[FlowPath<'_>], change: &RouteChange) -> Option<(usize, usize)> {
    let flows = align_paths(paths, Some(change));
    let classes = classes(&flows);
    let (max_width_ms, gap_ms) = class_gap(&classes)?;
    if max_width_ms * super::MIN_GAP_TO_WIDTH > gap_ms || !change.affects_several_paths(&flows) {
        return None;
    }
    let flows_on_paths: usize = classes.iter().map(|class| class.flows).sum();
    Some((classes.len(), paths.len() - flows_on_paths))
}
