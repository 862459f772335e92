//! A change of the route while flows are compared: it moves every path alike, for good or for a
//! while, and hides which port has which.

use std::collections::BTreeSet;

use super::{Class, Path, apart, classes, levels};
use crate::numbers::millis;

/// Where the route may have changed is looked at in so many moments at most ...
const MOMENTS: usize = 16;
/// ... beside so many levels of round trips at most ...
const LEVELS: usize = 8;
/// ... for so many flows at least ...
const FLOWS: usize = 8;
/// ... of which so many at least went before it and after it.
const MEANWHILE: usize = 2;

/// A flow's path, without what a change of the route adds.
#[derive(Clone, Copy)]
pub(crate) struct Aligned<'a> {
    pub(crate) path: &'a Path<'a>,
    /// Its least round trip in milliseconds.
    pub(crate) base: f64,
}

/// The flows from one place in time to another took a route that adds so many milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    from: usize,
    to: usize,
    by: f64,
}

impl Change {
    /// Of these flows, which it is about.
    pub(crate) fn in_words(&self, paths: &[Path<'_>]) -> String {
        let block = |place: usize| {
            let path = paths.get(place);
            path.map_or(0, |path| path.run.experiment.block())
        };
        let (first, last) = (block(self.from), block(self.to.saturating_sub(1)));
        let how = if self.by > 0.0 { "longer" } else { "shorter" };
        format!(
            " From block {first} to {last} the route itself was {} {how}, which is left aside here.",
            millis(self.by.abs())
        )
    }

    const fn holds(&self, place: usize) -> bool {
        self.from <= place && place < self.to
    }

    /// Whether at least two of the paths were taken under both routes: else it may as well be the
    /// choice of a port.
    fn is_shared(&self, flows: &[Aligned<'_>]) -> bool {
        let both = |class: &Class| {
            let members = flows.iter().enumerate();
            let members = members.filter(|(_, flow)| class.holds(flow));
            let meanwhile: BTreeSet<bool> = members.map(|(place, _)| self.holds(place)).collect();
            meanwhile.len() == 2
        };
        classes(flows).iter().filter(|class| both(class)).count() >= 2
    }
}

/// The flows without what a change adds.
pub(crate) fn aligned<'a>(paths: &'a [Path<'a>], change: Option<&Change>) -> Vec<Aligned<'a>> {
    let paths = paths.iter().enumerate();
    paths
        .map(|(place, path)| {
            let change = change.filter(|change| change.holds(place));
            let base = path.base - change.map_or(0.0, |change| change.by);
            Aligned { path, base }
        })
        .collect()
}

/// The changes that would leave several paths which lie apart, those that leave the fewest first,
/// and of them those that leave the fewest flows on none.
pub(crate) fn changes(paths: &[Path<'_>]) -> Vec<Change> {
    let raw = levels(&aligned(paths, None));
    if paths.len() < FLOWS || raw.len() > LEVELS {
        return Vec::new();
    }
    let lows = || raw.iter().map(|level| level.low);
    let steps: Vec<f64> = lows()
        .flat_map(|one| lows().map(move |other| one - other))
        .filter(|step| *step != 0.0)
        .collect();
    let mut scored: Vec<((usize, usize), Change)> = Vec::new();
    for (from, to) in stretches(paths.len()) {
        for by in &steps {
            let change = Change { from, to, by: *by };
            scored.extend(score(paths, &change).map(|score| (score, change)));
        }
    }
    // What is as good and moves the route less is the likelier one.
    scored.sort_by(|(a, one), (b, other)| {
        let by = one.by.abs().total_cmp(&other.by.abs());
        a.cmp(b).then(by)
    });
    scored.into_iter().map(|(_, change)| change).collect()
}

/// From some moment to the end, or to a later moment.
fn stretches(flows: usize) -> Vec<(usize, usize)> {
    let step = flows.div_ceil(MOMENTS).max(1);
    let moments = || (MEANWHILE..flows).step_by(step);
    moments()
        .flat_map(|from| moments().chain([flows]).map(move |to| (from, to)))
        .filter(|(from, to)| from + MEANWHILE <= *to)
        .collect()
}

/// How many paths are left, and how many flows on none of them; nothing where they do not lie apart.
fn score(paths: &[Path<'_>], change: &Change) -> Option<(usize, usize)> {
    let flows = aligned(paths, Some(change));
    let classes = classes(&flows);
    let (widest, gap) = apart(&classes)?;
    if widest * super::TIGHT > gap || !change.is_shared(&flows) {
        return None;
    }
    let held: usize = classes.iter().map(|class| class.flows).sum();
    Some((classes.len(), paths.len() - held))
}
