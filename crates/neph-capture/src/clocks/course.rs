//! One clock against another over the whole time: its course, steps, drift and wander.
//!
//! Owns at which moments a course is told and which its drift is; the fit is neph-stats', what is known
//! of a drift its own (drift).

use neph_model::Span;
use neph_stats::{
    ClockFit, ClockNature, ClockStep, OffsetLimits, StatsError, clock_course_between,
};

use super::added::Added;
use super::drift::Drift;
use super::heard::Heard;

/// Moments of a course that are told, at most.
const MOMENTS: i64 = 2_000;
/// Moments of a course that are drawn, beside those around steps.
const DRAWN: i64 = 300;

/// So many steps one way may be no steps, but a clock that runs at another rate.
const STEPS: usize = 3;

/// The peer's clock against ours from the first limit to the last.
#[derive(Debug, Clone)]
pub struct Course {
    /// When it begins and ends, in nanoseconds of our clock.
    pub from: i64,
    pub until: i64,
    /// The offset at even moments; none where nothing spoke of them.
    pub fits: Vec<ClockFit>,
    /// The same at as many moments as a figure can show, and right before and behind each step.
    pub drawn: Vec<ClockFit>,
    /// Where the clocks jumped against each other.
    pub steps: Vec<ClockStep>,
    /// Since the last step.
    pub drift: Option<Drift>,
    /// How fast they parted from beginning to end, as a fraction, where no clock drifts so and steps one
    /// way make it up.
    pub parted: Option<f64>,
    /// The least and the largest rate over long stretches, as fractions, where there are several.
    pub rates: Option<(f64, f64)>,
}

/// What may be told of a drift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drifted {
    /// So fast from beginning to end, as no clock drifts.
    Parted(f64),
    /// No faster than so, which says nothing.
    Unknown(f64),
    Known(Drift),
}

impl Course {
    /// `None` where nothing spoke of it.
    pub fn drifted(&self, nature: ClockNature) -> Option<Drifted> {
        if let Some(rate) = self.parted {
            return Some(Drifted::Parted(rate));
        }
        let drift = self.drift?;
        let within = drift.rate.abs() + drift.bound;
        let unknown = Drifted::Unknown(within.min(nature.steepest));
        Some(drift.known(nature).map_or(unknown, Drifted::Known))
    }

    /// How long it lasted since the last step, in nanoseconds.
    pub fn long(&self) -> i64 {
        self.until.saturating_sub(since(&self.steps, self.from))
    }

    /// What these limits prove, told every so many nanoseconds; what is told of the clocks is of their
    /// stamps, where `added` says what steady time leaves out.
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
        let heard = Heard::of(limits, nature.horizon);
        let at = |moment| course.at(moment);
        let shown = |moment| course.at(moment).map(|fit| added.fit(fit));
        let every = every.max(heard.long / MOMENTS).max(1);
        let all = (0, heard.long);
        let fits = heard.moments(all, every).filter_map(shown).collect();
        let found = course.steps();
        let steps: Vec<ClockStep> = found.iter().filter_map(|step| added.step(*step)).collect();
        let mut drawn: Vec<i64> = heard.moments(all, (heard.long / DRAWN).max(1)).collect();
        drawn.extend(steps.iter().flat_map(|step| [step.after, step.before]));
        drawn.sort_unstable();
        drawn.dedup();
        let since = since(&found, from);
        let drawn: Vec<ClockFit> = drawn.into_iter().filter_map(shown).collect();
        Ok(Self {
            from,
            until,
            fits,
            parted: parted(&drawn, &steps, nature),
            drawn,
            drift: Drift::over(at, (since, until), nature),
            rates: rates(at, &heard, since, nature),
            steps,
        })
    }
}

/// Behind the last step, or where all begins.
fn since(steps: &[ClockStep], from: i64) -> i64 {
    steps.last().map_or(from, |step| step.before)
}

/// Several steps one way, and from the first moment to the last more than a drift can be.
fn parted(drawn: &[ClockFit], steps: &[ClockStep], nature: ClockNature) -> Option<f64> {
    let is_one_way = steps.iter().all(|step| step.by > 0) || steps.iter().all(|step| step.by < 0);
    let (first, last) = drawn.first().zip(drawn.last())?;
    if steps.len() < STEPS || !is_one_way || last.at <= first.at {
        return None;
    }
    let moved = Span::from_nanos(last.offset.saturating_sub(first.offset)).secs_f64();
    let rate = moved / Span::from_nanos(last.at - first.at).secs_f64();
    (rate.abs() > nature.steepest).then_some(rate)
}

/// The extremes of the rate at moments a horizon apart; `None` of fewer than two such.
fn rates(
    at: impl Fn(i64) -> Option<ClockFit>,
    heard: &Heard,
    since: i64,
    nature: ClockNature,
) -> Option<(f64, f64)> {
    let horizon = nature.horizon;
    let since = heard.passed(since);
    let count = (heard.long - since) / horizon - 1;
    let moments = (1..=count).map(|n| heard.at(since + n * horizon));
    let rates: Vec<f64> = moments
        .filter_map(|moment| Some(at(moment)?.rate))
        .collect();
    let extreme = |pick: fn(f64, f64) -> f64| rates.iter().copied().reduce(pick);
    (rates.len() > 1).then(|| extreme(f64::min).zip(extreme(f64::max)))?
}
