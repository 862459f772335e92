use proptest::prelude::*;

use super::*;
use crate::distribution::normal_quantile;
use crate::quantile::quantile;

const FAST: Resampling = Resampling {
    seed: 42,
    rounds: 400,
};

/// Experiments with a common level each, as measured paths have.
fn scenario(random: &mut Random, experiments: usize, level: f64) -> Vec<Vec<f64>> {
    let mut normal = || normal_quantile(random.unit().max(1e-9));
    let mut one = || {
        let own = level + normal();
        let mut values: Vec<f64> = (0..30).map(|_| own + 0.5 * normal()).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    (0..experiments).map(|_| one()).collect()
}

fn experiments(of: &[Vec<f64>], lost: usize) -> Vec<Experiment<'_>> {
    of.iter()
        .map(|v| Experiment {
            replies: Sorted::check(v).unwrap(),
            lost,
        })
        .collect()
}

#[test]
fn is_the_same_for_the_same_seed_only() {
    let values = scenario(&mut Random::new(3), 8, 10.0);
    let sample = experiments(&values, 0);
    let of = |seed| {
        bootstrap(
            &sample,
            Statistic::Quantile(0.5),
            Resampling { seed, rounds: 400 },
        )
        .unwrap()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn refuses_few_experiments_and_odd_rounds() {
    let values = scenario(&mut Random::new(3), 6, 10.0);
    let sample = experiments(&values, 0);
    let few = bootstrap(&sample[..5], Statistic::Mean, FAST);
    assert!(
        matches!(
            few,
            Err(StatsError::TooFew {
                need: 6,
                have: 5,
                ..
            })
        ),
        "{few:?}"
    );
    let p99 = bootstrap(&sample, Statistic::Quantile(0.99), FAST);
    assert!(
        matches!(
            p99,
            Err(StatsError::TooFew {
                need: 299,
                have: 180,
                ..
            })
        ),
        "{p99:?}"
    );
    let odd = bootstrap(
        &sample,
        Statistic::Mean,
        Resampling {
            seed: 1,
            rounds: 10,
        },
    );
    assert!(matches!(odd, Err(StatsError::OutOfRange { .. })));
}

#[test]
fn loss_censors_the_ends_it_reaches() {
    let values = scenario(&mut Random::new(5), 8, 10.0);
    let mut sample = experiments(&values, 0);
    sample[0].lost = 30;
    let p90 = bootstrap(&sample, Statistic::Quantile(0.9), FAST).unwrap();
    assert!(p90.low.number().is_some());
    assert_eq!(p90.high, Level::Censored);
    let clean = experiments(&values, 0);
    assert_eq!(
        bootstrap_difference(&sample, &clean, Statistic::Quantile(0.9), FAST),
        Err(StatsError::Censored { what: "difference" })
    );
    assert!(bootstrap_difference(&sample, &clean, Statistic::Quantile(0.2), FAST).is_ok());
}

#[test]
fn a_difference_is_found_and_its_absence_too() {
    let mut random = Random::new(9);
    let (a, b) = (
        scenario(&mut random, 20, 10.0),
        scenario(&mut random, 20, 15.0),
    );
    let (a, b) = (experiments(&a, 0), experiments(&b, 0));
    let there = bootstrap_difference(&b, &a, Statistic::Quantile(0.5), FAST).unwrap();
    let interval = there.interval.unwrap();
    assert!(interval.low > 3.0 && interval.high < 7.0, "{there:?}");
    let none = bootstrap_difference(&a, &a, Statistic::Mean, FAST).unwrap();
    assert!(none.interval.unwrap().holds(0.0) && none.estimate.abs() < 1e-12);
}

/// How often the interval of a mean holds the truth, by number of experiments: what the module's
/// description promises. 500 scenarios each; the standard error is 1 to 2 percent points.
#[test]
fn coverage() {
    for (count, low, high) in [(6, 0.78, 0.90), (12, 0.86, 0.95), (30, 0.90, 0.97)] {
        let mut random = Random::new(11);
        let holds = |_: &usize| {
            let values = scenario(&mut random, count, 10.0);
            let found = bootstrap(&experiments(&values, 0), Statistic::Mean, FAST).unwrap();
            found.low.number().unwrap() <= 10.0 && 10.0 <= found.high.number().unwrap()
        };
        let share = real((0..500).filter(holds).count()) / 500.0;
        println!("coverage with {count} experiments: {share}");
        assert!((low..high).contains(&share), "{count} experiments: {share}");
    }
}

proptest! {
    /// The search over weighed experiments gives what pooling the drawn messages would give.
    #[test]
    fn searching_equals_pooling(
        values in prop::collection::vec(prop::collection::vec(-50..50_i32, 5..30), 6..9),
        lost in 0..4_usize, seed in any::<u64>(), p in 0.1..0.9_f64,
    ) {
        let values: Vec<Vec<f64>> = values.into_iter().map(|mut v| {
            v.sort_unstable();
            v.into_iter().map(f64::from).collect()
        }).collect();
        let sample = experiments(&values, lost);
        let pool = Pool::new(&sample, Statistic::Quantile(p)).unwrap();
        let times = pool.draw(&mut Random::new(seed));
        prop_assert_eq!(times.iter().sum::<usize>(), sample.len());
        let mut pooled: Vec<f64> = values.iter().zip(&times)
            .flat_map(|(v, &k)| v.repeat(k)).collect();
        let all = quantile(Sorted::sort(&mut pooled).unwrap(), lost * sample.len(), p).unwrap();
        let expected = all.value().number().unwrap_or(f64::INFINITY);
        prop_assert_eq!(pool.statistic(&times), expected);
    }
}
