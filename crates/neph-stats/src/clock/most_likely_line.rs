//! The likeliest of the lines that limits permit. It is midway between two parallel ones, below the limits
//! from above and above those from below, that are on average the nearest to all of them. That is the linear
//! program of Moon, Skelly and Towsley for both sides with one rate.
//!
//! Owns the choice within the possible values, which stay those of [`ClockFit`]. Their middle depends on
//! single messages near the first and the last, as possible lines turn about the others. This choice depends
//! on none, and on no worst case while a message was in flight. A limit from above is used at its message's
//! departure, one from below at its message's arrival. The clocks' drift until the other reading cancels out
//! if the delays are equal.

use super::hull::Hull;
use super::{ClockFit, ClockNature, OffsetLimit, OffsetLimits};
use crate::casts::{nanos_to_f64, round_to_i64, usize_to_f64};

/// Nanoseconds by which sums of floats may be off.
const ROUNDING_ERROR_NS: f64 = 1e-3;

impl OffsetLimits<'_> {
    /// The fit with the likeliest offset and rate instead of the middles, and their bounds.
    pub(super) fn likeliest(self, fit: ClockFit, nature: ClockNature) -> ClockFit {
        let origin = OffsetLimit {
            at: fit.at,
            within: 0,
            offset: fit.offset,
        };
        let point = |(x, y): (f64, f64)| (x, y + nature.wander * x.abs());
        let above = self.at_most.iter().map(|limit| {
            let (x, y) = limit.seen_from(origin);
            point((x, y))
        });
        let below = self.at_least.iter().map(|limit| {
            let (x, y) = limit.seen_from(origin);
            point((x + nanos_to_f64(limit.within), -y))
        });
        let (above, mut below): (Vec<_>, Vec<_>) = (above.collect(), below.collect());
        below.sort_by(|a, b| a.0.total_cmp(&b.0));
        let apart = mean_moment(&above) - mean_moment(&below);
        let [above, below] = [above, below].map(|points| Hull::below(points.into_iter()));
        // The larger, the nearer the lines are. Terms that are equal for all rates are omitted.
        let near = |rate: f64| above.intercept(rate) + below.intercept(-rate) + rate * apart;
        let (slowest, fastest) = (fit.rate - fit.rate_bound, fit.rate + fit.rate_bound);
        let corners = above.slopes().chain(below.slopes().map(|slope| -slope));
        let mut rates: Vec<(f64, f64)> = corners
            .filter(|rate| (slowest..=fastest).contains(rate))
            .chain([slowest, fastest])
            .map(|rate| (rate, near(rate)))
            .collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        let nearest = rates.iter().map(|(_, near)| *near);
        let nearest = nearest.fold(f64::NEG_INFINITY, f64::max);
        rates.retain(|(_, near)| *near >= nearest - ROUNDING_ERROR_NS);
        // Between two equally good rates all are; most clocks differ by little.
        let first = rates.first().map_or(fit.rate, |(rate, _)| *rate);
        let last = rates.last().map_or(fit.rate, |(rate, _)| *rate);
        let rate = 0.0_f64.max(first).min(last);
        let aside = round_to_i64(f64::midpoint(
            above.intercept(rate),
            -below.intercept(-rate),
        ));
        ClockFit {
            offset: fit.offset.saturating_add(aside),
            bound: fit.bound.saturating_add(aside.saturating_abs()),
            rate,
            rate_bound: fit.rate_bound + (rate - fit.rate).abs(),
            ..fit
        }
    }
}

fn mean_moment(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(x, _)| x).sum::<f64>() / usize_to_f64(points.len())
}
