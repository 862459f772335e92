//! Friedman's test: several scenarios, each measured in every block.

use crate::distribution::chi_square_above;
use crate::error::StatsError;
use crate::kruskal::GroupTest;
use crate::ranks::ranks;
use crate::real::real;
use crate::sorted::refuse_fewer;

/// Tests whether any scenario differs from the others. `blocks` holds one row per block, and each
/// row one value per scenario in the same order. Rows of equal values only give p = 1.
///
/// # Errors
/// [`StatsError::TooFew`] for fewer than 2 blocks or 3 scenarios (for two use
/// [`crate::wilcoxon()`]); [`StatsError::UnequalLength`] for a row that differs from the first;
/// [`StatsError::NotFinite`].
pub fn friedman<B: AsRef<[f64]>>(blocks: &[B]) -> Result<GroupTest, StatsError> {
    refuse_fewer("Friedman test (blocks)", 2, blocks.len())?;
    let width = blocks[0].as_ref().len();
    refuse_fewer("Friedman test (scenarios)", 3, width)?;
    let mut sums = vec![0.0; width];
    let mut tie_term = 0.0;
    for block in blocks {
        let row = block.as_ref();
        if row.len() != width {
            let what = "blocks of a Friedman test";
            return Err(StatsError::UnequalLength {
                what,
                first: width,
                other: row.len(),
            });
        }
        let ranks = ranks(row)?;
        sums.iter_mut()
            .zip(&ranks.of)
            .for_each(|(sum, rank)| *sum += rank);
        tie_term += ranks.tie_term;
    }
    let (n, k) = (real(blocks.len()), real(width));
    let spread: f64 = sums
        .iter()
        .map(|sum| (sum - 0.5 * n * (k + 1.0)).powi(2))
        .sum();
    let varied = n * (k * k * k - k) - tie_term;
    let freedom = width - 1;
    let statistic = if varied > 0.0 {
        12.0 * spread * (k - 1.0) / varied
    } else {
        0.0
    };
    let p = chi_square_above(statistic, real(freedom));
    Ok(GroupTest {
        n: blocks.len() * width,
        statistic,
        freedom,
        p,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_no_evidence_and_odd_rows_are_refused() {
        let test = friedman(&[[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]).unwrap();
        assert_eq!((test.statistic, test.p), (0.0, 1.0));
        assert!(matches!(
            friedman(&[vec![1.0, 2.0, 3.0], vec![1.0, 2.0]]),
            Err(StatsError::UnequalLength {
                first: 3,
                other: 2,
                ..
            })
        ));
    }
}
