//! Detects clock steps below the room between the delays: no line contradicts them, but both directions show
//! them.
//!
//! Owns the criteria. If the peer's clock is set forward by 10 ms, messages to the peer seem 10 ms later and
//! messages from it 10 ms earlier. So limits from above and from below move equally, and the room between
//! them stays. A queue or another path moves one of them, or both in opposite directions. A rate moves both,
//! but as much before and after.

use super::{OffsetLimit, OffsetLimits};
use crate::casts::nanos_to_f64;

const MILLI: i64 = 1_000_000;
/// Length of each window, in nanoseconds, represented by its tightest limit. Long ones are for infrequent
/// messages.
const WINDOW_LENGTHS_NS: [i64; 4] = [250 * MILLI, 1_000 * MILLI, 4_000 * MILLI, 16_000 * MILLI];
/// This many windows before a step, and after it, must be level.
const WINDOWS_PER_SIDE: usize = 4;
/// Beginnings of windows, in halves of a window from the moment. The half on each side of it is excluded: it
/// may contain the step.
const WINDOW_STARTS: [i32; 2 * WINDOWS_PER_SIDE] = [-9, -7, -5, -3, 1, 3, 5, 7];
/// Limits of each kind in a window, at least.
const MIN_LIMITS: usize = 2;
/// Least ratio of a step to the difference between the windows of a side, or between the directions. With 4,
/// tests with 20 hours of skewed delays detect none.
const MIN_RATIO: f64 = 4.0;
/// A step shows within this many messages, or a sixteenth of a window.
const MAX_STEP_MESSAGES: i64 = 3;
/// Smaller steps are ignored: hosts differ by as much from one second to the next.
const MIN_STEP_NS: f64 = 50_000.0;
/// Steps below this part of the room between the directions, which is the bound, are ignored too.
const MIN_STEP_PART: f64 = 1.0 / 64.0;

/// A clock was set between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockSet {
    /// Exchanges that began until here had ended before.
    pub(super) until: i64,
    /// Exchanges that began from here on began after it.
    pub(super) from: i64,
}

/// Where the clock of these limits was set, in order.
pub(super) fn find_clock_sets(limits: OffsetLimits<'_>) -> Vec<ClockSet> {
    let mut sets: Vec<ClockSet> = Vec::new();
    for look in WINDOW_LENGTHS_NS {
        let known = sets.clone();
        let is_new = |moved: &ClockSet| {
            let near = |other: &ClockSet| {
                other.from >= moved.until.saturating_sub(reach(look))
                    && other.until <= moved.from.saturating_add(reach(look))
            };
            !known.iter().any(near)
        };
        sets.extend(find_with_window(limits, look).into_iter().filter(is_new));
    }
    sets.sort_by_key(|moved| moved.until);
    sets
}

/// The distance to each side of a moment that windows cover.
const fn reach(look: i64) -> i64 {
    look / 2 * 9
}

/// The steps that windows of one length show; of overlapping ones the clearest.
fn find_with_window(limits: OffsetLimits<'_>, look: i64) -> Vec<ClockSet> {
    let both = [limits.at_most, limits.at_least];
    let (Some(first), Some(last)) = (
        both.iter().filter_map(|of| of.first()).map(|l| l.at).min(),
        both.iter().filter_map(|of| of.last()).map(|l| l.at).max(),
    ) else {
        return Vec::new();
    };
    let mut clearest: Vec<Jump> = Vec::new();
    let mut moment = first.saturating_add(reach(look));
    while moment <= last.saturating_sub(reach(look)) {
        if let Some(jump) = Jump::at(limits, moment, look) {
            match clearest.last_mut() {
                Some(other) if jump.moment - other.moment < reach(look) => {
                    if jump.ratio > other.ratio {
                        *other = jump;
                    }
                }
                _ => clearest.push(jump),
            }
        }
        let Some(next) = next_look(limits.at_most, moment, look) else {
            break;
        };
        moment = next;
    }
    let moved = clearest.iter().filter_map(|jump| jump.when(limits, look));
    moved.collect()
}

/// The next moment whose first window has a limit, at least half a window after the last one: long gaps take
/// no time. `None` after the last limit.
fn next_look(of: &[OffsetLimit], moment: i64, look: i64) -> Option<i64> {
    let next = moment.saturating_add(look / 2);
    let begin = next.saturating_sub(reach(look));
    let following = of.get(of.partition_point(|limit| limit.at < begin))?.at;
    let late = following.saturating_sub(begin.saturating_add(look));
    if late < 0 {
        return Some(next);
    }
    next.checked_add((late / (look / 2) + 1).checked_mul(look / 2)?)
}

/// A step: both directions are level before a moment and after it, and moved equally in between.
#[derive(Debug, Clone, Copy)]
struct Jump {
    moment: i64,
    /// Of limits from above and from below: the level after it, minus `by` the one before.
    behind: [f64; 2],
    by: f64,
    /// The assumed rate, which is removed from offsets before they are compared.
    rate: f64,
    origin: i64,
    /// The ratio of the step to other differences.
    ratio: f64,
}

