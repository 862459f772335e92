//! One clock against another over the whole time: course, steps, drift and wander.
//!
//! Owns the moments at which a course is reported and the time over which its drift is taken. Does not own
//! the fit (neph-stats) and the rules for a drift (drift).

use neph_model::Span;
use neph_stats::{
    ClockFit, ClockNature, ClockStep, OffsetLimits, StatsError, clock_course_between,
};

use super::active_time::ActiveTime;
use super::added::Added;
use super::drift::Drift;

/// Moments of a course that are reported, at most.
const MOMENTS: i64 = 2_000;
/// Moments of a course that are drawn, without those around steps.
const DRAWN: i64 = 300;

/// From this many steps in one direction on, they may be no steps: the clock may run at another rate.
const STEPS: usize = 3;

/// The peer's clock against the local one, from the first limit to the last.
#[derive(Debug, Clone)]
pub struct Course {
    /// Begin and end, in nanoseconds of the local clock.
    pub from: i64,
    pub until: i64,
    /// Offsets at regular moments. Moments without data are left out.
    pub fits: Vec<ClockFit>,
    /// Offsets for a figure: at as many moments as it can show, and right before and after each step.
    pub drawn: Vec<ClockFit>,
    /// Steps of one clock against the other.
    pub steps: Vec<ClockStep>,
    /// Drift since the last step.
    pub drift: Option<Drift>,
    /// Mean rate from begin to end, as a fraction. Set where it consists of steps in one direction and is
    /// larger than any drift.
    pub parted: Option<f64>,
    /// Smallest and largest rate over long stretches, as fractions. `None` with fewer than two stretches.
    pub rates: Option<(f64, f64)>,
}

/// What is known of a drift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drifted {
    /// Mean rate from begin to end that is larger than any drift.
    Parted(f64),
    /// Upper limit of the drift, too large to be useful.
    Unknown(f64),
    Known(Drift),
}

impl Course {
    /// The drift. `None` where there is no data.
    pub fn drifted(&self, nature: ClockNature) -> Option<Drifted> {
        if let Some(rate) = self.parted {
            return Some(Drifted::Parted(rate));
        }
        let drift = self.drift?;
        let within = drift.rate.abs() + drift.bound;
        let unknown = Drifted::Unknown(within.min(nature.steepest));
        Some(drift.known(nature).map_or(unknown, Drifted::Known))
    }

    /// Time since the last step, in nanoseconds.
    pub fn long(&self) -> i64 {
        self.until.saturating_sub(since(&self.steps, self.from))
    }

    /// Fits these limits at regular moments. The result refers to the timestamps of the clocks: `added` has
    /// what steady time leaves out.
    ///
    /// # Errors
    /// Those of [`neph_stats::clock_course`], and too few limits.
    pub fn of(
        limits: OffsetLimits<'_>,
        nature: ClockNature,
        added: &Added,
        every: i64,
    ) -> Result<Self, StatsError> {
        let course = clock_course_between(limits, &added.cuts(), nature)?;
        let ends = |of: &[neph_stats::OffsetLimit]| Some((of.first()?.at, of.last()?.at));
        let Some(((first, last), (other_first, other_last))) =
            ends(limits.at_most).zip(ends(limits.at_least))
        else {
            return Err(StatsError::TooFew {
                what: "a clock's offset, from messages in both directions",
                need: 2,
                have: limits.at_most.len().min(1) + limits.at_least.len().min(1),
            });
        };
        let (from, until) = (first.min(other_first), last.max(other_last));
        let active_time = ActiveTime::of(limits, nature.horizon);
        let at = |moment| course.at(moment);
        let shown = |moment| course.at(moment).map(|fit| added.fit(fit));
        let every = every.max(active_time.long / MOMENTS).max(1);
        let whole_range = (0, active_time.long);
        let fits = active_time
            .moments(whole_range, every)
            .filter_map(shown)
            .collect();
        let clock_steps = course.steps();
        let steps: Vec<ClockStep> = clock_steps
            .iter()
            .filter_map(|step| added.step(*step))
            .collect();
        let mut drawn: Vec<i64> = active_time
            .moments(whole_range, (active_time.long / DRAWN).max(1))
            .collect();
        drawn.extend(steps.iter().flat_map(|step| [step.after, step.before]));
        drawn.sort_unstable();
        drawn.dedup();
        let since = since(&clock_steps, from);
        let drawn: Vec<ClockFit> = drawn.into_iter().filter_map(shown).collect();
        Ok(Self {
            from,
            until,
            fits,
            parted: parted(&drawn, &steps, nature),
            drawn,
            drift: Drift::over(at, (since, until), nature),
            rates: rates(at, &active_time, since, nature),
            steps,
        })
    }
}

/// Moment of the last step, or the begin.
fn since(steps: &[ClockStep], from: i64) -> i64 {
    steps.last().map_or(from, |step| step.before)
}

/// The mean rate if all steps have one direction and it is larger than a drift can be.
fn parted(drawn: &[ClockFit], steps: &[ClockStep], nature: ClockNature) -> Option<f64> {
    let has_one_direction =
        steps.iter().all(|step| step.by > 0) || steps.iter().all(|step| step.by < 0);
    let (first, last) = drawn.first().zip(drawn.last())?;
    if steps.len() < STEPS || !has_one_direction || last.at <= first.at {
        return None;
    }
    let change = Span::from_nanos(last.offset.saturating_sub(first.offset)).secs_f64();
    let rate = change / Span::from_nanos(last.at - first.at).secs_f64();
    (rate.abs() > nature.steepest).then_some(rate)
}

/// Smallest and largest rate at moments one horizon apart. `None` with fewer than two moments.
fn rates(
    at: impl Fn(i64) -> Option<ClockFit>,
    active_time: &ActiveTime,
    since: i64,
    nature: ClockNature,
) -> Option<(f64, f64)> {
    let horizon = nature.horizon;
    let since = active_time.passed(since);
    let count = (active_time.long - since) / horizon - 1;
    let moments = (1..=count).map(|n| active_time.at(since + n * horizon));
    let rates: Vec<f64> = moments
        .filter_map(|moment| Some(at(moment)?.rate))
        .collect();
    let extreme = |choose: fn(f64, f64) -> f64| rates.iter().copied().reduce(choose);
    (rates.len() > 1).then(|| extreme(f64::min).zip(extreme(f64::max)))?
}
