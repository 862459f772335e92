//! Latency classes: base latencies that lie together, so probably a path.
//!
//! Base latencies, with the time that flows had them, are put in order and cut wherever two neighbours
//! lie further apart than the tolerance, and where their density has a valley that their noise does
//! not explain. So a chain of nearer levels is as many classes as there are levels.

use std::collections::BTreeMap;

use neph_model::{Lane, Span};
use neph_stats::Weighted;

use crate::fairness::span;
use crate::fates::Fates;
use crate::pair::Moved;
use crate::settings::Settings;
use crate::share::Groups;
use crate::spectrum::Frame;
use crate::view::{Class, FlowHistory, PathChange};
use crate::watched::Telling;

/// Less than this share of all flows' time makes no class: a level that one flow had for a moment.
const LEAST_SHARE: f64 = 0.001;
/// Base latencies are counted by this part of the tolerance: however many there are.
const CELLS: i64 = 16;

/// Time at base latencies: what flows spent at each, by cells of base latency.
#[derive(Debug, Default, Clone, Copy)]
struct Cell {
    nanos: i128,
    weighted: i128,
}

impl Cell {
    fn add(&mut self, base: i64, nanos: i64) {
        // A segment that has only begun counts too, so that its class is there.
        let nanos = i128::from(nanos.max(1));
        self.nanos += nanos;
        self.weighted += nanos * i128::from(base);
    }

    /// Its mean base latency, and the time.
    fn weighted(&self) -> Weighted {
        let mean = i64::try_from(self.weighted / self.nanos.max(1)).unwrap_or(i64::MAX);
        #[expect(clippy::cast_precision_loss, reason = "a weight")]
        let weight = self.nanos as f64;
        Weighted {
            value: real(mean),
            weight,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
const fn real(nanos: i64) -> f64 {
    nanos as f64
}

#[expect(clippy::cast_precision_loss, reason = "a number of flows")]
const fn count(flows: usize) -> f64 {
    flows as f64
}

/// The classes of some flows, lowest first, without what the changes tell.
pub(crate) fn classes(flows: &[&FlowHistory], settings: &Settings) -> Vec<Class> {
    let tolerance = settings.detection.tolerance.nanos();
    let height = (tolerance / CELLS).max(1);
    let mut cells: BTreeMap<i64, Cell> = BTreeMap::new();
    for segment in flows.iter().flat_map(|flow| &flow.segments) {
        let base = segment.base.nanos();
        let cell = cells.entry(base.div_euclid(height)).or_default();
        cell.add(base, (segment.until - segment.from).nanos());
    }
    let mut values: Vec<Weighted> = cells.values().map(Cell::weighted).collect();
    // Time in flows: a flow's time is not many values, only one that is known well.
    let time: f64 = values.iter().map(|value| value.weight).sum();
    for value in &mut values {
        value.weight *= count(flows.len()) / time;
    }
    // What cannot be: a time that is no number. Then there are no classes.
    let found = neph_stats::classes(&values, real(tolerance), LEAST_SHARE).unwrap_or_default();
    let told = found.iter().map(|class| Class {
        base: span(class.centre),
        range: (span(class.low), span(class.high)),
        share: class.share,
        left: 0,
        joined: 0,
        flows: 0,
        sent: 0,
        lost: 0,
    });
    told.collect()
}

/// The index of the class that a base latency belongs to: it lies in its range or within half of
/// the tolerance of it.
pub(crate) fn class_at(classes: &[Class], base: Span, settings: &Settings) -> Option<u16> {
    let reach = Span::from_nanos(settings.detection.tolerance.nanos() / 2);
    let index = nearest(classes, base).filter(|index| away(&classes[*index], base) <= reach)?;
    u16::try_from(index).ok()
}

/// How far a base latency lies outside of a class's range.
pub(crate) fn away(class: &Class, base: Span) -> Span {
    let (below, above) = (class.range.0 - base, base - class.range.1);
    below.max(above).max(Span::ZERO)
}

/// Counts the moves from class to class.
pub(crate) fn count_moves(classes: &mut [Class], changes: &[&PathChange]) {
    for change in changes {
        // A change within a class is none between classes.
        let (from, to) = (
            nearest(classes, change.before),
            nearest(classes, change.after),
        );
        if from == to {
            continue;
        }
        if let Some(class) = from.and_then(|index| classes.get_mut(index)) {
            class.left += 1;
        }
        if let Some(class) = to.and_then(|index| classes.get_mut(index)) {
            class.joined += 1;
        }
    }
}

/// Counts the messages that were sent at each class's latencies, and their losses.
pub(crate) fn count_lost(classes: &mut [Class], fates: &Fates, settings: &Settings) {
    for (base, fate) in fates.each(settings) {
        let index = class_at(classes, base, settings);
        if let Some(class) = index.and_then(|index| classes.get_mut(usize::from(index))) {
            class.sent += fate.sent;
            class.lost += fate.lost;
        }
    }
}

/// The class that a base latency is in or next to: a change tells it as it was known at the time.
pub(crate) fn nearest(classes: &[Class], base: Span) -> Option<usize> {
    let nearest = classes
        .iter()
        .enumerate()
        .min_by_key(|(_, class)| (away(class, base), (class.base - base).nanos().abs()));
    nearest.map(|(index, _)| index)
}

/// Moves away from each class against its share of time. Those in one bin of time are a group: one
/// event moves many flows. `clear` is the time in which changes could be told.
pub(crate) fn moved(
    classes: &[Class],
    changes: &[&PathChange],
    clear: Span,
    telling: &Telling<'_>,
    frame: Frame,
) -> Vec<Moved> {
    let mut left: Vec<Groups> = classes.iter().map(|_| Groups::default()).collect();
    let mut away = vec![0.0; classes.len()];
    for change in changes {
        let from = nearest(classes, change.before);
        if from == nearest(classes, change.after) {
            continue;
        }
        let group = (change.at - frame.from).nanos();
        let group = group.div_euclid(frame.bin.nanos().max(1));
        for (index, groups) in left.iter_mut().enumerate() {
            groups.add(group, from == Some(index));
        }
        let counter = from.and_then(|index| away.get_mut(index));
        if let Some(counter) = counter.filter(|_| telling.counts(change)) {
            *counter += 1.0;
        }
    }
    let hours = clear.secs_f64() / 3600.0;
    let of = |(index, class): (usize, &Class)| {
        let away: f64 = away[index];
        let time = hours * class.share;
        Moved {
            class: u16::try_from(index).unwrap_or(u16::MAX),
            share: class.share,
            moved: left[index].share(),
            per_flow_hour: if time > 0.0 { away / time } else { 0.0 },
        }
    };
    classes.iter().enumerate().map(of).collect()
}

/// How many flows were in each class at their end, of those that went on until `recent`.
pub(crate) fn count_flows(
    classes: &mut [Class],
    flows: &[&FlowHistory],
    recent: neph_model::Instant<neph_model::Own>,
) {
    let mut last: BTreeMap<Lane, Option<u16>> = BTreeMap::new();
    for flow in flows {
        let segment = flow
            .segments
            .last()
            .filter(|segment| segment.until >= recent);
        if let Some(segment) = segment {
            last.insert(flow.lane, segment.class);
        }
    }
    for class in last.into_values().flatten() {
        if let Some(class) = classes.get_mut(usize::from(class)) {
            class.flows += 1;
        }
    }
}

#[cfg(test)]
mod tests;
