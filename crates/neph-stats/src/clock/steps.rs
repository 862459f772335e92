//! By how much a clock was set, and when: from what is known of it before and behind.
//!
//! Owns the size of a step and which steps are one. Where a clock was set is [`course`](super::course)'s.

use super::ClockFit;
use super::course::{ClockCourse, Part};
use crate::real::{nanos, real_nanos};

/// A clock was set: the limits before and after are not of one clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockStep {
    /// Not before this moment: the last limit that agrees with all before it but not with those
    /// that follow, in nanoseconds of our clock.
    pub after: i64,
    /// Not after this moment: the first message that shows the clock as it was set had come back.
    pub before: i64,
    /// By how much the peer's clock jumped forward against ours, in nanoseconds.
    pub by: i64,
    /// How far `by` may be wrong either way, in nanoseconds.
    pub bound: i64,
}

impl ClockCourse<'_> {
    /// Where a clock was set, in order. Where packets from before a step and from behind it carry the same
    /// times, as behind a clock that was set back by little, each change between the two looks like a step:
    /// steps whose times overlap are one, if the offset behind them differs from the one before.
    pub fn steps(&self) -> Vec<ClockStep> {
        // A part that speaks one way only lies within a step: what was under way meanwhile.
        let known = self.parts.iter();
        let known: Vec<&Part<'_>> = known
            .filter(|part| self.fit_near(part, [part.from, part.until]).is_some())
            .collect();
        let pairs = known.iter().zip(known.iter().skip(1));
        let found = pairs.filter_map(|(left, right)| {
            Some(Found {
                after: left.until,
                before: right.first_back(),
                left: self.fit_near(left, [right.from, left.until])?,
                right: self.fit_near(right, [right.from, right.until])?,
            })
        });
        let mut steps = Vec::new();
        for group in overlapping(found) {
            match Found::as_one(&group).map(|one| one.step()) {
                Some(one) if one.by.saturating_abs() > one.bound => steps.push(one),
                _ => steps.extend(group.iter().map(Found::step)),
            }
        }
        steps
    }

    /// What a part proves of the first of two moments, else of the second.
    fn fit_near(&self, part: &Part<'_>, moments: [i64; 2]) -> Option<ClockFit> {
        let back = self.back(part);
        let fit = |at| part.limits.fit_of_back((at, back), self.nature);
        moments.into_iter().find_map(fit)
    }
}

/// In groups of which each member begins before one of those before it has ended: a reply that overtook others,
/// or was overtaken, may show a step before it and one behind it within the time of the only one.
fn overlapping(found: impl Iterator<Item = Found>) -> Vec<Vec<Found>> {
    let mut groups: Vec<Vec<Found>> = Vec::new();
    let mut before = i64::MIN;
    for one in found {
        match groups.last_mut() {
            Some(group) if one.after < before => group.push(one),
            _ => {
                before = i64::MIN;
                groups.push(vec![one]);
            }
        }
        before = before.max(one.before);
    }
    groups
}

/// A step, and what is known of the clock before it and behind it.
#[derive(Debug, Clone, Copy)]
struct Found {
    after: i64,
    before: i64,
    left: ClockFit,
    right: ClockFit,
}

impl Found {
    /// From what is before the first of them to what is behind the last.
    fn as_one(steps: &[Self]) -> Option<Self> {
        let (first, last) = steps.first().zip(steps.last())?;
        Some(Self {
            after: first.after,
            before: last.before,
            left: first.left,
            right: last.right,
        })
    }

    fn step(&self) -> ClockStep {
        let by = self.right.offset.saturating_sub(self.left.offset);
        // Nothing spoke in between: the clocks drift meanwhile. Where our clock was set forward, the silence
        // is shorter than it shows, and the peer's clock shows how long it was.
        let silence = self.right.at.saturating_sub(self.left.at);
        let by_theirs = silence.saturating_add(by);
        let is_shorter = (0..silence).contains(&by_theirs);
        let silence = if is_shorter { by_theirs } else { silence };
        ClockStep {
            after: self.after,
            before: self.before,
            by,
            bound: (self.right.bound)
                .saturating_add(self.left.bound)
                .saturating_add(drifted(&self.left, silence)),
        }
    }
}

/// How far the clocks of a fit may drift in so many nanoseconds.
fn drifted(fit: &ClockFit, silence: i64) -> i64 {
    nanos(((fit.rate.abs() + fit.rate_bound) * real_nanos(silence)).ceil())
}
