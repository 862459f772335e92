//! When no clock can have been set: one direction shows the same level before and after.
//!
//! Owns that exclusion. A step moves the limits of both directions equally. Where one direction stays level,
//! a queue or a path change must have cancelled the step in that direction. The bound does not cover that
//! coincidence. Where both directions change their levels, or show none, a step may hide.

use super::{OffsetLimit, OffsetLimits};
use crate::casts::{nanos_to_f64, usize_to_f64};

/// Levels are compared between windows of this many cells. A cell on each side of a moment is excluded, since
/// the clock may be set in its middle.
const WINDOW_CELLS: usize = 4;
/// From the window that ends a cell before a moment to the one that begins a cell after it.
const CELL_DISTANCE: usize = WINDOW_CELLS + 2;
/// A window has a level if this many cells show it: with variable queues none does.
const MIN_LEVEL_CELLS: usize = 3;
/// Numbers of cells in a horizon. With the default horizon, windows are from 32 s down to half a second.
const CELL_COUNTS: [i64; 7] = [12, 25, 50, 100, 200, 400, 800];
/// Near the ends, this many limits are excluded if the cells leave nothing to examine.
const MAX_EXCLUDED_LIMITS: usize = 8;

/// The time to examine.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlatQuery {
    /// The moment in the middle, and an offset near to all others.
    pub(super) origin: OffsetLimit,
    /// The distance to each side, in nanoseconds.
    pub(super) horizon: i64,
    /// About how much faster the peer's clock runs, as a fraction.
    pub(super) rate: f64,
    /// Whether these have the first limits between two detected steps, and the last.
    pub(super) ends: [bool; 2],
}

impl FlatQuery {
    /// Offsets without the rate; those from below turned upside down by a sign of -1.
    fn levels(&self, of: &[OffsetLimit], sign: f64) -> Vec<f64> {
        let offsets = of.iter().map(|limit| limit.seen_from(self.origin));
        offsets.map(|(x, y)| sign * (y - self.rate * x)).collect()
    }
}

/// A time in which no clock was set, in nanoseconds of the local clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepFreeTime {
    pub(super) from: i64,
    pub(super) until: i64,
}

/// Levels of both directions over time, with the longest windows first.
pub(super) struct LevelScales {
    query: FlatQuery,
    scales: Vec<Levels>,
    /// Change of the offset beyond the given rate, as a fraction.
    rate: f64,
    /// The times of the first few limits of each kind, and of the last few.
    few: (i64, i64),
}

impl LevelScales {
    pub(super) fn at(limits: OffsetLimits<'_>, query: FlatQuery) -> Self {
        let usable = CELL_COUNTS
            .into_iter()
            .filter(|cells| limits.fill(&query, *cells));
        let offsets = [(limits.at_most, 1.0), (limits.at_least, -1.0)];
        let offsets = offsets.map(|(of, sign)| query.levels(of, sign));
        let scales: Vec<Levels> = usable
            .map(|cells| Levels::of(limits, &query, cells, &offsets))
            .collect();
        Self {
            query,
            rate: scales.first().map_or(0.0, Levels::rate),
            scales,
            few: limits.few(),
        }
    }

    /// The longest time around the moment in which no clock can have been set by more than the least step, in
    /// nanoseconds. It is empty where one may have been set right there.
    pub(super) fn step_free(&self, least_step: f64) -> StepFreeTime {
        let mut step_free = TimeMarks::new(&self.query);
        // Nothing is excluded before the first examined place, or after the last.
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for side in 0..2 {
            let mut changed = TimeMarks::new(&self.query);
            for levels in &self.scales {
                let mut change_times = Vec::new();
                for (time, level) in levels.edges(side, self.rate, least_step) {
                    first = first.min(time.until);
                    last = last.max(time.from);
                    match level {
                        // A queue of the step's size hides it only while the queue lasts.
                        EdgeLevel::Level if !changed.has_any(time) => step_free.mark(time),
                        EdgeLevel::Change => change_times.push(time),
                        _ => {}
                    }
                }
                for time in change_times {
                    changed.mark(time);
                }
            }
        }
        if first > last {
            (first, last) = self.few;
        }
        let [is_first, is_last] = self.query.ends;
        let open = StepFreeTime {
            from: if is_last { last } else { i64::MAX },
            until: if is_first { first } else { i64::MIN },
        };
        step_free.around(self.query.origin.at, open)
    }
}

