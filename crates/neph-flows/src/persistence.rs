//! How long flows stay: from a path change to the next, and on a class.
//!
//! A stay counts from the change that began it: the beginning of a flow's first level is unknown. Stays that
//! continue at the end are censored (Kaplan and Meier 1958).
//!
//! The interval is Wilson's, with an effective number of cases (Rothman 1978). It uses the larger of two
//! errors: Greenwood's, with stays as cases, and that of blocks of time.

use neph_model::Span;
use neph_stats::{Lifetime, SurvivalStep, survival};

use crate::blocks::{Uncertainty, uncertainty};
use crate::direction::Direction;
use crate::latency_bins::span_from_nanos;
use crate::pair::{Curve, CurvePoint};
use crate::share::{Share, small_sample_factor, wilson_interval};
use crate::stay::Stay;
use crate::view::{FlowHistory, PathChange};

/// Maximum number of points of a curve, plus two.
const MAX_POINTS: usize = 400;

/// The changes that begin and end a stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// All.
    Each,
    /// Changes from one class to another.
    ClassChange,
    /// Changes of the forward path only.
    Forward,
    /// Changes of the reverse path only.
    Reverse,
}

impl ChangeKind {
    fn includes(self, classes: (Option<u16>, Option<u16>), direction: Option<Direction>) -> bool {
        match self {
            Self::Each => true,
            Self::ClassChange => classes.0 != classes.1,
            Self::Forward => direction == Some(Direction::Forward),
            Self::Reverse => direction == Some(Direction::Reverse),
        }
    }
}

/// The stays of a flow. `changes` are its own, by time: one for each segment after the first.
pub(crate) fn stays(flow: &FlowHistory, changes: &[&PathChange], kind: ChangeKind) -> Vec<Stay> {
    let Some(end) = flow.segments.last().map(|segment| segment.until) else {
        return Vec::new();
    };
    let mut stay_start = None;
    let mut stays = Vec::new();
    for (pair, change) in flow.segments.windows(2).zip(changes) {
        let classes = (pair[0].class, pair[1].class);
        if !kind.includes(classes, change.evidence.direction) {
            continue;
        }
        let at = pair[1].from;
        stays.extend(stay_start.replace(at).map(|from| Stay {
            from,
            length: at - from,
            ended: true,
        }));
    }
    stays.extend(stay_start.map(|from| Stay {
        from,
        length: end - from,
        ended: false,
    }));
    stays
}

/// The durations of some stays.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StayCurve {
    pub(crate) curve: Curve,
    /// The share that had ended by the requested time, from the curve; `None` if nothing was observed for
    /// that long.
    pub(crate) leave_share: Option<Share>,
}

/// The curve of some stays; `None` without any. Time is divided into blocks of at least `bin`.
pub(crate) fn stay_curve(stays: &[Stay], (bin, horizon): (Span, Span)) -> Option<StayCurve> {
    let lifetimes: Vec<Lifetime> = stays.iter().map(Stay::lifetime).collect();
    let survival = survival(&lifetimes).ok()?;
    let steps = survival.steps();
    let step_interval = steps.len().div_ceil(MAX_POINTS).max(1);
    let steps_within_horizon = steps.partition_point(|step| span_from_nanos(step.at) <= horizon);
    let is_point = |index: usize| {
        index.is_multiple_of(step_interval)
            || [steps_within_horizon, steps.len()].contains(&(index + 1))
    };
    let estimate = uncertainty(stays, steps, bin, is_point);
    let point_steps = steps
        .iter()
        .enumerate()
        .filter(|(index, _)| is_point(*index));
    let point_steps = point_steps.zip(&estimate.errors);
    let mut points: Vec<(CurvePoint, f64)> = point_steps
        .map(|((_, step), error)| curve_point(step, effective_cases(step, &estimate, *error)))
        .collect();
    // If no stay had ended by then, each block of time is a case.
    if steps_within_horizon == 0 && span_from_nanos(survival.observed()) >= horizon {
        points.insert(0, full_survival(horizon, stays.len(), estimate.blocks));
    }
    let to_share = |(point, cases): &(CurvePoint, f64)| Share {
        hits: stays
            .iter()
            .filter(|stay| stay.ended && stay.length <= horizon)
            .count() as u64,
        n: stays.len() as u64,
        cases: *cases,
        share: 1.0 - point.surviving,
        low: 1.0 - point.high,
        high: 1.0 - point.low,
    };
    let points_until = points.iter().rev().find(|(point, _)| point.at <= horizon);
    let is_known = |point: &CurvePoint| {
        span_from_nanos(survival.observed()) >= horizon || point.surviving <= 0.0
    };
    let leave_share = points_until
        .filter(|(point, _)| is_known(point))
        .map(to_share);
    // The last point is the end of observation: without it the curve would seem to stop with an end.
    if steps
        .last()
        .is_none_or(|step| step.at < survival.observed())
    {
        let last = points.last().copied();
        let (last, cases) = last.unwrap_or_else(|| full_survival(Span::ZERO, 1, estimate.blocks));
        let end = CurvePoint {
            at: span_from_nanos(survival.observed()),
            at_risk: 1,
            ..last
        };
        points.push((end, cases));
    }
    Some(StayCurve {
        curve: Curve {
            n: stays.len() as u64,
            ended: stays.iter().filter(|stay| stay.ended).count() as u64,
            points: points.into_iter().map(|(point, _)| point).collect(),
        },
        leave_share,
    })
}

/// Effective number of independent cases of a step (Rothman 1978), with the t quantile for few blocks.
/// `error` is that of log S by blocks.
#[expect(clippy::cast_precision_loss, reason = "counts")]
fn effective_cases(step: &SurvivalStep, estimate: &Uncertainty, error: f64) -> f64 {
    if step.survival <= 0.0 {
        // The variance is unknown.
        return estimate.blocks_with_ends as f64;
    }
    if estimate.blocks_with_ends < 2 {
        return 0.0;
    }
    let error = (error * step.survival).max(step.error);
    let cases = step.survival * (1.0 - step.survival) / error.powi(2);
    cases * small_sample_factor((estimate.blocks_with_ends - 1) as f64)
}

/// A step with Wilson's interval for this number of cases.
fn curve_point(step: &SurvivalStep, cases: f64) -> (CurvePoint, f64) {
    let (low, high) = wilson_interval(step.survival, cases);
    let point = CurvePoint {
        at: span_from_nanos(step.at),
        surviving: step.survival,
        low,
        high,
        at_risk: step.at_risk as u64,
    };
    (point, cases)
}

/// The curve before the first end.
#[expect(clippy::cast_precision_loss, reason = "a count")]
fn full_survival(at: Span, at_risk: usize, blocks: usize) -> (CurvePoint, f64) {
    let cases = blocks as f64;
    let (low, high) = wilson_interval(1.0, cases);
    let point = CurvePoint {
        at,
        surviving: 1.0,
        low,
        high,
        at_risk: at_risk as u64,
    };
    (point, cases)
}

#[cfg(test)]
mod tests;
