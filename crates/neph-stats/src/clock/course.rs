//! The peer's clock against the local one over hours: first the steps, then the offset at any moment between.
//!
//! Owns where a clock was set. Limits before and after a step must not be in one fit: a step back of 3 s
//! would make every earlier limit from below wrong.

use super::clock_sets::find_clock_sets;
use super::corners::Corners;
use super::{ClockFit, ClockNature, OffsetLimit, OffsetLimits};
use crate::error::StatsError;

/// An interval in which one of the clocks was set, whatever the limits show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockCut {
    /// Exchanges that began until here had ended before, in nanoseconds of the local clock.
    pub until: i64,
    /// Exchanges that began from here on began after it.
    pub from: i64,
}

/// Limits in parts between which a clock was set.
#[derive(Debug, Clone)]
pub struct ClockCourse<'a> {
    pub(super) nature: ClockNature,
    pub(super) parts: Vec<Part<'a>>,
}

/// Limits between which no step was detected.
#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    pub(super) from: i64,
    pub(super) until: i64,
    pub(super) limits: OffsetLimits<'a>,
    corners: Corners<'a>,
}

/// Detects where a clock was set. A step larger than the room between the delays contradicts the limits
/// before it. A smaller one is detected if both directions have levels before and after it for as long as
/// `find_clock_sets` requires. An undetected one is covered by the bound of [`ClockCourse::at`].
///
/// # Errors
/// Those of [`clock_fit`](super::clock_fit); [`StatsError::NotAscending`] with the place.
pub fn clock_course(
    limits: OffsetLimits<'_>,
    nature: ClockNature,
) -> Result<ClockCourse<'_>, StatsError> {
    clock_course_between(limits, &[], nature)
}

/// The same, with known intervals in which a clock was set: `cuts`, ascending.
///
/// # Errors
/// Those of [`clock_course`].
pub fn clock_course_between<'a>(
    limits: OffsetLimits<'a>,
    cuts: &[ClockCut],
    nature: ClockNature,
) -> Result<ClockCourse<'a>, StatsError> {
    super::refuse_unnatural(nature)?;
    refuse_disorder("limits from above", limits.at_most)?;
    refuse_disorder("limits from below", limits.at_least)?;
    let mut parts = Vec::new();
    let mut from = i64::MIN;
    let end = ClockCut {
        until: i64::MAX,
        from: i64::MAX,
    };
    for cut in cuts.iter().chain([&end]) {
        let limits = limits.between(from, cut.until);
        Agreement { limits, nature }.parts(&mut parts);
        from = from.max(cut.from);
    }
    Ok(ClockCourse { nature, parts })
}

impl ClockCourse<'_> {
    /// The offset at a moment. Its bound, in nanoseconds, is valid even if a clock was set once within the
    /// horizon and no limit contradicts it. It does not cover a step within about 20 messages, or 1 s, of the
    /// first or last message or of a detected step. It covers no second undetected step within the horizon,
    /// and no queue of the same size that begins or ends with the step.
    ///
    /// `None` where the part has no messages in both directions within the horizon: in the middle of a step,
    /// or in a gap.
    pub fn at(&self, moment: i64) -> Option<ClockFit> {
        let part = self.part(moment)?;
        let fit = |back| {
            let corners = part.corners.limits();
            (part.limits).fit_despite_step(corners, (moment, back), self.nature)
        };
        fit(self.back(part)).or_else(|| fit(i64::MAX))
    }

    /// The largest step that may hide between two moments, in nanoseconds, by the evidence of
    /// [`ClockCourse::at`]. It is a small part of the round trip where one direction shows no change. `None`
    /// where a step of any size may hide, and where one was detected.
    pub fn hidden_step(&self, from: i64, until: i64) -> Option<i64> {
        let part = self.part(from)?;
        if self.part(until).is_none_or(|end| end.from != part.from) {
            return None;
        }
        let corners = part.corners.limits();
        (part.limits).hidden_step(corners, (from, until), self.nature)
    }

    /// The last return of replies that are certainly of this part's clock: the peer may have read later ones
    /// after the step that ends the part.
    pub(super) fn back(&self, part: &Part<'_>) -> i64 {
        let is_set = self.parts.last().is_some_and(|last| last.from > part.until);
        if is_set { part.until } else { i64::MAX }
    }

    /// The same with the likeliest offset and rate instead of the middles, and their bounds. A single late
    /// message changes none of them.
    pub fn likeliest_at(&self, moment: i64) -> Option<ClockFit> {
        let fit = self.at(moment)?;
        let horizon = self.nature.horizon;
        let near = self.part(moment)?.limits.between(
            moment.saturating_sub(horizon),
            moment.saturating_add(horizon),
        );
        Some(near.likeliest(fit, self.nature))
    }

    fn part(&self, moment: i64) -> Option<&Part<'_>> {
        let setting = |earlier: &Part<'_>, later: &Part<'_>| {
            earlier.until < moment && moment < later.from.saturating_add(later.first_duration())
        };
        let mut pairs = self.parts.windows(2);
        if pairs.any(|pair| setting(&pair[0], &pair[1])) {
            return None;
        }
        let part = self.parts.iter().rfind(|part| part.from <= moment);
        part.or_else(|| self.parts.first())
    }
}

impl<'a> Part<'a> {
    fn new((from, until): (i64, i64), limits: OffsetLimits<'a>, nature: ClockNature) -> Self {
        let limits = limits.between(from, until);
        Self {
            from,
            until,
            limits,
            corners: Corners::of(limits, nature),
        }
    }

