//! Latency classes: groups of similar base latencies, which probably share a path.
//!
//! Base latencies, weighted by time, are sorted. A class ends where the gap to the next value exceeds the
//! tolerance, or at a valley of the density that noise does not explain. A chain of nearby levels forms one
//! class per level.

use std::collections::BTreeMap;

use neph_model::{Slot, Span};
use neph_stats::Weighted;

use crate::latency_bins::span_from_nanos;
use crate::loss_by_base::LossByBase;
use crate::observed_time::ObservedTime;
use crate::pair::ClassMoves;
use crate::settings::Settings;
use crate::share::Groups;
use crate::spectrum::TimeGrid;
use crate::view::{Class, FlowHistory, PathChange};

/// Minimum share of all flows' time for a class: excludes levels of a single flow for a moment.
const MIN_SHARE: f64 = 0.001;
/// Resolution of base latencies, as a part of the tolerance; it limits their number.
const CELLS_PER_TOLERANCE: i64 = 16;

/// Time of flows in a cell of base latency.
#[derive(Debug, Default, Clone, Copy)]
struct Cell {
    nanos: i128,
    weighted_sum: i128,
}

impl Cell {
    fn add(&mut self, base: i64, nanos: i64) {
        // A segment that has only begun counts too, so that its class exists.
        let nanos = i128::from(nanos.max(1));
        self.nanos += nanos;
        self.weighted_sum += nanos * i128::from(base);
    }