impl Jump {
    fn at(limits: OffsetLimits<'_>, moment: i64, look: i64) -> Option<Self> {
        let origin = limits.at_most.first()?.offset;
        let above = looks(limits.at_most, moment, look, |offset| {
            nanos_to_f64(offset.saturating_sub(origin))
        })?;
        let below = looks(limits.at_least, moment, look, |offset| {
            -nanos_to_f64(offset.saturating_sub(origin))
        })?;
        let mut directions = [above, below.map(|offset| -offset)];
        let per_look = median_change(&directions);
        for looks in &mut directions {
            for (offset, begin) in looks.iter_mut().zip(WINDOW_STARTS) {
                *offset -= per_look * f64::from(begin + 1) / 2.0;
            }
        }
        let [above, below] = directions.map(|looks| Levels::of(&looks));
        let moved = [above.behind - above.before, below.behind - below.before];
        let by = f64::midpoint(moved[0], moved[1]);
        let room = (above.before - below.before).max(above.behind - below.behind);
        let unlike = (moved[0] - moved[1]).abs();
        let noise = above.spread.max(below.spread).max(2.0 * unlike);
        let min_step = MIN_STEP_NS.max(room * MIN_STEP_PART).max(MIN_RATIO * noise);
        (by.abs() >= min_step).then(|| Self {
            moment,
            behind: [above.behind, below.behind],
            by,
            rate: per_look / nanos_to_f64(look),
            origin,
            ratio: by.abs() / noise.max(1.0),
        })
    }

    /// When: after the last limit that is only possible before it, and before the first one only possible
    /// after it. `None` where these contradict each other: it was no step.
    fn when(&self, limits: OffsetLimits<'_>, look: i64) -> Option<ClockSet> {
        let near = |of| {
            let (from, until) = (self.moment - look * 3 / 2, self.moment + look * 3 / 2);
            between(of, from, until).iter()
        };
        let half = self.by / 2.0;
        let is_low = |limit: &&OffsetLimit| self.level(limit) < self.behind[0] - half;
        let is_high = |limit: &&OffsetLimit| self.level(limit) > self.behind[1] - half;
        let (mut low, mut high) = (near(limits.at_most), near(limits.at_least));
        // Set forward: limits from above are that low only before it, those from below that high only after
        // it. Set back: the reverse.
        let (before, behind) = if self.by > 0.0 {
            (low.rfind(is_low)?, high.find(is_high)?)
        } else {
            (high.rfind(is_high)?, low.find(is_low)?)
        };
        let set_until = behind.at.saturating_add(behind.within);
        let set_from = before.at.min(behind.at);
        // A clock is set at once. A slower change, over several messages, was a change of both paths.
        let query = between(
            limits.at_most,
            self.moment - reach(look),
            self.moment + reach(look),
        );
        let apart = 2 * reach(look) / i64::try_from(query.len().max(1)).ok()?;
        let at_once = before.within + behind.within + (MAX_STEP_MESSAGES * apart).max(look / 16);
        (0..=at_once)
            .contains(&(set_until - before.at))
            .then(|| ClockSet {
                until: set_from.saturating_sub(before.within),
                from: set_until,
            })
    }

    fn level(&self, limit: &OffsetLimit) -> f64 {
        let offset = nanos_to_f64(limit.offset.saturating_sub(self.origin));
        offset - self.rate * nanos_to_f64(limit.at - self.moment)
    }
}

/// The level of one direction before a moment and after it, in nanoseconds.
struct Levels {
    before: f64,
    behind: f64,
    /// Largest difference between the windows of a side.
    spread: f64,
}

impl Levels {
    fn of(looks: &[f64; 2 * WINDOWS_PER_SIDE]) -> Self {
        let (before, behind) = looks.split_at(WINDOWS_PER_SIDE);
        let level = |side: &[f64]| -> (f64, f64) {
            let mut side = side.to_vec();
            side.sort_by(f64::total_cmp);
            let middle = f64::midpoint(side[WINDOWS_PER_SIDE / 2 - 1], side[WINDOWS_PER_SIDE / 2]);
            (middle, side[WINDOWS_PER_SIDE - 1] - side[0])
        };
        let ((before, spread_before), (behind, spread_behind)) = (level(before), level(behind));
        Self {
            before,
            behind,
            spread: spread_before.max(spread_behind),
        }
    }
}

/// The least, which is the tightest, limit of each window. `None` where one has too few limits.
fn looks(
    of: &[OffsetLimit],
    moment: i64,
    look: i64,
    offset: impl Fn(i64) -> f64,
) -> Option<[f64; 2 * WINDOWS_PER_SIDE]> {
    let mut tightest = [0.0; 2 * WINDOWS_PER_SIDE];
    for (begin, tightest) in WINDOW_STARTS.into_iter().zip(&mut tightest) {
        let from = moment.saturating_add(i64::from(begin) * (look / 2));
        let limits = between(of, from, from.saturating_add(look));
        if limits.len() < MIN_LIMITS {
            return None;
        }
        let offsets = limits.iter().map(|limit| offset(limit.offset));
        *tightest = offsets.fold(f64::INFINITY, f64::min);
    }
    Some(tightest)
}

/// Median change between consecutive windows of a side, over both directions: the effect of a rate.
fn median_change(directions: &[[f64; 2 * WINDOWS_PER_SIDE]; 2]) -> f64 {
    let sides = directions
        .iter()
        .flat_map(|looks| looks.chunks(WINDOWS_PER_SIDE));
    let mut changes: Vec<f64> = sides
        .flat_map(|side| side.windows(2).map(|pair| pair[1] - pair[0]))
        .collect();
    changes.sort_by(f64::total_cmp);
    let middle = changes.len() / 2;
    f64::midpoint(changes[middle - 1], changes[middle])
}

fn between(of: &[OffsetLimit], from: i64, until: i64) -> &[OffsetLimit] {
    let start = of.partition_point(|limit| limit.at < from);
    let end = of.partition_point(|limit| limit.at < until);
    of.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
