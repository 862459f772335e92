//! Traffic engineering on a link with several paths: a controller checks the load regularly and sets the
//! weights, shortest path first.
//!
//! Owns the free capacity of a path at a moment, which depends on the seed and the moment only, not on
//! earlier calls. Each path has other demand, which only the controller sees and which varies at random.
//! Others prefer short paths too. So the demand varies most there, and short paths shed flows more often.

use neph_model::Span;

use super::random::mix_bits;
use super::shape::{Path, Shape};
use super::share::Share;

/// Resolution of a weight of 1: fine enough for shares of 1 in 100,000.
const WEIGHT_UNITS: f64 = 1e6;

/// The parameters of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficEngineering {
    /// The flows' demand, as a share of the capacity of all paths without other demand.
    pub demand: Share,
    /// Maximum share of the shortest path that other demand takes.
    pub swing: Share,
    /// How strongly others prefer short paths. On a path k times as long as the shortest, they take at most
    /// [`Self::swing`] divided by k to this power.
    pub preference: u32,
    /// Approximate time in which other demand goes from high to low.
    pub period: Span,
}

impl TrafficEngineering {
    /// Sets the weights of the paths without a reservation, as the controller does in its round at `time`
    /// after the cue. A path's weight is its capacity; a weight of 0 stays 0.
    pub(super) fn apply(&self, seed: u64, time: Span, shape: &mut Shape) {
        let mut open_paths: Vec<(usize, &mut Path)> = shape.paths.iter_mut().enumerate().collect();
        open_paths.retain(|(_, path)| path.only.is_none() && path.weight > 0);
        // Of two equally long paths the first in the file is filled first.
        open_paths.sort_by_key(|(index, path)| (path.wire.delay, *index));
        let Some(shortest) = open_paths.first().map(|(_, path)| path.wire.delay) else {
            return;
        };
        let capacity: f64 = open_paths
            .iter()
            .map(|(_, path)| f64::from(path.weight))
            .sum();
        let mut remaining_demand = self.demand.fraction() * capacity;
        for (index, path) in open_paths {
            let path_seed = mix_bits(seed ^ mix_bits(path_number(index)));
            let demand_level = other_demand_level(path_seed, time, self.period);
            let max_other_demand =
                self.swing.fraction() * self.swing_factor(shortest, path.wire.delay);
            let other_demand = max_other_demand * demand_level;
            let free_capacity = f64::from(path.weight) * (1.0 - other_demand);
            path.weight = weight_in_units(free_capacity.min(remaining_demand));
            remaining_demand = (remaining_demand - free_capacity).max(0.0);
        }
    }

    /// 1 for the shortest path, less for longer ones.
    #[expect(clippy::cast_precision_loss, reason = "delays are at most a minute")]
    fn swing_factor(&self, shortest: Span, delay: Span) -> f64 {
        if delay <= shortest {
            return 1.0;
        }
        let delay_ratio = shortest.nanos() as f64 / delay.nanos() as f64;
        let power = i32::try_from(self.preference).unwrap_or(i32::MAX);
        delay_ratio.powi(power)
    }
}

/// Utilisation of a path by other demand at a moment, 0 to 1: a new random value per period, with smooth
/// transitions.
#[expect(clippy::cast_precision_loss, reason = "a part of a period")]
fn other_demand_level(seed: u64, time: Span, period: Span) -> f64 {
    let (time, period) = (time.nanos().max(0), period.nanos().max(1));
    let level_of_period =
        |period_number: i64| unit_fraction(mix_bits(seed ^ mix_bits(period_number.unsigned_abs())));
    let (period_number, phase) = (time / period, (time % period) as f64 / period as f64);
    let (start_level, end_level) = (
        level_of_period(period_number),
        level_of_period(period_number + 1),
    );
    start_level + (end_level - start_level) * phase * phase * (3.0 - 2.0 * phase)
}

/// Uniform in [0, 1), with the 53 bits of a float.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn unit_fraction(random_bits: u64) -> f64 {
    (random_bits >> 11) as f64 / (1_u64 << 53) as f64
}

fn path_number(index: usize) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX).wrapping_add(1)
}

