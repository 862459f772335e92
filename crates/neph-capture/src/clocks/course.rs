//! One clock against another over the whole time: course, steps, drift and wander.
//!
//! Owns the moments at which a course is reported and the time over which its drift is taken. Does not own
//! the fit (neph-stats) and the rules for a drift (drift).

use neph_model::Span;
use neph_stats::{
    ClockFit, ClockNature, ClockStep, OffsetLimits, StatsError, clock_course_between,
};

use super::active_time::ActiveTime;
use super::drift::Drift;
use super::steady_time_conversion::SteadyTimeConversion;

/// Moments of a course that are reported, at most.
const MAX_FITS: i64 = 2_000;
/// Moments of a course that are drawn, without those around steps.
const MAX_FIGURE_FITS: i64 = 300;

/// From this many steps in one direction on, they may be no steps: the clock may run at another rate.
const MIN_STEPS_AS_RATE: usize = 3;

/// The peer's clock against the local one, from the first limit to the last.
#[derive(Debug, Clone)]
pub struct Course {
    /// Start and end, in nanoseconds of the local clock.
    pub start: i64,
    pub end: i64,
    /// Offsets at regular moments. Moments without data are left out.
    pub fits: Vec<ClockFit>,
    /// Offsets for a figure: at as many moments as it can show, and right before and after each step.
    pub figure_fits: Vec<ClockFit>,
    /// Steps of one clock against the other.
    pub steps: Vec<ClockStep>,
    /// Drift since the last step.
    pub drift: Option<Drift>,
    /// Mean rate from begin to end, as a fraction. Set where it consists of steps in one direction and is
    /// larger than any drift.
    pub rate_above_any_drift: Option<f64>,
    /// Smallest and largest rate over long stretches, as fractions. `None` with fewer than two stretches.
    pub rate_range: Option<(f64, f64)>,
}

/// What is known of a drift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DriftEstimate {
    /// Mean rate from begin to end that is larger than any drift.
    AboveAnyDrift(f64),
    /// Upper limit of the drift, too large to be useful.
    Unknown(f64),
    Known(Drift),
}

impl Course {
    /// The drift. `None` where there is no data.
    pub fn estimate_drift(&self, nature: ClockNature) -> Option<DriftEstimate> {
        if let Some(rate) = self.rate_above_any_drift {
            return Some(DriftEstimate::AboveAnyDrift(rate));
        }
        let drift = self.drift?;
        let max_rate = drift.rate.abs() + drift.bound;
        let unknown = DriftEstimate::Unknown(max_rate.min(nature.steepest));
        Some(drift.if_known(nature).map_or(unknown, DriftEstimate::Known))
    }

    /// Time since the last step, in nanoseconds.
    pub fn nanos_since_last_step(&self) -> i64 {
        self.end
            .saturating_sub(last_step_time(&self.steps, self.start))
    }

    /// Fits these limits at regular moments. The result refers to the timestamps of the clocks:
    /// `conversion` has what steady time leaves out.
    ///
    /// # Errors
    /// Those of [`neph_stats::clock_course`], and too few limits.
    pub fn fit(
        limits: OffsetLimits<'_>,
        nature: ClockNature,
        conversion: &SteadyTimeConversion,
        interval: i64,
    ) -> Result<Self, StatsError> {
        let course = clock_course_between(limits, &conversion.cuts(), nature)?;
        let time_range =
            |limits: &[neph_stats::OffsetLimit]| Some((limits.first()?.at, limits.last()?.at));
        let Some(((first, last), (other_first, other_last))) =
            time_range(limits.at_most).zip(time_range(limits.at_least))
        else {
            return Err(StatsError::TooFew {
                subject: "a clock's offset, from messages in both directions",
                need: 2,
                have: limits.at_most.len().min(1) + limits.at_least.len().min(1),
            });
        };
        let (start, end) = (first.min(other_first), last.max(other_last));
        let active_time = ActiveTime::from_limits(limits, nature.horizon);
        let fit_at = |moment| course.at(moment);
        let converted_fit = |moment| course.at(moment).map(|fit| conversion.convert_fit(fit));
        let interval = interval.max(active_time.total_nanos / MAX_FITS).max(1);
        let whole_range = (0, active_time.total_nanos);
        let fits = active_time
            .evenly_spaced_times(whole_range, interval)
            .filter_map(converted_fit)
            .collect();
        let clock_steps = course.steps();
        let steps: Vec<ClockStep> = clock_steps
            .iter()
            .filter_map(|step| conversion.convert_step(*step))
            .collect();
        let figure_interval = (active_time.total_nanos / MAX_FIGURE_FITS).max(1);
        let mut figure_times: Vec<i64> = active_time
            .evenly_spaced_times(whole_range, figure_interval)
            .collect();
        figure_times.extend(steps.iter().flat_map(|step| [step.after, step.before]));
        figure_times.sort_unstable();
        figure_times.dedup();
        let drift_start = last_step_time(&clock_steps, start);
        let figure_times = figure_times.into_iter();
        let figure_fits: Vec<ClockFit> = figure_times.filter_map(converted_fit).collect();
        Ok(Self {
            start,
            end,
            fits,
            rate_above_any_drift: rate_above_any_drift(&figure_fits, &steps, nature),
            figure_fits,
            drift: Drift::estimate(fit_at, (drift_start, end), nature),
            rate_range: rate_range(fit_at, &active_time, drift_start, nature),
            steps,
        })
    }
}

/// Time of the last step, or the start.
fn last_step_time(steps: &[ClockStep], start: i64) -> i64 {
    steps.last().map_or(start, |step| step.before)
}

/// The mean rate if all steps have one direction and it is larger than a drift can be.
fn rate_above_any_drift(
    figure_fits: &[ClockFit],
    steps: &[ClockStep],
    nature: ClockNature,
) -> Option<f64> {
    let has_one_direction =
        steps.iter().all(|step| step.by > 0) || steps.iter().all(|step| step.by < 0);
    let (first, last) = figure_fits.first().zip(figure_fits.last())?;
    if steps.len() < MIN_STEPS_AS_RATE || !has_one_direction || last.at <= first.at {
        return None;
    }
    let change = Span::from_nanos(last.offset.saturating_sub(first.offset)).secs_f64();
    let rate = change / Span::from_nanos(last.at - first.at).secs_f64();
    (rate.abs() > nature.steepest).then_some(rate)
}

/// Smallest and largest rate at moments one horizon apart. `None` with fewer than two moments.
fn rate_range(
    fit_at: impl Fn(i64) -> Option<ClockFit>,
    active_time: &ActiveTime,
    start: i64,
    nature: ClockNature,
) -> Option<(f64, f64)> {
    let horizon = nature.horizon;
    let start = active_time.elapsed_at(start);
    let count = (active_time.total_nanos - start) / horizon - 1;
    let moments = (1..=count).map(|n| active_time.clock_time(start + n * horizon));
    let rates: Vec<f64> = moments
        .filter_map(|moment| Some(fit_at(moment)?.rate))
        .collect();
    let extreme = |choose: fn(f64, f64) -> f64| rates.iter().copied().reduce(choose);
    (rates.len() > 1).then(|| extreme(f64::min).zip(extreme(f64::max)))?
}
