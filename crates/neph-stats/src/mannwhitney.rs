//! The Mann-Whitney U test: two scenarios whose experiments are not paired.

use crate::casts::usize_to_f64;
use crate::error::StatsError;
use crate::interval::ALPHA;
use crate::pairs::Pairs;
use crate::ranks::{Ranks, ranks};
use crate::shift::{
    Approximation, Arrangements, Basis, EXACT_UP_TO, Shift, ShiftTest, doubled, triangle, untied,
};
use crate::sorted::{Sorted, refuse_fewer};

/// Tests whether `candidate` differs from `baseline`, in any order and number.
///
/// The statistic is U of the candidate: the number of pairs in which it is the larger one, ties
/// counting 1/2. Up to 50 values together p is counted out, with ties too; beyond, it is the normal
/// approximation with tie and continuity correction. The shift is the median of all differences;
/// its interval is the range of shifts that the test without ties would not reject, and exists from
/// 4 against 4 on.
///
/// # Errors
/// [`StatsError::TooFew`] when a side is empty, [`StatsError::NotFinite`].
pub fn mann_whitney(candidate: &[f64], baseline: &[f64]) -> Result<ShiftTest, StatsError> {
    let sizes = (candidate.len(), baseline.len());
    refuse_fewer("rank sum test", 1, sizes.0.min(sizes.1))?;
    let mut values = [candidate, baseline].concat();
    let ranks = ranks(&values)?;
    let (first, second) = values.split_at_mut(candidate.len());
    let shift = shift(Sorted::sort(first)?, Sorted::sort(second)?);
    let rank_sum: f64 = ranks.of[..candidate.len()].iter().sum();
    let statistic = rank_sum - triangle(candidate.len());
    let (p, basis) = two_sided(&ranks, sizes, statistic);
    Ok(ShiftTest {
        n: values.len(),
        statistic,
        p,
        basis,
        shift,
    })
}

fn two_sided(ranks: &Ranks, sizes: (usize, usize), statistic: f64) -> (f64, Basis) {
    if ranks.of.len() > EXACT_UP_TO {
        return (
            approximation(sizes, ranks.tie_term).two_sided(statistic),
            Basis::Normal,
        );
    }
    // The smaller side is counted: fewer arrangements, the same tails.
    let smaller = if sizes.0 <= sizes.1 {
        &ranks.of[..sizes.0]
    } else {
        &ranks.of[sizes.0..]
    };
    let sum = doubled(smaller).iter().sum();
    let arrangements = Arrangements::of_subsets_sized(&doubled(&ranks.of), smaller.len());
    (arrangements.two_sided(sum), Basis::Exact)
}

fn approximation(sizes: (usize, usize), tie_term: f64) -> Approximation {
    let (m, n) = (usize_to_f64(sizes.0), usize_to_f64(sizes.1));
    let total = m + n;
    let ties = tie_term / (total * (total - 1.0));
    Approximation {
        mean: 0.5 * m * n,
        sd: (m * n / 12.0 * (total + 1.0 - ties)).max(0.0).sqrt(),
    }
}

fn shift(candidate: Sorted<'_>, baseline: Sorted<'_>) -> Shift {
    let pairs = Pairs::Differences(candidate, baseline);
    let (m, n) = (candidate.len(), baseline.len());
    let rank = if m + n <= EXACT_UP_TO {
        Arrangements::of_subsets_sized(&untied(m + n), m.min(n)).interval_rank(0.5 * ALPHA)
    } else {
        approximation((m, n), 0.0).interval_rank()
    };
    Shift {
        estimate: pairs.median(),
        interval: (rank > 0).then(|| pairs.interval(rank)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn four_against_four_is_the_smallest_significant_sample() {
        let test = mann_whitney(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((test.p - 2.0 / 70.0).abs() < 1e-15);
        assert_eq!((test.statistic, test.shift.estimate), (16.0, 4.0));
        assert!(test.shift.interval.is_some());
        let test = mann_whitney(&[5.0, 6.0, 7.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((test.p, test.shift.interval), (0.1, None));
    }

    #[test]
    fn equal_values_are_no_evidence() {
        for n in [4, 40] {
            assert_eq!(mann_whitney(&vec![2.0; n], &vec![2.0; n]).unwrap().p, 1.0);
        }
        assert!(mann_whitney(&[], &[1.0]).is_err());
    }

    proptest! {
        #[test]
        fn the_interval_inverts_the_test(
            a in prop::collection::vec(-9.0..9.0_f64, 4..15),
            b in prop::collection::vec(-9.0..9.0_f64, 4..15),
        ) {
            let test = mann_whitney(&a, &b).unwrap();
            let interval = test.shift.interval.unwrap();
            prop_assert!(interval.contains(test.shift.estimate));
            let p_at = |shift: f64| {
                let moved: Vec<f64> = a.iter().map(|v| v - shift).collect();
                mann_whitney(&moved, &b).unwrap().p
            };
            prop_assert!(p_at(interval.low - 1e-6) <= ALPHA);
            prop_assert!(p_at(interval.high + 1e-6) <= ALPHA);
            if interval.high - interval.low > 1e-4 {
                prop_assert!(p_at(interval.low + 1e-6) > ALPHA);
                prop_assert!(p_at(interval.high - 1e-6) > ALPHA);
            }
        }

        #[test]
        fn swapping_the_samples_negates_the_shift(
            a in prop::collection::vec(-9..9_i32, 1..40), b in prop::collection::vec(-9..9_i32, 1..40),
        ) {
            let [a, b] = [a, b].map(|v| v.into_iter().map(f64::from).collect::<Vec<_>>());
            let (there, back) = (mann_whitney(&a, &b).unwrap(), mann_whitney(&b, &a).unwrap());
            prop_assert!((there.p - back.p).abs() < 1e-12);
            prop_assert_eq!(there.statistic + back.statistic, usize_to_f64(a.len() * b.len()));
            prop_assert_eq!(there.shift.estimate, -back.shift.estimate);
        }
    }
}
