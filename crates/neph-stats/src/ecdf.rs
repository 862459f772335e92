//! The points of an empirical distribution function, thinned for drawing.
//! Owns which points are kept; every kept point is one of the true steps, none is moved.

use std::collections::BTreeSet;

use crate::casts::{tied, to_usize, usize_to_f64};
use crate::error::StatsError;
use crate::sorted::{Sorted, refuse_fewer};

/// The last steps, all of which are kept: an axis with a log tail shows them one by one.
pub const TAIL_POINTS: usize = 100;

/// One step of the distribution function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EcdfPoint {
    /// A value of the sample.
    pub value: f64,
    /// The share of all messages, the lost ones included, that is at most `value`; 0..=1.
    pub share: f64,
}

/// The steps of the distribution function of `replies` and `lost` further messages, which lie above
/// every reply: with loss the last share is below 1. At most `max_points` points; the first step and the
/// last [`TAIL_POINTS`] steps are always among them. Of the rest one half is spread evenly, the other
/// half so that it gets denser towards the tail.
///
/// # Errors
/// [`StatsError::TooFew`] without replies; [`StatsError::OutOfRange`] when `max_points` is below
/// 2 x [`TAIL_POINTS`].
pub fn ecdf(
    replies: Sorted<'_>,
    lost: usize,
    max_points: usize,
) -> Result<Vec<EcdfPoint>, StatsError> {
    refuse_fewer("distribution function", 1, replies.len())?;
    if max_points < 2 * TAIL_POINTS {
        return Err(StatsError::OutOfRange {
            subject: "number of points",
            value: usize_to_f64(max_points),
            wanted: "200 or more",
        });
    }
    let values = replies.values();
    let steps: Vec<usize> = (0..values.len())
        .filter(|&i| values.get(i + 1).is_none_or(|&next| !tied(values[i], next)))
        .collect();
    let n = usize_to_f64(values.len() + lost);
    Ok(retained_steps(steps.len(), max_points)
        .into_iter()
        .map(|k| EcdfPoint {
            value: values[steps[k]],
            share: usize_to_f64(steps[k] + 1) / n,
        })
        .collect())
}

/// At most `max_points` of 0..steps, ascending.
fn retained_steps(steps: usize, max_points: usize) -> BTreeSet<usize> {
    if steps <= max_points {
        return (0..steps).collect();
    }
    let body = steps - TAIL_POINTS;
    let even = (max_points - TAIL_POINTS) / 2;
    let dense = max_points - TAIL_POINTS - even;
    let evenly = (0..even).map(|j| j * (body - 1) / (even - 1));
    let ratio = usize_to_f64(steps) / usize_to_f64(TAIL_POINTS);
    let densely = (0..dense).map(|j| {
        let from_end =
            usize_to_f64(TAIL_POINTS) * ratio.powf(usize_to_f64(j + 1) / usize_to_f64(dense + 1));
        steps.saturating_sub(to_usize(from_end))
    });
    evenly.chain(densely).chain(body..steps).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ties_are_one_step_and_loss_keeps_the_ecdf_below_one() {
        let points = ecdf(Sorted::check(&[1.0, 1.0, 2.0]).unwrap(), 1, 200).unwrap();
        let expected = [(1.0, 0.5), (2.0, 0.75)].map(|(value, share)| EcdfPoint { value, share });
        assert_eq!(points, expected);
    }

    #[test]
    fn a_thinned_ecdf_of_a_million_steps_has_no_visible_gap() {
        let values: Vec<f64> = (0..1_000_000).map(f64::from).collect();
        let points = ecdf(Sorted::check(&values).unwrap(), 0, 600).unwrap();
        assert!(
            points.len() <= 600 && points.len() > 550,
            "{}",
            points.len()
        );
        let widest = points
            .windows(2)
            .map(|w| w[1].share - w[0].share)
            .fold(0.0, f64::max);
        assert!(widest <= 1.0 / 249.0, "{widest}");
        // Towards the tail neighbours stay within 4 % of a decade of the remaining share.
        for w in points.windows(2).filter(|w| w[1].share < 1.0) {
            let decades = ((1.0 - w[0].share) / (1.0 - w[1].share)).log10();
            assert!(decades < 0.04 || 1.0 - w[0].share < 1.1e-4, "{decades}");
        }
    }

    proptest! {
        #[test]
        fn every_point_is_a_step_of_the_sample(
            mut values in prop::collection::vec(-500..500_i32, 1..3000), max_points in 200..400_usize,
        ) {
            values.sort_unstable();
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let sample = Sorted::check(&values).unwrap();
            let unlimited = ecdf(sample, 3, usize::MAX).unwrap();
            let points = ecdf(sample, 3, max_points).unwrap();
            prop_assert!(points.len() <= max_points);
            prop_assert_eq!(points[0], unlimited[0]);
            let tail = unlimited.len().min(TAIL_POINTS);
            prop_assert!(points.ends_with(&unlimited[unlimited.len() - tail..]));
            for p in &points {
                let share = usize_to_f64(sample.count_up_to(p.value)) / usize_to_f64(values.len() + 3);
                prop_assert_eq!(share, p.share);
            }
        }
    }
}
