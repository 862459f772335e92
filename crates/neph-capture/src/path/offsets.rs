//! The clock of one point against that of the point before: the same clock, or fitted to the packets that
//! passed both. All times are steady times, which continue where a point's clock was set back.
//!
//! Owns the moments of the fits and the offset between two of them. Fits are at least 1 s apart, as one takes
//! 1.5 to 3 ms of CPU with 20,000 packets each way within its horizon. Does not own the fit (neph-stats).

use crate::MatchedCaptures;
use neph_model::{ClockOffset, Span};
use neph_stats::{
    ClockCourse, ClockCut, ClockFit, ClockNature, ClockStep, StatsError, clock_course_between,
};

use crate::clocks::active_time::ActiveTime;
use crate::clocks::drift::Drift;
use crate::clocks::pair::retained_limits;
use crate::clocks::read_offsets::ReadOffsets;
use crate::clocks::steady_time_conversion::SteadyTimeConversion;

/// Moments of fits, at most, without those around steps.
const MAX_FITS: i64 = 2_000;
const SECOND_NANOS: i64 = 1_000_000_000;
/// Largest rounding error of an offset between two fits, in nanoseconds.
const MAX_ROUNDING_NANOS: i64 = 3;

/// The later point's clock minus the earlier one's.
#[derive(Debug)]
pub enum Offsets {
    /// Both points read the same clock.
    Same,
    /// Fitted to packets.
    Fitted(Box<FittedOffsets>),
    /// Packets of one direction only, or none, passed both points.
    Unknown,
}

/// Fits at moments of the earlier point's clock, ascending.
#[derive(Debug)]
pub struct FittedOffsets {
    fits: Vec<ClockFit>,
    /// The largest step that may hide between each fit and the next, in nanoseconds. `None` where it may have
    /// any size, or where it makes little difference.
    hidden_steps: Vec<Option<i64>>,
    /// Intervals in which a clock was set, in steady time; they do not overlap.
    set_intervals: Vec<ClockCut>,
    /// Steps of the clocks themselves.
    pub steps: Vec<ClockStep>,
    conversion: SteadyTimeConversion,
    /// Drift from end to end since the last step, if that is long.
    drift: Option<Drift>,
    /// Readings of both clocks.
    readings: ReadOffsets,
    pub nature: ClockNature,
}

impl Offsets {
    /// Fits the offset to these packets, narrowed by readings of both clocks.
    ///
    /// # Errors
    /// Those of [`clock_course_between`].
    pub fn fitted(
        captures: &MatchedCaptures,
        readings: ReadOffsets,
        nature: ClockNature,
    ) -> Result<Self, StatsError> {
        let retained = retained_limits(captures, nature);
        let limits = retained.limits();
        if limits.at_most.is_empty() || limits.at_least.is_empty() {
            return Ok(Self::Unknown);
        }
        let conversion = SteadyTimeConversion::new(captures.clock_set_backs());
        let cuts = conversion.cuts();
        let course = clock_course_between(limits, &cuts, nature)?;
        let active_time = ActiveTime::from_limits(limits, nature.horizon);
        let interval = (active_time.total_nanos / MAX_FITS).max(SECOND_NANOS);
        let steps = course.steps();
        let step_moments = steps.iter().flat_map(|step| [step.after, step.before]);
        let cut_moments = cuts.iter().flat_map(|cut| [cut.until, cut.from]);
        let mut moments: Vec<i64> = active_time
            .evenly_spaced_times((0, active_time.total_nanos), interval)
            .collect();
        moments.extend(step_moments.chain(cut_moments));
        moments.sort_unstable();
        moments.dedup();
        let drift_start = steps.last().map(|step| step.before);
        let drift_start = drift_start.unwrap_or_else(|| active_time.clock_time(0));
        let drift_range = (drift_start, active_time.clock_time(active_time.total_nanos));
        let drift = Drift::is_long_period(drift_range, nature)
            .then(|| Drift::estimate(|at| course.at(at), drift_range, nature));
        let fits: Vec<ClockFit> = moments
            .into_iter()
            .filter_map(|moment| course.likeliest_at(moment))
            .collect();
        Ok(if fits.is_empty() {
            Self::Unknown
        } else {
            Self::Fitted(Box::new(FittedOffsets {
                hidden_steps: find_hidden_steps(&course, &fits, nature),
                fits,
                set_intervals: merge_intervals(&steps, cuts),
                steps: steps
                    .iter()
                    .filter_map(|step| conversion.convert_step(*step))
                    .collect(),
                conversion,
                drift: drift.flatten(),
                // Readings are of the real clocks, not in steady time.
                readings: if captures.clock_set_backs().is_empty() {
                    readings
                } else {
                    ReadOffsets::default()
                },
                nature,
            }))
        })
    }

