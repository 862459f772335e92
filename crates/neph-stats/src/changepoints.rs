//! Change points of a whole series: its levels, estimated after the fact.
//!
//! The levels minimise the sum of each value's distance from its level plus a price for each change. The
//! distance is capped, so that no single value can cause a change. This is the Potts functional with a
//! bounded loss (Potts 1952; Fearnhead and Rigaill 2019). The optimum is exact among levels on a grid, by
//! dynamic programming as Viterbi's, in O(n k) for k levels.

use std::collections::BTreeMap;

use crate::base_latency::Detection;
use crate::casts::nanos_to_f64;
use crate::error::StatsError;
use crate::sorted::refuse_fewer;

/// Levels that are considered, at most; beyond that, the most frequent ones.
const MAX_LEVELS: usize = 256;

/// The cost of a segmentation. All in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangePenalty {
    /// Of one change.
    pub change: i64,
    /// The most that a value's distance from its level costs.
    pub max_distance: i64,
    /// The distance of levels on the grid.
    pub grid: i64,
}

impl ChangePenalty {
    /// A change costs 8 tolerances, a value at most 2, and levels are a quarter apart. So a change pays off
    /// once at least four values lie at the new level.
    pub fn of(detection: &Detection) -> Self {
        let tolerance = detection.tolerance();
        Self {
            change: tolerance.saturating_mul(8),
            max_distance: tolerance.saturating_mul(2),
            grid: (tolerance / 4).max(1),
        }
    }
}

/// Neighbouring values at one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelSegment {
    /// The index of its first value.
    pub from: usize,
    /// Its level.
    pub level: i64,
}

/// The minimum of each window of `window` neighbouring samples; the first belongs to the first `window`
/// samples. Empty if there are fewer.
pub fn window_minima(samples: &[i64], window: usize) -> Vec<i64> {
    samples
        .windows(window.max(1))
        .filter_map(|w| w.iter().min().copied())
        .collect()
}

/// The sample with which a change of [`window_minima`] at `from` began. A rise shows once all samples of the
/// window are up, a fall at its first low sample.
pub fn change_sample(from: usize, window: usize, rises: bool) -> usize {
    if rises {
        from
    } else {
        from + window.max(1) - 1
    }
}

/// The levels of a series with the lowest cost.
///
/// # Errors
/// [`StatsError::TooFew`] without values; [`StatsError::OutOfRange`] for a price below 0 or a grid that is
/// not above 0.
pub fn change_points(
    values: &[i64],
    penalty: ChangePenalty,
) -> Result<Vec<LevelSegment>, StatsError> {
    refuse_fewer("change points", 1, values.len())?;
    for (subject, value, min) in [
        ("price of a change", penalty.change, 0),
        ("most that a value costs", penalty.max_distance, 0),
        ("grid of levels", penalty.grid, 1),
    ] {
        if value < min {
            return Err(StatsError::OutOfRange {
                subject,
                value: nanos_to_f64(value),
                wanted: "0 or above, the grid above 0",
            });
        }
    }
    let levels = levels(values, penalty.grid);
    Ok(cheapest(values, &levels, penalty))
}

/// The levels on the grid that the values are near, ascending.
fn levels(values: &[i64], grid: i64) -> Vec<i64> {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for value in values {
        let level = value.saturating_add(grid / 2).div_euclid(grid);
        *counts.entry(level.saturating_mul(grid)).or_default() += 1;
    }
    let mut frequent: Vec<(usize, i64)> = counts.into_iter().map(|(l, n)| (n, l)).collect();
    frequent.sort_unstable_by(|a, b| b.cmp(a));
    frequent.truncate(MAX_LEVELS);
    let mut levels: Vec<i64> = frequent.into_iter().map(|(_, level)| level).collect();
    levels.sort_unstable();
    levels
}

fn cheapest(values: &[i64], levels: &[i64], penalty: ChangePenalty) -> Vec<LevelSegment> {
    let cost = |value: i64, level: i64| {
        value
            .saturating_sub(level)
            .saturating_abs()
            .min(penalty.max_distance)
    };
    let mut sums: Vec<i64> = levels.iter().map(|&level| cost(values[0], level)).collect();
    // Whether level k follows another one at value t, and the best level before.
    let mut has_level_change = vec![false; values.len() * levels.len()];
    let mut best_before = vec![0; values.len()];
    for (t, &value) in values.iter().enumerate().skip(1) {
        let best = argmin(&sums);
        let changed_cost = sums[best].saturating_add(penalty.change);
        best_before[t] = best;
        let row = &mut has_level_change[t * levels.len()..(t + 1) * levels.len()];
        for ((sum, &level), has_level_change) in sums.iter_mut().zip(levels).zip(row) {
            *has_level_change = changed_cost < *sum;
            *sum = changed_cost.min(*sum).saturating_add(cost(value, level));
        }
    }
    let mut k = argmin(&sums);
    let mut segments = Vec::new();
    for t in (1..values.len()).rev() {
        if has_level_change[t * levels.len() + k] {
            segments.push(LevelSegment {
                from: t,
                level: levels[k],
            });
            k = best_before[t];
        }
    }
    segments.push(LevelSegment {
        from: 0,
        level: levels[k],
    });
    segments.reverse();
    segments
}