    /// The earliest return of its messages, which need not be that of the first message.
    pub(super) fn first_back(&self) -> i64 {
        let back = |limits: &[OffsetLimit]| {
            let mut first = i64::MAX;
            for limit in limits {
                if limit.at >= first {
                    break;
                }
                first = first.min(limit.at.saturating_add(limit.within));
            }
            first
        };
        let first_returns = [self.limits.at_most, self.limits.at_least].map(back);
        let first = first_returns[0].min(first_returns[1]);
        if first == i64::MAX { self.from } else { first }
    }

    /// The duration of its first exchange.
    fn first_duration(&self) -> i64 {
        let first_limits = [self.limits.at_most.first(), self.limits.at_least.first()];
        let first = first_limits
            .into_iter()
            .flatten()
            .min_by_key(|limit| limit.at);
        first.map_or(0, |limit| limit.within)
    }
}

struct Agreement<'a> {
    limits: OffsetLimits<'a>,
    nature: ClockNature,
}

impl<'a> Agreement<'a> {
    /// Splits the limits into parts of one clock each.
    fn parts(&self, parts: &mut Vec<Part<'a>>) {
        let moments = moments(self.limits);
        let mut remaining = &moments[..];
        while let Some(&from) = remaining.first() {
            let length = self.longest(remaining);
            let (part, after) = remaining.split_at(length);
            let until = match after.first() {
                None => part.last().copied().unwrap_or(from),
                Some(&next) => self.last_certain_before(part, next),
            };
            self.split((from, until), parts);
            remaining = after;
        }
    }

    /// Splits where the clock was set by too little for a contradiction.
    fn split(&self, (from, until): (i64, i64), parts: &mut Vec<Part<'a>>) {
        let limits = self.limits.between(from, until);
        let mut begin = from;
        for clock_set in find_clock_sets(limits) {
            let time = (begin, clock_set.until.max(begin));
            parts.push(Part::new(time, limits, self.nature));
            begin = clock_set.from;
        }
        parts.push(Part::new((begin, until), limits, self.nature));
    }

    /// How many of these moments, at least one, can be of one clock.
    fn longest(&self, moments: &[i64]) -> usize {
        // A limit is used one horizon far. So windows of that length, each beginning in the middle of the one
        // before, compare every pair of limits that must agree.
        let mut start = 0;
        loop {
            let from = moments[start];
            let until = from.saturating_add(self.nature.horizon);
            let end = moments.partition_point(|&at| at <= until);
            if !self.is_one_clock(from, moments[end - 1]) {
                let good = |count: usize| self.is_one_clock(from, moments[start + count - 1]);
                return start + bisect(end - start, good).max(1);
            }
            if end == moments.len() || self.is_set_in_silence(&moments[..end], moments[end]) {
                return end;
            }
            let middle = from.saturating_add(self.nature.horizon / 2);
            let next = moments.partition_point(|&at| at < middle);
            start = next.clamp(start + 1, end);
        }
    }

    /// Whether there is a long gap between `before` and `next`, so that no window has enough limits of both
    /// sides, and no clock drifts as far as they differ.
    fn is_set_in_silence(&self, before: &[i64], next: i64) -> bool {
        let Some((first, last)) = before.first().zip(before.last()) else {
            return false;
        };
        let side = self.nature.horizon / 2;
        if next.saturating_sub(*last) <= side / 2 {
            return false;
        }
        let from = last.saturating_sub(side).max(*first);
        let until = self.agreeing_until(next, next.saturating_add(side));
        !self.is_one_clock(from, until)
    }

    /// The last moment of `part` that cannot be of the clock of `next`: later ones agree with both sides of
    /// the step.
    fn last_certain_before(&self, part: &[i64], next: i64) -> i64 {
        let near = next.saturating_sub(self.nature.horizon / 2);
        let far = next.saturating_add(self.nature.horizon / 2);
        let until = self.agreeing_until(next, far);
        let start = part.partition_point(|&at| at < near);
        let near = part.get(start..).unwrap_or_default();
        let good = |count: usize| self.is_one_clock(near[near.len() - count], until);
        let shared = bisect(near.len() + 1, good);
        // If all near moments may be of the other side, those further away are not.
        let certain_count = start + near.len().saturating_sub(shared);
        let last = part.get(certain_count.saturating_sub(1));
        last.copied().unwrap_or(next)
    }

    /// The last moment up to `far` that agrees with the limits after `from`: another step may be near.
    fn agreeing_until(&self, from: i64, far: i64) -> i64 {
        let after = moments(self.limits.between(from, far));
        let good = |count: usize| self.is_one_clock(from, after[count - 1]);
        match bisect(after.len() + 1, good).checked_sub(1) {
            Some(last) => after.get(last).copied().unwrap_or(from),
            None => from,
        }
    }

    fn is_one_clock(&self, from: i64, until: i64) -> bool {
        let middle = from.midpoint(until);
        let near = self.limits.between(from, until);
        // Limits of one kind alone cannot contradict each other.
        near.fit(middle, self.nature)
            .map_or(true, |fit| fit.is_some())
    }
}

/// The largest good count below `bad`, where every count above a bad one is bad.
fn bisect(bad: usize, good: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, bad);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if good(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The moments of all limits, ascending, each once.
fn moments(limits: OffsetLimits<'_>) -> Vec<i64> {
    let limits_of_both = limits.at_most.iter().chain(limits.at_least);
    let mut moments: Vec<i64> = limits_of_both.map(|limit| limit.at).collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}

fn refuse_disorder(subject: &'static str, limits: &[OffsetLimit]) -> Result<(), StatsError> {
    let falls = limits.windows(2).position(|pair| pair[1].at < pair[0].at);
    match falls {
        None => Ok(()),
        Some(index) => Err(StatsError::NotAscending {
            subject,
            index: index + 1,
        }),
    }
}
