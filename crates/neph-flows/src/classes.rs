//! Latency classes: base latencies that lie together, so probably a path.
//!
//! Base latencies are put in order and cut wherever two neighbours lie further apart than the
//! detector tells apart. Levels that are nearer to each other are one class: nothing that this
//! measures could tell them apart.

use std::collections::BTreeMap;

use neph_model::{Lane, Span};

use crate::pair::Moved;
use crate::settings::Settings;
use crate::share::share;
use crate::view::{Class, FlowHistory, PathChange};

/// Less than this share of all flows' time makes no class: a level that one flow had for a moment.
const LEAST_SHARE: f64 = 0.0005;
/// Nor does less than one flow in this many have it, at any time.
const CELLS: i64 = 16;

/// Time at base latencies: what flows spent at each, by cells of base latency.
#[derive(Debug, Default, Clone, Copy)]
struct Cell {
    nanos: i128,
    weighted: i128,
    lowest: i64,
    highest: i64,
}

impl Cell {
    fn add(&mut self, base: i64, nanos: i64) {
        if self.nanos == 0 {
            (self.lowest, self.highest) = (base, base);
        }
        // A segment that has only begun counts too, so that its class is there.
        let nanos = i128::from(nanos.max(1));
        self.nanos += nanos;
        self.weighted += nanos * i128::from(base);
        self.lowest = self.lowest.min(base);
        self.highest = self.highest.max(base);
    }

    fn mean(&self) -> i64 {
        i64::try_from(self.weighted / self.nanos.max(1)).unwrap_or(i64::MAX)
    }
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
    let cells: Vec<Cell> = cells.into_values().collect();
    let whole: i128 = cells.iter().map(|cell| cell.nanos).sum();
    let groups = cells.chunk_by(|one, next| next.lowest - one.highest <= tolerance);
    let classes = groups.map(|group| class_of(group, whole));
    classes.filter(|class| class.share >= LEAST_SHARE).collect()
}

fn class_of(group: &[Cell], whole: i128) -> Class {
    let nanos: i128 = group.iter().map(|cell| cell.nanos).sum();
    let mut below = 0;
    let middle = group.iter().find(|cell| {
        below += cell.nanos;
        2 * below >= nanos
    });
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = nanos as f64 / whole.max(1) as f64;
    let ends = (group.first(), group.last());
    Class {
        base: Span::from_nanos(middle.map_or(0, Cell::mean)),
        range: (
            Span::from_nanos(ends.0.map_or(0, |cell| cell.lowest)),
            Span::from_nanos(ends.1.map_or(0, |cell| cell.highest)),
        ),
        share,
        left: 0,
        joined: 0,
        flows: 0,
    }
}

/// The index of the class that a base latency belongs to.
pub(crate) fn class_at(classes: &[Class], base: Span) -> Option<u16> {
    let next = classes.partition_point(|class| class.range.1 < base);
    let class = classes.get(next)?;
    (class.range.0 <= base).then(|| u16::try_from(next).unwrap_or(u16::MAX))
}

/// Which change belongs to which flow: the flows of a lane that hold a moment.
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

/// The class that a base latency is in or next to: a change tells it as it was known at the time.
pub(crate) fn nearest(classes: &[Class], base: Span) -> Option<usize> {
    let away = |class: &Class| {
        let below = class.range.0 - base;
        let above = base - class.range.1;
        below.max(above).max(Span::ZERO)
    };
    let nearest = classes
        .iter()
        .enumerate()
        .min_by_key(|(_, class)| away(class));
    nearest.map(|(index, _)| index)
}

/// Moves away from each class against its share of time.
pub(crate) fn moved(classes: &[Class], watched: Span) -> Vec<Moved> {
    let all: u64 = classes.iter().map(|class| class.left).sum();
    let hours = watched.secs_f64() / 3600.0;
    let of = |(index, class): (usize, &Class)| {
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let left = class.left as f64;
        let time = hours * class.share;
        Moved {
            class: u16::try_from(index).unwrap_or(u16::MAX),
            share: class.share,
            moved: share(class.left, all),
            per_flow_hour: if time > 0.0 { left / time } else { 0.0 },
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