    /// The offset at a moment of the earlier point's clock.
    pub fn at(&self, first_at: i64) -> Option<ClockOffset> {
        match self {
            Self::Same => Some(ClockOffset::SAME_CLOCK),
            Self::Fitted(fitted) => fitted.at(first_at),
            Self::Unknown => None,
        }
    }

    /// The offset when a packet passed the later point, from its timestamps at both. `None` where a clock was
    /// set in between.
    pub fn around(&self, first_at: i64, second_at: i64) -> Option<ClockOffset> {
        let Self::Fitted(fitted) = self else {
            return self.at(first_at);
        };
        let fitted_offset = fitted.at(first_at)?;
        let moment = second_at.saturating_sub(fitted_offset.value().nanos());
        (!fitted.is_set_between(first_at, moment)).then(|| fitted.at(moment))?
    }

    /// The offset at a moment of the later point's clock. `None` where either clock may have been set.
    pub fn at_later_point(&self, second_at: i64) -> Option<ClockOffset> {
        let Self::Fitted(fitted) = self else {
            return self.at(second_at);
        };
        let mut moment = second_at.saturating_sub(fitted.fits.first()?.offset);
        // The first guess may lie on the wrong side of a step, the second on the right one.
        for _ in 0..2 {
            moment = second_at.saturating_sub(fitted.at(moment)?.value().nanos());
        }
        let offset = fitted.at(moment)?;
        let second_moment = second_at.saturating_sub(offset.value().nanos());
        (!fitted.is_set_between(moment, second_moment)).then_some(offset)
    }

    /// Whether either clock was set between two moments of the earlier point's.
    pub fn is_set_between(&self, a: i64, b: i64) -> bool {
        matches!(self, Self::Fitted(fitted) if fitted.is_set_between(a, b))
    }

    /// The fit with the smallest error bound.
    pub fn best(&self) -> Option<ClockFit> {
        let Self::Fitted(fitted) = self else {
            return None;
        };
        let fits = fitted.fits.iter().map(|fit| {
            let narrowed = fitted
                .readings
                .narrowed(fit.at, clock_offset(fit.offset, fit.bound));
            ClockFit {
                offset: narrowed.value().nanos(),
                bound: narrowed.bound().nanos(),
                ..*fit
            }
        });
        let best = fits.min_by_key(|fit| fit.bound);
        best.map(|fit| fitted.conversion.convert_fit(fit))
    }
}

impl FittedOffsets {
    /// The drift as `neph clock` reports it for long captures, else at the moment of a fit. `None` where it
    /// is not known.
    pub fn drift(&self, fit: &ClockFit) -> Option<Drift> {
        let long_drift = self.drift.and_then(|drift| drift.if_known(self.nature));
        long_drift.or_else(|| Drift::from_fit(fit, self.nature))
    }

    fn at(&self, first_at: i64) -> Option<ClockOffset> {
        let offset = self.fitted_offset(first_at)?;
        Some(self.readings.narrowed(first_at, offset))
    }

    /// The offset from packets.
    fn fitted_offset(&self, first_at: i64) -> Option<ClockOffset> {
        let next = self.fits.partition_point(|fit| fit.at <= first_at);
        let previous = next.checked_sub(1).and_then(|index| self.fits.get(index));
        match (previous, self.fits.get(next)) {
            (Some(previous), _) if previous.at == first_at => {
                Some(clock_offset(previous.offset, previous.bound))
            }
            (Some(_), Some(_)) => self.interpolate(next - 1, first_at),
            (Some(end), None) | (None, Some(end)) => self.extrapolate(end, first_at),
            (None, None) => None,
        }
    }

    fn is_set_between(&self, a: i64, b: i64) -> bool {
        let (from, until) = (a.min(b), a.max(b));
        let next = self
            .set_intervals
            .partition_point(|interval| interval.from <= from);
        self.set_intervals
            .get(next)
            .is_some_and(|interval| interval.until < until)
    }