/// At most 1000 times [`WEIGHT_UNITS`], which fits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 10^9"
)]
fn weight_in_units(weight: f64) -> u32 {
    (weight.max(0.0) * WEIGHT_UNITS).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Splitting, Wire};

    const DELAYS: [i64; 4] = [30, 40, 55, 80];

    fn shape(weights: [u32; 4]) -> Shape {
        let path = |(delay, weight): (i64, u32)| Path {
            name: format!("{delay}ms"),
            weight,
            only: None,
            wire: Wire {
                delay: Span::from_millis(delay),
                ..Wire::default()
            },
        };
        Shape {
            paths: DELAYS.into_iter().zip(weights).map(path).collect(),
            splitting: Splitting::Rendezvous,
            ..Shape::default()
        }
    }

    fn percent(percent: u32) -> Share {
        Share::from_billionths(percent * 10_000_000)
    }

    fn high_season() -> TrafficEngineering {
        TrafficEngineering {
            demand: Share::ALL,
            swing: percent(70),
            preference: 2,
            period: Span::from_secs(20),
        }
    }

    fn weights(
        traffic_engineering: &TrafficEngineering,
        seed: u64,
        second: i64,
        base: [u32; 4],
    ) -> Vec<f64> {
        let mut shape = shape(base);
        traffic_engineering.apply(seed, Span::from_secs(second), &mut shape);
        let weights = shape.paths.iter().map(|path| f64::from(path.weight) / 1e6);
        weights.collect()
    }

    #[test]
    fn the_shortest_paths_are_filled_first() {
        let constant_demand = TrafficEngineering {
            demand: percent(60),
            swing: Share::NONE,
            ..high_season()
        };
        // 60 % of 10: all of the first two, and one of the third.
        assert_eq!(
            weights(&constant_demand, 3, 10, [3, 2, 4, 1]),
            [3.0, 2.0, 1.0, 0.0]
        );
        assert_eq!(
            weights(&constant_demand, 3, 10, [0, 2, 4, 4]),
            [0.0, 2.0, 4.0, 0.0]
        );
    }

    #[test]
    fn free_capacity_depends_on_seed_and_time_only_and_stays_within_the_swing() {
        let traffic_engineering = high_season();
        let mut min_capacities = [f64::MAX; 4];
        for second in 0..20_000 {
            let capacities = weights(&traffic_engineering, 3, second, [1; 4]);
            for (min, capacity) in min_capacities.iter_mut().zip(&capacities) {
                *min = min.min(*capacity);
                assert!(*capacity <= 1.0, "{capacity}");
            }
        }
        for (min, delay) in min_capacities.iter().zip([30.0, 40.0, 55.0, 80.0_f64]) {
            let expected = 1.0 - 0.7 * (30.0 / delay).powi(2);
            assert!(
                (expected..expected + 0.01).contains(min),
                "{min} {expected}"
            );
        }
        let first_call = weights(&traffic_engineering, 3, 777, [1; 4]);
        assert_eq!(first_call, weights(&traffic_engineering, 3, 777, [1; 4]));
        assert_ne!(
            first_call,
            weights(&traffic_engineering, 4, 777, [1; 4]),
            "another seed"
        );
    }

    #[test]
    fn a_reserved_path_keeps_its_weight() {
        let mut reserved = shape([5, 1, 1, 1]);
        reserved.paths[0].only = Some(crate::gate::ReservedProtocol::Icmp);
        high_season().apply(3, Span::from_secs(99), &mut reserved);
        assert_eq!(reserved.paths[0].weight, 5);
        assert_eq!(reserved.paths[1].wire.delay, Span::from_millis(40));
    }

    /// The share of its flows that each path sheds in a round, over 2,000 rounds of 10 s.
    fn shed_shares(traffic_engineering: &TrafficEngineering) -> [f64; 4] {
        let (mut shed_counts, mut flow_counts) = ([0_u32; 4], [0_u32; 4]);
        let mut previous_paths: Option<Vec<usize>> = None;
        for round in 0..2_000 {
            let mut shape = shape([1; 4]);
            traffic_engineering.apply(7, Span::from_secs(round * 10), &mut shape);
            let weights: Vec<u32> = shape.paths.iter().map(|path| path.weight).collect();
            let chosen_paths = (0..512_u64).map(|flow| {
                let paths = weights.iter().copied().enumerate();
                let path = shape.splitting.pick_path(mix_bits(flow), paths);
                path.expect("a weight")
            });
            let chosen_paths: Vec<usize> = chosen_paths.collect();
            for (from, to) in previous_paths.iter().flatten().zip(&chosen_paths) {
                flow_counts[*from] += 1;
                shed_counts[*from] += u32::from(from != to);
            }
            previous_paths = Some(chosen_paths);
        }
        let paths = [0, 1, 2, 3];
        paths.map(|path| f64::from(shed_counts[path]) / f64::from(flow_counts[path]))
    }

    #[test]
    fn short_paths_and_high_seasons_shed_more_flows() {
        // 7.8, 4.4, 3.5 and 3.6 % of them: the last two take over what the first two shed.
        let high_shed = shed_shares(&high_season());
        let [first, second, third, last] = high_shed;
        assert!(
            first > 1.5 * second && second > 1.1 * third.max(last),
            "{high_shed:?}"
        );
        let low_season = TrafficEngineering {
            swing: percent(20),
            period: Span::from_secs(600),
            ..high_season()
        };
        let low_shed = shed_shares(&low_season);
        for (low, high) in low_shed.iter().zip(high_shed) {
            assert!(*low > 0.0 && *low < high / 10.0, "{low} {high}");
        }
    }
}
