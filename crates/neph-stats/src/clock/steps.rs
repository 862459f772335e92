//! Size and time of clock steps, from the fits before and after them.
//!
//! Owns size and merging of steps. Does not own where a clock was set ([`course`](super::course)).

use super::ClockFit;
use super::course::{ClockCourse, Part};
use crate::casts::{nanos_to_f64, round_to_i64};

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
        let fits = pairs.filter_map(|(earlier, later)| {
            Some(StepFits {
                after: earlier.until,
                before: later.first_back(),
                fit_before: self.fit_near(earlier, [later.from, earlier.until])?,
                fit_after: self.fit_near(later, [later.from, later.until])?,
            })
        });
        let mut steps = Vec::new();
        for group in overlapping(fits) {
            match StepFits::as_one(&group).map(|step| step.step()) {
                Some(step) if step.by.saturating_abs() > step.bound => steps.push(step),
                _ => steps.extend(group.iter().map(StepFits::step)),
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
fn overlapping(fits: impl Iterator<Item = StepFits>) -> Vec<Vec<StepFits>> {
    let mut groups: Vec<Vec<StepFits>> = Vec::new();
    let mut before = i64::MIN;
    for step in fits {
        match groups.last_mut() {
            Some(group) if step.after < before => group.push(step),
            _ => {
                before = i64::MIN;
                groups.push(vec![step]);
            }
        }
        before = before.max(step.before);
    }
    groups
}

/// A step, and the fits before it and after it.
#[derive(Debug, Clone, Copy)]
struct StepFits {
    after: i64,
    before: i64,
    fit_before: ClockFit,
    fit_after: ClockFit,
}

impl StepFits {
    /// One step from before the first of them to after the last.
    fn as_one(steps: &[Self]) -> Option<Self> {
        let (first, last) = steps.first().zip(steps.last())?;
        Some(Self {
            after: first.after,
            before: last.before,
            fit_before: first.fit_before,
            fit_after: last.fit_after,
        })
    }

    fn step(&self) -> ClockStep {
        let by = self.fit_after.offset.saturating_sub(self.fit_before.offset);
        // The clocks drift in a gap. If the local clock was set forward, the gap is shorter than it appears;
        // the peer's clock shows its length.
        let silence = self.fit_after.at.saturating_sub(self.fit_before.at);
        let by_theirs = silence.saturating_add(by);
        let is_shorter = (0..silence).contains(&by_theirs);
        let silence = if is_shorter { by_theirs } else { silence };
        ClockStep {
            after: self.after,
            before: self.before,
            by,
            bound: (self.fit_after.bound)
                .saturating_add(self.fit_before.bound)
                .saturating_add(drifted(&self.fit_before, silence)),
        }
    }
}

/// Largest drift of a fit's clocks over this many nanoseconds.
fn drifted(fit: &ClockFit, silence: i64) -> i64 {
    round_to_i64(((fit.rate.abs() + fit.rate_bound) * nanos_to_f64(silence)).ceil())
}
