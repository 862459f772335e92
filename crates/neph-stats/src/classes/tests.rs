use proptest::prelude::*;

use super::*;
use crate::random::Random;

fn equal(values: &[f64]) -> Vec<Weighted> {
    values
        .iter()
        .map(|&value| Weighted { value, weight: 1.0 })
        .collect()
}

#[test]
fn gaps_separate_classes_and_weights_give_their_shares() {
    let mut values = equal(&[70.0, 70.3, 70.1, 74.0, 79.2, 79.0]);
    values[3].weight = 5.0;
    let classes = classes(&values, 0.5, 0.0).unwrap();
    let shares: Vec<(f64, f64, usize)> = classes.iter().map(|c| (c.centre, c.share, c.n)).collect();
    assert_eq!(shares, [(70.1, 0.3, 3), (74.0, 0.5, 1), (79.0, 0.2, 2)]);
    assert_eq!(class_of(&classes, 74.4, 0.5), Some(1));
    assert_eq!(class_of(&classes, 76.0, 0.5), None);
}

#[test]
fn a_few_intermediate_values_do_not_merge_classes() {
    let mut values = equal(&[70.0; 50]);
    values.extend(equal(&[71.2; 50]));
    values.extend(equal(&[70.4, 70.8]));
    for min_share in [0.0, 0.03] {
        let classes = classes(&values, 0.5, min_share).unwrap();
        let shares: Vec<f64> = classes.iter().map(|c| c.share).collect();
        assert_eq!(shares.len(), 2);
        assert!((shares[0] - 0.5).abs() < 0.01, "{shares:?}");
    }
}

/// Noise of a path's base latencies.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Even,
    Normal,
    /// Of the least of some round trips.
    Exponential,
}

const NOISES: [Noise; 3] = [Noise::Even, Noise::Normal, Noise::Exponential];

impl Noise {
    /// With standard deviation 1.
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Self::Even => 12_f64.sqrt() * (random.unit() - 0.5),
            Self::Normal => (0..12).map(|_| random.unit()).sum::<f64>() - 6.0,
            Self::Exponential => -(1.0 - random.unit()).ln(),
        }
    }
}

/// `count` flows on each of the levels.
fn levels(levels: &[f64], count: usize, deviation: f64, noise: Noise, seed: u64) -> Vec<Weighted> {
    let mut random = Random::new(seed);
    let repeated = levels
        .iter()
        .flat_map(|level| std::iter::repeat_n(*level, count));
    let values: Vec<f64> = repeated
        .map(|level| level + deviation * noise.draw(&mut random))
        .collect();
    equal(&values)
}

/// How many of 40 seeds have other classes than levels.
fn wrong(at: &[f64], count: usize, deviation: f64, noise: Noise) -> usize {
    let is_wrong = |seed: &u64| {
        let classes = classes(&levels(at, count, deviation, noise, *seed), 0.5, 0.0).unwrap();
        let off = 0.04 + 2.5 * deviation;
        let near = |(class, level): (&LevelClass, &f64)| (class.centre - level).abs() < off;
        classes.len() != at.len() || !classes.iter().zip(at).all(near)
    };
    (0..40).filter(is_wrong).count()
}

/// The levels of a chain: each is nearer to the next than the gap, and the ends are far apart.
const CHAINS: [&[f64]; 4] = [
    &[80.0, 80.475, 80.95],
    &[80.0, 80.4, 80.8, 81.2],
    &[80.0, 80.3, 80.6, 80.9, 81.2],
    &[80.0, 80.475, 80.8, 85.0, 85.3],
];

#[test]
fn levels_closer_than_the_gap_are_not_chained_into_one_class() {
    for (chain, noise) in CHAINS
        .iter()
        .flat_map(|chain| NOISES.map(|noise| (chain, noise)))
    {
        for count in [4, 8, 16, 64, 300] {
            let bad = wrong(chain, count, 0.01, noise);
            assert!(
                bad <= 2,
                "{chain:?} {noise:?}, {count} flows each: {bad} of 40"
            );
        }
        for count in [64, 170] {
            let bad = wrong(chain, count, 0.05, noise);
            assert!(
                bad <= 1,
                "{chain:?} {noise:?}, {count} flows each: {bad} of 40"
            );
        }
    }
}

#[test]
fn one_path_with_noise_is_one_class() {
    for noise in NOISES {
        for count in [1, 2, 3, 4, 8, 16, 64, 300] {
            for deviation in [0.01, 0.03, 0.05, 0.07] {
                let bad = wrong(&[80.0], count, deviation, noise);
                assert!(
                    bad <= 1,
                    "{count} flows, {noise:?} {deviation}: {bad} of 40"
                );
            }
        }
    }
}

