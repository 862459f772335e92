//! Wilcoxon's signed-rank test for pairs: the same two scenarios, block by block.

use crate::error::StatsError;
use crate::interval::ALPHA;
use crate::pairs::Pairs;
use crate::ranks::{Ranks, ranks};
use crate::real::real;
use crate::shift::{
    Approximation, Arrangements, Basis, EXACT_UP_TO, Shift, ShiftTest, doubled, triangle, untied,
};
use crate::sorted::{Sorted, refuse_fewer};

/// Tests whether `candidate` differs from `baseline`, both in the same order of blocks.
///
/// Pairs without a difference are left out of the statistic (Wilcoxon 1945, SciPy's default). Up to
/// 50 differing pairs p is counted out, with ties too; beyond, it is the normal approximation with
/// tie and continuity correction. The statistic is the rank sum of the positive differences. The
/// shift is the median of all Walsh averages, equal pairs included; its interval is the range of
/// shifts that the test without ties would not reject, and exists from 6 pairs on.
///
/// # Errors
/// [`StatsError::UnequalLength`], [`StatsError::TooFew`] without pairs, [`StatsError::NotFinite`].
pub fn wilcoxon(candidate: &[f64], baseline: &[f64]) -> Result<ShiftTest, StatsError> {
    if candidate.len() != baseline.len() {
        return Err(StatsError::UnequalLength {
            what: "paired samples",
            first: candidate.len(),
            other: baseline.len(),
        });
    }
    refuse_fewer("signed-rank test", 1, candidate.len())?;
    let mut all: Vec<f64> = candidate.iter().zip(baseline).map(|(a, b)| a - b).collect();
    let differing: Vec<f64> = all.iter().copied().filter(|d| d.abs() > 0.0).collect();
    let sizes: Vec<f64> = differing.iter().map(|d| d.abs()).collect();
    let shift = shift(Sorted::sort(&mut all)?);
    let ranks = ranks(&sizes)?;
    let positive = |(&d, &rank): (&f64, &f64)| if d > 0.0 { rank } else { 0.0 };
    let statistic: f64 = differing.iter().zip(&ranks.of).map(positive).sum();
    let (p, basis) = two_sided(&ranks, statistic);
    Ok(ShiftTest {
        n: differing.len(),
        statistic,
        p,
        basis,
        shift,
    })
}

fn two_sided(ranks: &Ranks, statistic: f64) -> (f64, Basis) {
    let n = ranks.of.len();
    if n <= EXACT_UP_TO {
        let sum = doubled(&[statistic])[0];
        return (
            Arrangements::of_subsets(&doubled(&ranks.of)).two_sided(sum),
            Basis::Exact,
        );
    }
    (
        approximation(n, ranks.tie_term).two_sided(statistic),
        Basis::Normal,
    )
}

pub(crate) fn approximation(n: usize, tie_term: f64) -> Approximation {
    let mean = 0.5 * triangle(n);
    let variance = (mean * (2.0 * real(n) + 1.0)) / 6.0 - tie_term / 48.0;
    Approximation {
        mean,
        sd: variance.sqrt(),
    }
}

fn shift(differences: Sorted<'_>) -> Shift {
    let pairs = Pairs::Means(differences);
    let n = differences.len();
    let rank = if n <= EXACT_UP_TO {
        Arrangements::of_subsets(&untied(n)).interval_rank(0.5 * ALPHA)
    } else {
        approximation(n, 0.0).interval_rank()
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
    fn six_blocks_are_the_fewest_that_can_decide() {
        let base = [0.0; 6];
        let five = wilcoxon(&[1.0, 2.0, 3.0, 4.0, 5.0], &base[..5]).unwrap();
        assert_eq!((five.p, five.shift.interval), (0.0625, None));
        let six = wilcoxon(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &base).unwrap();
        assert_eq!(
            (six.p, six.statistic, six.shift.estimate),
            (0.03125, 21.0, 3.5)
        );
        let interval = six.shift.interval.unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 6.0));
    }

    #[test]
    fn no_difference_is_no_evidence() {
        let same = wilcoxon(&[5.0; 8], &[5.0; 8]).unwrap();
        assert_eq!((same.n, same.p, same.shift.estimate), (0, 1.0, 0.0));
        assert!(wilcoxon(&[], &[]).is_err() && wilcoxon(&[1.0], &[]).is_err());
        assert!(wilcoxon(&[f64::NAN], &[1.0]).is_err());
    }

    #[test]
    fn both_bases_agree_where_they_meet() {
        let differences: Vec<f64> = (1..=50_i32)
            .map(|i| f64::from(i) * if i % 3 == 0 { -1.0 } else { 1.0 })
            .collect();
        let exact = wilcoxon(&differences, &[0.0; 50]).unwrap();
        let normal = approximation(50, 0.0);
        assert!((exact.p - normal.two_sided(exact.statistic)).abs() < 0.001);
        let rank = Arrangements::of_subsets(&untied(50)).interval_rank(0.5 * ALPHA);
        assert!(rank.abs_diff(normal.interval_rank()) <= 2, "{rank}");
    }

    proptest! {
        /// The interval is what the test does not reject: checked by moving the sample.
        #[test]
        fn the_interval_inverts_the_test(values in prop::collection::vec(-9.0..9.0_f64, 6..30)) {
            let test = wilcoxon(&values, &vec![0.0; values.len()]).unwrap();
            let interval = test.shift.interval.unwrap();
            prop_assert!(interval.holds(test.shift.estimate));
            let p_at = |shift: f64| wilcoxon(&values, &vec![shift; values.len()]).unwrap().p;
            prop_assert!(p_at(interval.low - 1e-6) <= ALPHA);
            prop_assert!(p_at(interval.high + 1e-6) <= ALPHA);
            if interval.high - interval.low > 1e-4 {
                prop_assert!(p_at(interval.low + 1e-6) > ALPHA);
                prop_assert!(p_at(interval.high - 1e-6) > ALPHA);
            }
        }

        #[test]
        fn swapping_the_sides_turns_the_sign(
            pairs in prop::collection::vec((-9..9_i32, -9..9_i32), 1..80),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) =
                pairs.into_iter().map(|(a, b)| (f64::from(a), f64::from(b))).unzip();
            let (there, back) = (wilcoxon(&a, &b).unwrap(), wilcoxon(&b, &a).unwrap());
            prop_assert!((there.p - back.p).abs() < 1e-12);
            prop_assert_eq!(there.shift.estimate, -back.shift.estimate);
        }
    }
}