    /// The offset on the line from one fit to the next. Without a step, its error is at most the larger of
    /// both bounds plus the wander to the nearer fit. A hidden step adds its size. If that is unlimited, the
    /// offset follows one fit until the step and the other one after it. The bound then covers both, with the
    /// errors of their rates.
    fn interpolate(&self, index: usize, first_at: i64) -> Option<ClockOffset> {
        let (before, after) = (self.fits.get(index)?, self.fits.get(index + 1)?);
        if self.is_set_between(before.at, after.at) {
            return None;
        }
        let (elapsed, distance) = (first_at - before.at, after.at - before.at);
        let share = |total: i64, part: i64| {
            let share = i128::from(total) * i128::from(part) / i128::from(distance);
            i64::try_from(share).unwrap_or(0)
        };
        let change = after.offset.saturating_sub(before.offset);
        let bound_from = |fit: &ClockFit, distance_to_fit: i64| {
            let jump = change.saturating_sub(scaled(fit.rate, distance));
            let rate_error = scaled(fit.rate_bound + self.nature.wander, distance_to_fit);
            let added_bound =
                share(jump.saturating_abs(), distance_to_fit).saturating_add(rate_error);
            fit.bound.saturating_add(added_bound)
        };
        let bound = match self.hidden_steps.get(index).copied().flatten() {
            Some(step) => {
                let wander_error = scaled(self.nature.wander, elapsed.min(distance - elapsed));
                let bound = before.bound.max(after.bound).saturating_add(step);
                bound.saturating_add(wander_error)
            }
            None => bound_from(before, elapsed).max(bound_from(after, distance - elapsed)),
        };
        Some(clock_offset(
            before.offset.saturating_add(share(change, elapsed)),
            bound.saturating_add(MAX_ROUNDING_NANOS),
        ))
    }

    /// The offset before the first fit or after the last: along its line.
    fn extrapolate(&self, end: &ClockFit, first_at: i64) -> Option<ClockOffset> {
        if self.is_set_between(end.at, first_at) {
            return None;
        }
        let elapsed = first_at.saturating_sub(end.at);
        let added_bound = scaled(
            end.rate_bound + self.nature.wander,
            elapsed.saturating_abs(),
        ) + 1;
        Some(clock_offset(
            end.offset.saturating_add(scaled(end.rate, elapsed)),
            end.bound.saturating_add(added_bound),
        ))
    }
}

/// For each fit and the next: the largest hidden step. Only where the error of the rate over that time widens
/// the bound by more than an eighth.
fn find_hidden_steps(
    course: &ClockCourse<'_>,
    fits: &[ClockFit],
    nature: ClockNature,
) -> Vec<Option<i64>> {
    let pairs = fits.windows(2).map(|pair| {
        let has_large_rate_error = |fit: &ClockFit| {
            let rate_error = scaled(fit.rate_bound + nature.wander, pair[1].at - pair[0].at);
            rate_error > fit.bound / 8
        };
        let is_wide = pair.iter().any(has_large_rate_error);
        is_wide.then(|| course.hidden_step(pair[0].at, pair[1].at))?
    });
    pairs.collect()
}

/// Intervals in which a clock was set; they do not overlap.
fn merge_intervals(steps: &[ClockStep], mut intervals: Vec<ClockCut>) -> Vec<ClockCut> {
    intervals.extend(steps.iter().map(|step| ClockCut {
        until: step.after,
        from: step.before,
    }));
    intervals.sort_unstable_by_key(|interval| (interval.until, interval.from));
    intervals.dedup_by(|next, before| {
        let overlaps = next.until < before.from;
        if overlaps {
            before.from = before.from.max(next.from);
        }
        overlaps
    });
    intervals
}

const fn clock_offset(offset: i64, bound: i64) -> ClockOffset {
    ClockOffset::new(Span::from_nanos(offset), Span::from_nanos(bound))
}

/// A fraction of a time, rounded up in size.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "fractions of times that captures last"
)]
fn scaled(fraction: f64, nanos: i64) -> i64 {
    let part = fraction * nanos as f64;
    (part.abs().ceil() * part.signum()) as i64
}

#[cfg(test)]
mod tests;