/// As many flows as a fleet has, unevenly over the levels: the shares are the truth's, and so is what
/// lies between the lowest class and the highest.
#[test]
fn the_shares_and_ends_of_a_chain_are_right() {
    let counts = [(80.0, 20), (80.475, 300), (80.95, 64)];
    for (noise, seed) in NOISES.into_iter().zip(7..) {
        let of = |(level, count)| levels(&[level], count, 0.04, noise, seed);
        let values: Vec<Weighted> = counts.into_iter().flat_map(of).collect();
        let classes = classes(&values, 0.5, 0.001).unwrap();
        let sizes: Vec<usize> = classes.iter().map(|class| class.n).collect();
        assert_eq!(sizes.len(), 3, "{noise:?} {classes:?}");
        for (class, (_, count)) in classes.iter().zip(counts) {
            assert!(class.n.abs_diff(count) <= 2, "{noise:?} {classes:?}");
        }
        assert!((classes[2].centre - classes[0].centre - 0.95).abs() < 0.03);
    }
}

/// Paths that are as many as cannot be distinguished: the classes cover them, each of bounded width.
#[test]
fn levels_that_cannot_be_separated_are_classes_of_bounded_width() {
    let values: Vec<f64> = (0..300).map(|i| 80.0 + 0.01 * f64::from(i)).collect();
    let classes = classes(&equal(&values), 0.5, 0.001).unwrap();
    assert!((3..=4).contains(&classes.len()), "{classes:?}");
    assert!(classes[classes.len() - 1].centre - classes[0].centre > 1.9);
}

/// Jittered bases of four paths: the number of paths and the shares are the truth's, exactly.
#[test]
fn paths_are_found_with_their_shares() {
    for seed in 1000..1100 {
        let mut random = Random::new(seed);
        let counts = [35, 60, 105, 312];
        let mut base = 60.0;
        let mut values = Vec::new();
        for count in counts {
            base += 1.0 + 8.0 * random.unit();
            for _ in 0..count {
                values.push(base + 0.4 * (random.unit() - 0.5));
            }
        }
        let classes = classes(&equal(&values), 0.5, 0.01).unwrap();
        let class_sizes: Vec<usize> = classes.iter().map(|c| c.n).collect();
        assert_eq!(class_sizes, counts, "seed {seed}");
    }
}

#[test]
fn no_values_have_no_classes_and_invalid_values_are_refused() {
    assert_eq!(classes(&[], 0.5, 0.0).unwrap(), []);
    assert!(classes(&equal(&[f64::NAN]), 0.5, 0.0).is_err());
    assert!(classes(&equal(&[1.0]), 0.0, 0.0).is_err());
    assert!(classes(&equal(&[1.0]), 0.5, 1.0).is_err());
    let negative = Weighted {
        value: 1.0,
        weight: -1.0,
    };
    assert!(classes(&[negative], 0.5, 0.0).is_err());
}

proptest! {
    /// Whatever the values: each is in one class, classes lie apart, none is wider than two gaps, and
    /// a gap always separates.
    #[test]
    fn every_value_is_in_one_class_of_bounded_width(
        values in prop::collection::vec(0.0..20.0_f64, 1..120),
        gap in 0.1..5.0_f64,
    ) {
        let level_classes = classes(&equal(&values), gap, 0.0).unwrap();
        prop_assert_eq!(level_classes.iter().map(|c| c.n).sum::<usize>(), values.len());
        prop_assert!(level_classes.windows(2).all(|w| w[1].low > w[0].high));
        prop_assert!(level_classes.iter().all(|c| c.high - c.low <= 2.0 * gap), "{:?}", level_classes);
        let share: f64 = level_classes.iter().map(|c| c.share).sum();
        prop_assert!((share - 1.0).abs() < 1e-9);
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        for pair in sorted.windows(2).filter(|w| w[1] - w[0] > gap) {
            prop_assert!(!level_classes.iter().any(|c| c.low <= pair[0] && pair[1] <= c.high));
        }
        for value in values {
            let contains = |c: &LevelClass| c.low <= value && value <= c.high;
            prop_assert_eq!(level_classes.iter().filter(|c| contains(c)).count(), 1);
        }
    }

    #[test]
    fn the_order_of_values_changes_nothing(
        (values, shuffled) in prop::collection::vec((0.0..5.0_f64, 0.1..4.0_f64), 1..60)
            .prop_flat_map(|values| (Just(values.clone()), Just(values).prop_shuffle())),
    ) {
        let weigh = |values: Vec<(f64, f64)>| -> Vec<Weighted> {
            let weighted = |(value, weight)| Weighted { value, weight };
            values.into_iter().map(weighted).collect()
        };
        let weighed_classes = |values| classes(&weigh(values), 0.5, 0.001).unwrap();
        prop_assert_eq!(weighed_classes(values), weighed_classes(shuffled));
    }
}