    /// Its mean base latency, and the time.
    fn weighted_mean(&self) -> Weighted {
        let mean = i64::try_from(self.weighted_sum / self.nanos.max(1)).unwrap_or(i64::MAX);
        #[expect(clippy::cast_precision_loss, reason = "a weight")]
        let weight = self.nanos as f64;
        Weighted {
            value: nanos_to_f64(mean),
            weight,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
const fn nanos_to_f64(nanos: i64) -> f64 {
    nanos as f64
}

#[expect(clippy::cast_precision_loss, reason = "a number of flows")]
const fn count_to_f64(flows: usize) -> f64 {
    flows as f64
}

/// The classes of some flows, lowest first, without the data of changes.
pub(crate) fn find_classes(flows: &[&FlowHistory], settings: &Settings) -> Vec<Class> {
    let tolerance = settings.detection.tolerance.nanos();
    let cell_height = (tolerance / CELLS_PER_TOLERANCE).max(1);
    let mut cells: BTreeMap<i64, Cell> = BTreeMap::new();
    for segment in flows.iter().flat_map(|flow| &flow.segments) {
        let base = segment.base.nanos();
        let cell = cells.entry(base.div_euclid(cell_height)).or_default();
        cell.add(base, (segment.until - segment.from).nanos());
    }
    let mut values: Vec<Weighted> = cells.values().map(Cell::weighted_mean).collect();
    // The number of independent values is that of the flows: time only adds weight.
    let time: f64 = values.iter().map(|value| value.weight).sum();
    for value in &mut values {
        value.weight *= count_to_f64(flows.len()) / time;
    }
    // Not expected: a time that is not a number. Then there are no classes.
    let levels = neph_stats::classes(&values, nanos_to_f64(tolerance), MIN_SHARE);
    let levels = levels.unwrap_or_default();
    let classes = levels.iter().map(|class| Class {
        base: span_from_nanos(class.centre),
        range: (span_from_nanos(class.low), span_from_nanos(class.high)),
        share: class.share,
        left: 0,
        joined: 0,
        flows: 0,
        sent: 0,
        lost: 0,
    });
    classes.collect()
}

/// The index of the class that contains a base latency, or lies within half of the tolerance of it.
pub(crate) fn class_at(classes: &[Class], base: Span, settings: &Settings) -> Option<u16> {
    let max_distance = Span::from_nanos(settings.detection.tolerance.nanos() / 2);
    let index = nearest_class(classes, base)
        .filter(|index| distance_to(&classes[*index], base) <= max_distance)?;
    u16::try_from(index).ok()
}

/// Distance of a base latency from a class's range.
pub(crate) fn distance_to(class: &Class, base: Span) -> Span {
    let (below, above) = (class.range.0 - base, base - class.range.1);
    below.max(above).max(Span::ZERO)
}

/// Counts the changes from class to class.
pub(crate) fn count_moves(classes: &mut [Class], changes: &[&PathChange]) {
    for change in changes {
        // A change within a class does not count.
        let (from, to) = (
            nearest_class(classes, change.before),
            nearest_class(classes, change.after),
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

/// Counts the sent and lost messages at each class's latencies.
pub(crate) fn count_lost(classes: &mut [Class], loss_by_base: &LossByBase, settings: &Settings) {
    for (base, outcome_counts) in loss_by_base.iter_cells(settings) {
        let index = class_at(classes, base, settings);
        if let Some(class) = index.and_then(|index| classes.get_mut(usize::from(index))) {
            class.sent += outcome_counts.sent;
            class.lost += outcome_counts.lost;
        }
    }
}

/// The class at or nearest to a base latency: a change has the latency as it was known at the time.
pub(crate) fn nearest_class(classes: &[Class], base: Span) -> Option<usize> {
    let nearest_class = classes
        .iter()
        .enumerate()
        .min_by_key(|(_, class)| (distance_to(class, base), (class.base - base).nanos().abs()));
    nearest_class.map(|(index, _)| index)
}

/// Changes away from each class against its share of time. Changes in one bin form a group: one event moves
/// many flows. `observable_time` is the time in which changes were observable.
pub(crate) fn class_moves(
    classes: &[Class],
    changes: &[&PathChange],
    observable_time: Span,
    observed_time: &ObservedTime<'_>,
    time_grid: TimeGrid,
) -> Vec<ClassMoves> {
    let mut moves: Vec<Groups> = classes.iter().map(|_| Groups::default()).collect();
    let mut moves_from_class = vec![0.0; classes.len()];
    for change in changes {
        let from = nearest_class(classes, change.before);
        if from == nearest_class(classes, change.after) {
            continue;
        }
        let group = (change.at - time_grid.from).nanos();
        let group = group.div_euclid(time_grid.bin.nanos().max(1));
        for (index, groups) in moves.iter_mut().enumerate() {
            groups.add(group, from == Some(index));
        }
        let counter = from.and_then(|index| moves_from_class.get_mut(index));
        if let Some(counter) = counter.filter(|_| observed_time.is_observed(change)) {
            *counter += 1.0;
        }
    }
    let hours = observable_time.secs_f64() / 3600.0;
    let to_moves = |(index, class): (usize, &Class)| {
        let moves_from_class: f64 = moves_from_class[index];
        let time = hours * class.share;
        ClassMoves {
            class: u16::try_from(index).unwrap_or(u16::MAX),
            share: class.share,
            moved: moves[index].share(),
            per_flow_hour: if time > 0.0 {
                moves_from_class / time
            } else {
                0.0
            },
        }
    };
    classes.iter().enumerate().map(to_moves).collect()
}

/// Number of flows in each class at their end, of those that continued until `recent`.
pub(crate) fn count_flows(
    classes: &mut [Class],
    flows: &[&FlowHistory],
    recent: neph_model::Instant<neph_model::Local>,
) {
    let mut last_classes: BTreeMap<Slot, Option<u16>> = BTreeMap::new();
    for flow in flows {
        let segment = flow
            .segments
            .last()
            .filter(|segment| segment.until >= recent);
        if let Some(segment) = segment {
            last_classes.insert(flow.slot, segment.class);
        }
    }
    for class in last_classes.into_values().flatten() {
        if let Some(class) = classes.get_mut(usize::from(class)) {
            class.flows += 1;
        }
    }
}

#[cfg(test)]
mod tests;
