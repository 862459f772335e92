//! Size and time of clock steps, from the fits before and after them.
//!
//! Owns size and merging of steps. Does not own where a clock was set ([`course`](super::course)).

use super::ClockFit;
use super::course::{ClockCourse, Part};
use crate::real::{nanos, real_nanos};

/// A clock was set: the limits before and after are not of one clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockStep {
    /// Not before this moment, in nanoseconds of the local clock: the last limit that agrees with the earlier
    /// ones only.
    pub after: i64,
    /// Not after this moment: the first message that shows the changed clock had returned.
    pub before: i64,
    /// How far the peer's clock jumped forward against the local one, in nanoseconds.
    pub by: i64,
    /// Error bound of `by`, in nanoseconds.
    pub bound: i64,
}

impl ClockCourse<'_> {
    /// The steps, in order. After a clock was set back by little, packets from before and after carry the
    /// same times, and each change between the two looks like a step. So steps with overlapping times are
    /// one, if the offset after them differs from the one before.
    pub fn steps(&self) -> Vec<ClockStep> {
        // A part with one direction only lies within a step: messages that were in flight meanwhile.
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

    /// The fit of a part at the first of two moments, else at the second.
    fn fit_near(&self, part: &Part<'_>, moments: [i64; 2]) -> Option<ClockFit> {
        let back = self.back(part);
        let fit = |at| part.limits.fit_of_back((at, back), self.nature);
        moments.into_iter().find_map(fit)
    }
}

/// Groups in which each member begins before an earlier one has ended. A reordered reply may show two steps
/// within the time of one.
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

/// A step, and the fits before it and after it.
#[derive(Debug, Clone, Copy)]
struct Found {
    after: i64,
    before: i64,
    left: ClockFit,
    right: ClockFit,
}

impl Found {
    /// One step from before the first of them to after the last.
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
        // The clocks drift in a gap. If the local clock was set forward, the gap is shorter than it appears;
        // the peer's clock shows its length.
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

/// Largest drift of a fit's clocks over this many nanoseconds.
fn drifted(fit: &ClockFit, silence: i64) -> i64 {
    nanos(((fit.rate.abs() + fit.rate_bound) * real_nanos(silence)).ceil())
}