/// Marks for parts of the time.
struct TimeMarks {
    begin: i64,
    slot: i64,
    marked: Vec<bool>,
}

impl TimeMarks {
    fn new(query: &FlatQuery) -> Self {
        let slot = (query.horizon / (2 * CELL_COUNTS[CELL_COUNTS.len() - 1])).max(1);
        let count = usize::try_from(2 * query.horizon / slot + 1).unwrap_or(0);
        Self {
            begin: query.origin.at.saturating_sub(query.horizon),
            slot,
            marked: vec![false; count],
        }
    }

    fn range(&self, time: StepFreeTime) -> std::ops::Range<usize> {
        let index = |at: i64| usize::try_from((at - self.begin) / self.slot).unwrap_or(0);
        let end = self.marked.len();
        index(time.from).min(end)..index(time.until).min(end)
    }

    fn mark(&mut self, time: StepFreeTime) {
        let range = self.range(time);
        self.marked[range].fill(true);
    }

    fn has_any(&self, time: StepFreeTime) -> bool {
        self.marked[self.range(time)].contains(&true)
    }

    /// The marked time around a moment. It continues without limit once it reaches the end of an open time
    /// before it, or the beginning of one after it.
    fn around(&self, at: i64, open: StepFreeTime) -> StepFreeTime {
        let time = |index: usize| {
            let index = i64::try_from(index).unwrap_or(i64::MAX);
            self.begin.saturating_add(index.saturating_mul(self.slot))
        };
        let middle = usize::try_from((at - self.begin) / self.slot).unwrap_or(0);
        let marked = |index: usize| {
            let (from, until) = (time(index), time(index + 1));
            self.marked[index] || until <= open.until || from >= open.from
        };
        let before = (0..=middle).rev().find(|index| !marked(*index));
        let behind = (middle..self.marked.len()).find(|index| !marked(*index));
        StepFreeTime {
            from: before.map_or(i64::MIN, |index| time(index + 1).min(at)),
            until: behind.map_or(i64::MAX, |index| time(index).max(at)),
        }
    }
}

impl OffsetLimits<'_> {
    /// Whether there are at least half as many limits of each kind as cells.
    fn fill(self, query: &FlatQuery, cells: i64) -> bool {
        let cell = (query.horizon / cells).max(1);
        [self.at_most, self.at_least].into_iter().all(|of| {
            let ends = of.first().zip(of.last());
            let long = ends.map_or(0, |(first, last)| last.at - first.at);
            i64::try_from(2 * of.len()).is_ok_and(|count| count >= long / cell)
        })
    }

    /// The times of the first few limits of each kind, and of the last few.
    fn few(self) -> (i64, i64) {
        let kinds = [self.at_most, self.at_least];
        let first = kinds.map(|of| of.get(MAX_EXCLUDED_LIMITS - 1).or_else(|| of.last()));
        let last = kinds.map(|of| {
            of.iter()
                .rev()
                .nth(MAX_EXCLUDED_LIMITS - 1)
                .or_else(|| of.first())
        });
        let first = first.into_iter().flatten().map(|limit| limit.at).max();
        let last = last.into_iter().flatten().map(|limit| limit.at).min();
        (first.unwrap_or(i64::MAX), last.unwrap_or(i64::MIN))
    }
}

/// The level of a direction around a moment.
enum EdgeLevel {
    Level,
    Change,
    Neither,
}

