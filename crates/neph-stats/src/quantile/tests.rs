//! What a quantile, its interval and its least sample promise.

use proptest::prelude::*;

use super::*;
use crate::random::Random;

fn one_to(n: usize) -> Vec<f64> {
    (1..=n).map(usize_to_f64).collect()
}

#[test]
fn each_quantile_needs_its_minimum_number_of_samples() {
    for (p, need) in [(0.5, 6), (0.9, 29), (0.99, 299), (0.999, 2995), (0.01, 299)] {
        assert_eq!(quantile_needs(p), Ok(need), "p = {p}");
    }
    let few = one_to(298);
    assert_eq!(
        quantile(Sorted::check(&few).unwrap(), 0, 0.99),
        Err(StatsError::TooFew {
            subject: "quantile",
            need: 299,
            have: 298
        })
    );
    for p in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(matches!(
            quantile_needs(p),
            Err(StatsError::OutOfRange { .. })
        ));
    }
}

#[test]
fn the_median_of_an_experiment_includes_lost_messages() {
    let replies = one_to(3);
    let of = |lost| median(Sorted::check(&replies).unwrap(), lost);
    assert_eq!(of(0), Ok(Level::At(2.0)));
    assert_eq!(of(1), Ok(Level::At(2.5)));
    // Between the slowest reply and a lost message there is no number.
    assert_eq!(of(3), Ok(Level::Censored));
    assert!(median(Sorted::check(&[]).unwrap(), 0).is_err());
}

#[test]
fn an_approximate_quantile_at_a_lost_message_has_no_value() {
    let replies = one_to(9);
    let of = |lost, p| rough_level(Sorted::check(&replies).unwrap(), lost, p);
    assert_eq!(of(0, 0.5), Ok(Level::At(5.0)));
    assert_eq!(of(2, 0.5), Ok(Level::At(6.0)));
    assert_eq!(of(2, 0.9), Ok(Level::Censored));
}

#[test]
fn lost_messages_rank_above_every_reply() {
    let replies = one_to(90);
    let sample = Sorted::check(&replies).unwrap();
    let median = quantile(sample, 10, 0.5).unwrap();
    assert_eq!(
        (median.value(), median.n(), median.lost()),
        (Level::At(50.5), 100, 10)
    );
    let p95 = quantile(sample, 10, 0.95).unwrap();
    assert_eq!(
        (p95.value(), p95.high()),
        (Level::Censored, Level::Censored)
    );
    // The estimate is a number, but the interval reaches into the loss.
    let p89 = quantile(sample, 10, 0.89).unwrap();
    assert!(p89.value().number().is_some() && p89.high() == Level::Censored);
}

#[test]
fn a_sample_with_only_losses_is_censored() {
    let p50 = quantile(Sorted::check(&[]).unwrap(), 40, 0.5).unwrap();
    assert_eq!((p50.low(), p50.value()), (Level::Censored, Level::Censored));
}

#[test]
fn interval_ranks_have_their_coverage_for_every_small_n() {
    for p in [0.05, 0.25, 0.5, 0.9, 0.99] {
        for n in quantile_needs(p).unwrap()..400 {
            let (l, u) = interval_ranks(n, p);
            let covered = 1.0 - binomial_up_to(l - 1, n, p) - binomial_above(u - 1, n, p);
            assert!(
                covered >= 1.0 - ALPHA - 1e-12,
                "n = {n}, p = {p}: {covered}"
            );
            let position = usize_to_f64(n - 1) * p + 1.0;
            assert!(
                usize_to_f64(l) <= position && position <= usize_to_f64(u),
                "n = {n}, p = {p}: {l}..{u}"
            );
        }
    }
}

/// The exact search agrees with the normal approximation, to one rank, where n is large.
#[test]
fn large_n_agrees_with_the_normal_approximation() {
    for (n, p) in [(1_000_000_usize, 0.5), (1_000_000, 0.99), (30_000_000, 0.9)] {
        let (l, u) = interval_ranks(n, p);
        let reach = 1.959_964 * (usize_to_f64(n) * p * (1.0 - p)).sqrt();
        assert!(
            (usize_to_f64(l) - (usize_to_f64(n) * p - reach)).abs() < 2.0,
            "{n} {p}: {l}"
        );
        assert!(
            (usize_to_f64(u) - (usize_to_f64(n) * p + reach)).abs() < 2.0,
            "{n} {p}: {u}"
        );
    }
}

#[test]
fn the_quantile_interval_has_its_nominal_coverage() {
    let mut random = Random::new(7);
    let (mut hits, rounds) = (0, 2000);
    for _ in 0..rounds {
        let mut sample: Vec<f64> = (0..320).map(|_| random.unit()).collect();
        let q = quantile(Sorted::sort(&mut sample).unwrap(), 0, 0.9).unwrap();
        let (low, high) = (q.low().number().unwrap(), q.high().number().unwrap());
        hits += usize::from(low <= 0.9 && 0.9 <= high);
    }
    assert!(
        usize_to_f64(hits) / usize_to_f64(rounds) > 0.94,
        "{hits} of {rounds}"
    );
}

proptest! {
    #[test]
    fn the_estimate_lies_within_its_interval(
        mut values in prop::collection::vec(-1e9..1e9_f64, 30..200), p in 0.1..0.9_f64,
    ) {
        let q = quantile(Sorted::sort(&mut values).unwrap(), 0, p).unwrap();
        let [low, at, high] = [q.low(), q.value(), q.high()].map(|l| l.number().unwrap());
        prop_assert!(low <= at && at <= high);
    }

    #[test]
    fn loss_never_lowers_a_quantile(
        mut values in prop::collection::vec(0.0..1e9_f64, 30..100), lost in 0..50_usize,
    ) {
        let sample = Sorted::sort(&mut values).unwrap();
        let without = quantile(sample, 0, 0.5).unwrap().value().number().unwrap();
        let with_loss = quantile(sample, lost, 0.5).unwrap().value().number();
        prop_assert!(with_loss.unwrap_or(f64::INFINITY) >= without);
    }
}