/// The first of the smallest.
fn argmin(sums: &[i64]) -> usize {
    let mut best = 0;
    for (index, sum) in sums.iter().enumerate() {
        if *sum < sums[best] {
            best = index;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRICE: ChangePenalty = ChangePenalty {
        change: 10,
        max_distance: 5,
        grid: 1,
    };

    /// The cost of a segmentation, computed directly.
    fn segmentation_cost(values: &[i64], segments: &[LevelSegment], penalty: ChangePenalty) -> i64 {
        let level = |t: usize| {
            let upto = segments.partition_point(|s| s.from <= t);
            segments[upto - 1].level
        };
        let distances: i64 = (0..values.len())
            .map(|t| (values[t] - level(t)).abs().min(penalty.max_distance))
            .sum();
        distances + penalty.change * i64::try_from(segments.len() - 1).unwrap()
    }

    /// By hand: the step costs 10 and saves 5 for each of 4 values; the single 90 costs 5 and would cost 20
    /// as two changes.
    #[test]
    fn a_step_is_a_change_point_and_an_outlier_is_none() {
        let values = [20, 21, 20, 90, 20, 40, 40, 41, 40];
        let points = change_points(&values, PRICE).unwrap();
        let wanted = [
            LevelSegment { from: 0, level: 20 },
            LevelSegment { from: 5, level: 40 },
        ];
        assert_eq!(points, wanted);
        assert_eq!(segmentation_cost(&values, &points, PRICE), 1 + 5 + 10 + 1);
    }

    #[test]
    fn a_change_of_minima_is_dated_by_its_direction() {
        let up = window_minima(&[1, 1, 1, 1, 9, 9, 9, 9, 9], 4);
        assert_eq!(up, [1, 1, 1, 1, 9, 9]);
        assert_eq!(change_sample(4, 4, true), 4);
        let down = window_minima(&[9, 9, 9, 9, 1, 1, 1, 1], 4);
        assert_eq!(down, [9, 1, 1, 1, 1]);
        assert_eq!(change_sample(1, 4, false), 4);
    }

    #[test]
    fn invalid_settings_and_values_are_refused() {
        assert!(change_points(&[], PRICE).is_err());
        assert!(change_points(&[1], ChangePenalty { grid: 0, ..PRICE }).is_err());
        assert!(
            change_points(
                &[1],
                ChangePenalty {
                    change: -1,
                    ..PRICE
                }
            )
            .is_err()
        );
    }

    /// The lowest cost over all cuts of the series and all levels.
    fn brute_force_cost(values: &[i64], penalty: ChangePenalty) -> i64 {
        let levels = levels(values, penalty.grid);
        (0..1_u32 << (values.len() - 1))
            .map(|cuts| {
                let mut sum = 0;
                let mut from = 0;
                for to in 1..=values.len() {
                    if to < values.len() && cuts >> (to - 1) & 1 == 0 {
                        continue;
                    }
                    let cost = |level: &i64| -> i64 {
                        let far = |v: &i64| (v - level).abs().min(penalty.max_distance);
                        values[from..to].iter().map(far).sum()
                    };
                    sum += levels.iter().map(cost).min().unwrap();
                    sum += if from > 0 { penalty.change } else { 0 };
                    from = to;
                }
                sum
            })
            .min()
            .unwrap()
    }

    proptest! {
        #[test]
        fn the_segmentation_has_the_minimum_cost(
            values in prop::collection::vec(0..40_i64, 1..10),
            change in 0..30_i64,
            max_distance in 0..20_i64,
            grid in 1..5_i64,
        ) {
            let penalty = ChangePenalty { change, max_distance, grid };
            let points = change_points(&values, penalty).unwrap();
            prop_assert_eq!(segmentation_cost(&values, &points, penalty), brute_force_cost(&values, penalty));
        }
    }
}