/// The tightest limits of each cell in both directions, without the rate.
struct Levels {
    from: i64,
    cell: i64,
    /// For limits from above, and for those from below turned upside down: the least of each four cells, and
    /// how far above it the settled level is. `None` where too few cells have limits.
    windows: [Vec<Option<(f64, f64)>>; 2],
}

impl Levels {
    fn of(
        limits: OffsetLimits<'_>,
        query: &FlatQuery,
        cells: i64,
        offsets: &[Vec<f64>; 2],
    ) -> Self {
        let cell = (query.horizon / cells).max(1);
        let from = query.origin.at.saturating_sub(query.horizon);
        let windows = |of: &[OffsetLimit], offsets: &[f64]| {
            let mut minima: Vec<f64> = Vec::new();
            let mut end = from;
            for (limit, level) in of.iter().zip(offsets) {
                // Most limits are in the cell of the one before: no division.
                if limit.at >= end {
                    let index = limit.at.saturating_sub(from) / cell;
                    end = from.saturating_add(index.saturating_add(1).saturating_mul(cell));
                    let count = usize::try_from(index).map_or(0, |index| index + 1);
                    minima.resize(count.max(minima.len()), f64::INFINITY);
                }
                // When the peer read its clock must be known to half a cell.
                if limit.within <= cell / 2
                    && let Some(smallest) = minima.last_mut()
                {
                    *smallest = smallest.min(*level);
                }
            }
            minima.windows(WINDOW_CELLS).map(settled).collect()
        };
        Self {
            from,
            cell,
            windows: [
                windows(limits.at_most, &offsets[0]),
                windows(limits.at_least, &offsets[1]),
            ],
        }
    }

    /// The median rate at which the offset changes between windows, as a fraction.
    fn rate(&self) -> f64 {
        let mut changes = Vec::new();
        for (of, sign) in self.windows.iter().zip([1.0, -1.0]) {
            let pairs = of.iter().zip(of.iter().skip(WINDOW_CELLS));
            let differences =
                pairs.filter_map(|(earlier, other)| Some(other.as_ref()?.0 - earlier.as_ref()?.0));
            changes.extend(differences.map(|change| sign * change));
        }
        if changes.is_empty() {
            return 0.0;
        }
        let middle = changes.len() / 2;
        let (_, median, _) = changes.select_nth_unstable_by(middle, f64::total_cmp);
        *median / (usize_to_f64(WINDOW_CELLS) * nanos_to_f64(self.cell))
    }

    /// The level of one direction around each edge of cells that can be examined.
    fn edges(
        &self,
        side: usize,
        rate: f64,
        least_step: f64,
    ) -> impl Iterator<Item = (StepFreeTime, EdgeLevel)> {
        let sign = if side == 0 { 1.0 } else { -1.0 };
        let moved = sign * rate * usize_to_f64(CELL_DISTANCE) * nanos_to_f64(self.cell);
        let of = &self.windows[side];
        let pairs = of.iter().zip(of.iter().skip(CELL_DISTANCE)).enumerate();
        pairs.filter_map(move |(index, (before, behind))| {
            let (before, behind) = before.as_ref().zip(behind.as_ref())?;
            let spread = before.1.max(behind.1);
            let change = (behind.0 - before.0 - moved).abs();
            let level = if change.max(spread) <= least_step {
                EdgeLevel::Level
            } else if change > least_step.max(2.0 * spread) {
                EdgeLevel::Change
            } else {
                EdgeLevel::Neither
            };
            let edge = i64::try_from(index + WINDOW_CELLS + 1).ok()?;
            let edge = self.from + edge * self.cell;
            let time = StepFreeTime {
                from: edge - self.cell / 2,
                until: edge + self.cell / 2,
            };
            Some((time, level))
        })
    }
}

/// The least of some cells, and how far above it enough of them lie.
fn settled(cells: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = [0.0; WINDOW_CELLS];
    sorted.copy_from_slice(cells);
    sorted.sort_by(f64::total_cmp);
    let above = sorted[MIN_LEVEL_CELLS - 1] - sorted[0];
    above.is_finite().then_some((sorted[0], above))
}
